#!/usr/bin/env python3
"""The checks of scripts/gpu_check, within ten minutes: each says what it saw.

Writes results.json (every check: held, not held, or not possible and why; and what the open
questions have been answered by) and fixtures.tar.gz (small text traces, the bridge's batches, CUPTI's own
records), both anew after each check. Where nothing can be recorded (no BPF for containers, no uprobes)
that is said once, and the bridge is checked by itself. With --fakes the jobs run on stand-ins for CUDA: that shows that these checks run, and nothing of a GPU;
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

import alone
import checks
import frameworks
import questions
from bench import Bench, NotPossible

CHECK_SECONDS = 90
ALL_SECONDS = 570

# What matters most comes first: who runs out of time has at least that.
RECORDED = [frameworks.pytorch_counts, checks.driver_entries, checks.every_launch_is_a_kernel, checks.clock,
          frameworks.from_the_first, frameworks.nesting, checks.cost,
          checks.busy_time_is_that_of_events, frameworks.nvcc_counts, frameworks.graph_nodes,
          frameworks.whole_graphs, frameworks.triton_counts, frameworks.jax_counts,
          frameworks.armed_twice, frameworks.later_session, frameworks.never_idle, checks.profiler_before_us,
          checks.profiler_after_us, checks.in_mid_life]
CHECKS = RECORDED + alone.CHECKS


def over(*unused):
    raise TimeoutError("it took longer than there was time")


def run(check, bench, until):
    start = time.monotonic()
    left = min(CHECK_SECONDS, int(until - start))
    if bench.fault and check in RECORDED and check is not checks.driver_entries:
        return {"held": None, "seen": "nothing can be recorded here: " + bench.fault, "seconds": 0}
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


def said_by(*command):
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8",
                              errors="replace", timeout=600, check=False)
    except (OSError, subprocess.TimeoutExpired) as reason:
        return str(reason)
    return done.stdout.strip()[-2000:]


def provenance(bench):
    revision = os.path.join(bench.tree, "revision")
    return {"gpu": "stand-ins, no GPU" if bench.fakes else
            said_by("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"),
            "kernel": platform.release(), "when": time.strftime("%F %T"),
            "revision": open(revision).read().strip() if os.path.exists(revision) else "working tree",
            "recorder": bench.fault or "records", "host": said_by(bench.binary, "check")}


def write(bench, results):
    results["answers"] = questions.answers(results["checks"])
    results["provenance"]["pythons"] = bench.pythons
    with open(os.path.join(bench.out, "results.json"), "w") as stream:
        json.dump(results, stream, indent=1)
    bench.pack_fixtures()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tree", required=True, help="where rlscope-bpf and the bridge are")
    parser.add_argument("--fakes", help="run on stand-ins for CUDA in this folder")
    parser.add_argument("--python", help="the interpreter of the PyTorch jobs")
    parser.add_argument("--out", default="gpu-results")
    parser.add_argument("--alone", action="store_true", help="record nothing, check the bridge by itself")
    parser.add_argument("--only", action="append", help="this check alone; may be repeated")
    options = parser.parse_args()
    if not options.fakes and not glob.glob("/dev/nvidia[0-9]*"):
        print("SKIP: there is no GPU here (/dev/nvidia0)")
        sys.exit(77)
    until = time.monotonic() + ALL_SECONDS
    os.makedirs(options.out, exist_ok=True)
    signal.signal(signal.SIGALRM, over)
    bench = Bench(options)
    bench.fault = "it was left out" if options.alone else bench.why_no_recorder()
    if bench.fault:
        print("nothing is recorded here, the bridge is checked by itself: %s" % bench.fault, flush=True)
    results = {"checks": {}, "provenance": provenance(bench)}
    for check in CHECKS:
        if not options.only or check.__name__ in options.only:
            results["checks"][check.__name__] = run(check, bench, until)
            write(bench, results)
    bench.close()
    sys.exit(any(result["held"] is False for result in results["checks"].values()))


if __name__ == "__main__":
    main()
