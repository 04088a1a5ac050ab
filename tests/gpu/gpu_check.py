#!/usr/bin/env python3
"""The checks of scripts/gpu_check, within ten minutes: each says what it saw.

Writes results.json (every check: held, not held, or not possible and why; and what the open
questions have been answered by) and small text traces as fixtures, with where they come from. With
--fakes the jobs run on stand-ins for CUDA: that shows that these checks run, and nothing of a GPU;
the results say so.
"""

import argparse
import glob
import json
import os
import platform
import signal
import subprocess
import sys
import time

import checks
import frameworks
import questions
from bench import Bench, NotPossible

CHECK_SECONDS = 90
ALL_SECONDS = 570

# What matters most comes first: who runs out of time has at least that.
CHECKS = [frameworks.pytorch_counts, checks.driver_entries, checks.every_launch_is_a_kernel, checks.clock,
          frameworks.from_the_first, frameworks.nesting, checks.in_mid_life, checks.cost,
          checks.busy_time_is_that_of_events, frameworks.nvcc_counts, frameworks.graph_nodes,
          frameworks.whole_graphs, frameworks.triton_counts, frameworks.jax_counts,
          frameworks.armed_twice, frameworks.never_idle, checks.profiler_before_us,
          checks.profiler_after_us]


def over(*unused):
    raise TimeoutError("it took longer than there was time")


def run(check, bench, until):
    start = time.monotonic()
    left = min(CHECK_SECONDS, int(until - start))
    if left < 10:
        return {"held": None, "seen": "there was no time left", "seconds": 0}
    signal.alarm(left)
    try:
        held, seen = check(bench)
        result = {"held": held, "seen": seen}
    except NotPossible as reason:
        result = {"held": None, "seen": str(reason)}
    except Exception as error:  # one broken check must not cost the others their turn
        result = {"held": False, "seen": "%s: %s" % (type(error).__name__, error)}
    finally:
        signal.alarm(0)
        bench.clean_up()
    result["seconds"] = round(time.monotonic() - start, 1)
    word = {True: "ok   ", False: "FAIL ", None: "none "}[result["held"]]
    print("%s %s: %s" % (word, check.__name__, json.dumps(result["seen"])), flush=True)
    return result


def provenance(bench):
    smi = subprocess.run("nvidia-smi --query-gpu=name,driver_version --format=csv,noheader", shell=True,
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8", check=False)
    revision = os.path.join(bench.tree, "revision")
    return {"gpu": "stand-ins, no GPU" if bench.fakes else smi.stdout.strip(),
            "kernel": platform.release(), "pythons": bench.pythons, "when": time.strftime("%F %T"),
            "revision": open(revision).read().strip() if os.path.exists(revision) else "working tree"}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tree", required=True, help="where rlscope-bpf and the bridge are")
    parser.add_argument("--fakes", help="run on stand-ins for CUDA in this folder")
    parser.add_argument("--python", help="the interpreter of the PyTorch jobs")
    parser.add_argument("--out", default="gpu-results")
    parser.add_argument("--only", action="append", help="this check alone; may be repeated")
    options = parser.parse_args()
    if not options.fakes and not glob.glob("/dev/nvidia[0-9]*"):
        print("SKIP: there is no GPU here (/dev/nvidia0)")
        sys.exit(77)
    bench = Bench(options)
    os.makedirs(options.out, exist_ok=True)
    signal.signal(signal.SIGALRM, over)
    until = time.monotonic() + ALL_SECONDS
    chosen = [check for check in CHECKS if not options.only or check.__name__ in options.only]
    results = {"checks": {check.__name__: run(check, bench, until) for check in chosen}}
    results["answers"] = questions.answers(results["checks"])
    results["provenance"] = provenance(bench)
    with open(os.path.join(options.out, "results.json"), "w") as stream:
        json.dump(results, stream, indent=1)
    sys.exit(any(result["held"] is False for result in results["checks"].values()))


if __name__ == "__main__":
    main()
