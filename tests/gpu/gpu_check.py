#!/usr/bin/env python3
"""The checks of scripts/gpu_check, each a function that says what it saw.

Writes results.json (every check: held, not held, or not possible and why) and small text
traces as fixtures, with where they come from. With --fakes the jobs run on stand-ins for CUDA:
that shows that these checks run, and nothing of a GPU; the results say so.
"""

import argparse
import ctypes
import glob
import json
import os
import platform
import subprocess
import sys
import tempfile
import time

FIXTURE_LINES = 4000


class NotPossible(Exception):
    """Something is missing here that the check needs."""


class Bench:
    def __init__(self, options):
        self.tree, self.fakes, self.out = options.tree, options.fakes, options.out
        self.binary = os.path.join(self.tree, "rlscope-bpf")
        self.bridge = os.path.join(self.tree, "librlscope_cupti.so")
        self.job = os.path.join(os.path.dirname(os.path.abspath(__file__)), "cuda_job.py")
        self.python = options.python or find_python(bool(self.fakes))

    def environment(self, bridge=True, **more):
        added = {"PYTHONPATH": os.path.join(self.tree, "python"), **more}
        if self.fakes:
            added["LD_LIBRARY_PATH"] = os.path.join(self.fakes, "13")
            added["RLS_JOB"] = "fakes"
        if bridge:
            added["CUDA_INJECTION64_PATH"] = self.bridge
        return dict(os.environ, **added)

    def start(self, *arguments, **more):
        """A job that has begun; it prints JSON when it has ended."""
        child = subprocess.Popen([self.python, self.job, *arguments], env=self.environment(**more),
                                 stdout=subprocess.PIPE, encoding="utf-8")
        line = child.stdout.readline()
        if not line.startswith("ready"):
            child.kill()
            raise NotPossible("the job does not start: %r" % line)
        return child

    def ended(self, child):
        return json.loads(child.communicate(timeout=120)[0].splitlines()[-1])

    def record(self, pid, *arguments, name=None):
        with tempfile.TemporaryDirectory() as folder:
            trace = os.path.join(folder, "trace")
            ended = subprocess.run([self.binary, "attach", "--pid", str(pid), "-o", trace, "--format",
                                    "json", "--overhead-budget", "none", *arguments],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
                                   timeout=180)
            if ended.returncode:
                raise NotPossible(ended.stderr.strip().splitlines()[-1])
            dump = subprocess.run([self.binary, "dump", trace], stdout=subprocess.PIPE,
                                  encoding="utf-8").stdout.splitlines()
        if name:
            self.keep(name, dump)
        return json.loads(ended.stdout), [json.loads(line) for line in dump]

    def keep(self, name, lines):
        with open(os.path.join(self.out, name + ".jsonl"), "w") as stream:
            stream.write("\n".join(lines[:FIXTURE_LINES]) + "\n")


def find_python(fakes):
    """One with PyTorch that sees a GPU; with fakes any will do."""
    if fakes:
        return sys.executable
    for python in [sys.executable, *glob.glob("/opt/*/bin/python3"), *glob.glob("/usr/local/bin/python3"),
                   *glob.glob("/root/*/bin/python3"), *glob.glob("/home/*/*/bin/python3")]:
        test = subprocess.run([python, "-c", "import torch; assert torch.cuda.is_available()"],
                              stderr=subprocess.DEVNULL, check=False)
        if test.returncode == 0:
            return python
    return None


def kernels(report):
    return sum(gpu["kernels"] for gpu in report["gpu"])


def busy_ns(report):
    return sum(gpu["busy_ns"] for gpu in report["gpu"])


def lost(report):
    return {loss["buffer"]: loss["dropped"] for loss in report["losses"] if loss["dropped"]}


# ---- the checks: (held, what was seen) ----

def every_launch_is_a_kernel(bench):
    """A loop without graphs or copies: what the probes counted is what CUPTI recorded."""
    job = bench.start("--seconds", "6")
    time.sleep(1)
    report, events = bench.record(job.pid, "--duration", "3", name="training_loop")
    bench.ended(job)
    begun = {event["correlation"]: event["time_ns"] for event in events if event["event"] == "launch"}
    ran = [begun[event["correlation"]] for event in events
           if event["event"] == "gpu" and event["kind"] == "kernel" and event["correlation"] in begun]
    if not ran:
        return False, {"kernels": 0, "lost": lost(report)}
    # From the first launch that CUPTI saw (it is armed a moment after the probes are live) to the
    # last whose kernel had begun when recording ended.
    first, last = min(ran), max(ran)
    calls = [event for event in events if event["event"] == "cuda_call" and event.get("launches") and
             first <= event["time_ns"] and event["time_ns"] - event["duration_ns"] <= last]
    seen = {"launch_calls": len(calls), "kernels": len(ran), "lost": lost(report)}
    return abs(len(calls) - len(ran)) <= 1 and not seen["lost"], seen


def busy_time_is_that_of_events(bench):
    """The union of intervals against the job's own CUDA events round the same work."""
    job = bench.start("--seconds", "4", "--wait", "2", "--dense")
    report, _ = bench.record(job.pid)
    told = bench.ended(job)
    seen = {"busy_ns": busy_ns(report), "events_ns": told["events_ns"]}
    if not told["events_ns"]:
        raise NotPossible("the job has no CUDA events")
    return abs(seen["busy_ns"] - seen["events_ns"]) <= 0.01 * seen["events_ns"], seen


def in_mid_life(bench):
    """A job that has run for a while shows GPU time within a second of attach."""
    job = bench.start("--seconds", "12")
    time.sleep(8)
    _, events = bench.record(job.pid, "--duration", "2")
    bench.ended(job)
    start = min(event["time_ns"] for event in events if event["event"] == "host")
    first = [event["start_ns"] for event in events if event["event"] == "gpu"]
    seen = {"first_ms": (min(first) - start) / 1e6 if first else None, "intervals": len(first)}
    return bool(first) and min(first) - start < 1e9, seen


def clock(bench):
    """CUPTI's clock against ours; and launches that begin after their work."""
    job = bench.start("--seconds", "5")
    report, events = bench.record(job.pid, "--duration", "3")
    bench.ended(job)
    begun = {event["correlation"]: event["time_ns"] for event in events if event["event"] == "launch"}
    early = [begun[event["correlation"]] - event["start_ns"] for event in events
             if event["event"] == "gpu" and event["start_ns"] < begun.get(event["correlation"], 0)]
    return not early, {"clocks": report.get("gpu_clocks", []), "begun_before_launch": len(early),
                       "worst_ns": max(early, default=0)}


def cost(bench):
    """Time of a launch without the bridge, with it idle, and while recorded."""
    def launch_ns(recorded, **more):
        job = bench.start("--seconds", "3", "--wait", "2" if recorded else "0", "--empty", **more)
        if recorded:
            bench.record(job.pid)
        return bench.ended(job)["launch_ns"]

    seen = {"without_ns": launch_ns(False, bridge=False), "idle_ns": launch_ns(False),
            "recorded_ns": launch_ns(True)}
    return seen["idle_ns"] < 1.05 * seen["without_ns"] + 50, seen


def conflict(bench, order):
    job = bench.start("--seconds", "8", "--profiler", order)
    time.sleep(1)
    report, _ = bench.record(job.pid, "--duration", "4")
    told = bench.ended(job)
    if "profiler" not in told:
        raise NotPossible("the job has no torch.profiler")
    return job.returncode == 0, {"kernels": kernels(report), "warnings": report["warnings"],
                                 "profiler_kernels": told["profiler"]}


def profiler_before_us(bench):
    return conflict(bench, "before")


def profiler_after_us(bench):
    return conflict(bench, "after")


def driver_entries(bench):
    """What the probes of libcuda rest on, and whether cuGetProcAddress returns the exports."""
    try:
        cuda = ctypes.CDLL(os.path.join(bench.fakes, "13", "libcuda.so.1") if bench.fakes else
                           "libcuda.so.1")
        cuda.cuInit(0)
    except OSError as error:
        raise NotPossible(str(error)) from error
    same, other = [], []
    for name in ("cuLaunchKernel", "cuMemcpyHtoDAsync_v2", "cuStreamSynchronize", "cuGraphLaunch"):
        found, status = ctypes.c_void_p(), ctypes.c_int()
        cuda.cuGetProcAddress_v2(name.replace("_v2", "").encode(), ctypes.byref(found), 12000,
                                 ctypes.c_uint64(0), ctypes.byref(status))
        export = ctypes.cast(getattr(cuda, name), ctypes.c_void_p).value
        (same if found.value == export else other).append(name)
    probes = subprocess.run([bench.binary, "probes", "--pid", str(os.getpid())], stdout=subprocess.PIPE,
                            encoding="utf-8", check=False).stdout
    classes = {kind: probes.count(" %s " % kind) for kind in ("nop5", "emulated", "single-step")}
    return not other, {"same": same, "other": other, "sites": classes}


CHECKS = [every_launch_is_a_kernel, busy_time_is_that_of_events, in_mid_life, clock, cost,
          profiler_before_us, profiler_after_us, driver_entries]


def run(check, bench):
    start = time.monotonic()
    try:
        held, seen = check(bench)
        result = {"held": held, "seen": seen}
    except NotPossible as reason:
        result = {"held": None, "seen": str(reason)}
    except Exception as error:  # one broken check must not cost the others their turn
        result = {"held": False, "seen": "%s: %s" % (type(error).__name__, error)}
    result["seconds"] = round(time.monotonic() - start, 1)
    word = {True: "ok   ", False: "FAIL ", None: "none "}[result["held"]]
    print("%s %s: %s" % (word, check.__name__, json.dumps(result["seen"])), flush=True)
    return result


def provenance(bench):
    smi = subprocess.run("nvidia-smi --query-gpu=name,driver_version --format=csv,noheader", shell=True,
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8", check=False)
    revision = os.path.join(bench.tree, "revision")
    return {"gpu": "stand-ins, no GPU" if bench.fakes else smi.stdout.strip(),
            "kernel": platform.release(), "python": bench.python, "when": time.strftime("%F %T"),
            "revision": open(revision).read().strip() if os.path.exists(revision) else "working tree"}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tree", required=True, help="where rlscope-bpf and the bridge are")
    parser.add_argument("--fakes", help="run on stand-ins for CUDA in this folder")
    parser.add_argument("--python", help="the interpreter of the jobs")
    parser.add_argument("--out", default="gpu-results")
    parser.add_argument("--only", action="append", help="this check alone; may be repeated")
    options = parser.parse_args()
    if not options.fakes and not glob.glob("/dev/nvidia[0-9]*"):
        print("SKIP: there is no GPU here (/dev/nvidia0)")
        sys.exit(77)
    bench = Bench(options)
    if not bench.python:
        print("SKIP: no Python here has a PyTorch that sees the GPU (--python names one)")
        sys.exit(77)
    os.makedirs(options.out, exist_ok=True)
    chosen = [check for check in CHECKS if not options.only or check.__name__ in options.only]
    results = {"provenance": provenance(bench), "checks": {c.__name__: run(c, bench) for c in chosen}}
    with open(os.path.join(options.out, "results.json"), "w") as stream:
        json.dump(results, stream, indent=1)
    sys.exit(any(result["held"] is False for result in results["checks"].values()))


if __name__ == "__main__":
    main()
