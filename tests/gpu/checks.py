"""Checks of recording PyTorch on a GPU: each returns (held, what was seen), or raises NotPossible."""

import ctypes
import os
import subprocess
import time

from bench import NotPossible, busy_ns, kernels, launch_delays, launched, lost


def every_launch_is_a_kernel(bench):
    """A loop without graphs or copies: what the probes counted is what CUPTI recorded."""
    job = bench.start("--until-input-ends")
    report, events = bench.record(job, "--duration", "3", name="training_loop")
    bench.stopped(job)
    begun = launched(events)
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
    job = bench.start("--seconds", "4", "--await-go", "--dense")
    report, _ = bench.record(job, go=True)
    reported = bench.ended(job)
    seen = {"busy_ns": busy_ns(report), "events_ns": reported["events_ns"]}
    if not reported["events_ns"]:
        raise NotPossible("the job has no CUDA events")
    return abs(seen["busy_ns"] - seen["events_ns"]) <= 0.01 * seen["events_ns"], seen


def in_mid_life(bench):
    """A job that has run for a minute shows GPU time within a second of attach."""
    job = bench.start("--until-input-ends")
    time.sleep(60)
    _, events = bench.record(job, "--duration", "2")
    bench.stopped(job)
    start = min(event["time_ns"] for event in events if event["event"] == "host")
    first = [event["start_ns"] for event in events if event["event"] == "gpu"]
    seen = {"first_ms": (min(first) - start) / 1e6 if first else None, "intervals": len(first)}
    return bool(first) and min(first) - start < 1e9, seen


def clock(bench):
    """CUPTI's clock against ours; and launches that begin after their work."""
    job = bench.start("--until-input-ends")
    report, events = bench.record(job, "--duration", "3")
    bench.stopped(job)
    early = [-delay for delay in launch_delays(events) if delay < 0]
    return not early, {"clocks": report.get("gpu_clocks", []), "begun_before_launch": len(early),
                       "worst_ns": max(early, default=0)}


def cost(bench):
    """Time of a launch without the bridge, with it idle, and while recorded from before the first on."""
    def launch_ns(recorded, **more):
        job = bench.start("--seconds", "3", "--empty", *(["--await-go"] if recorded else []), **more)
        if recorded:
            bench.record(job, go=True)
        reported = bench.ended(job)
        return {"best_ns": reported["launch_ns"], "median_ns": reported["median_ns"]}

    seen = {"without": launch_ns(False, bridge=False), "idle": launch_ns(False), "recorded": launch_ns(True)}
    return seen["idle"]["best_ns"] < 1.05 * seen["without"]["best_ns"] + 50, seen


def conflict(bench, order):
    job = bench.start("--seconds", "8", "--profiler", order, "--await-go")
    report, _ = bench.record(job, "--duration", "5", go=True)
    reported = bench.ended(job)
    if "profiler" not in reported:
        raise NotPossible("the job has no torch.profiler")
    return job.returncode == 0, {"kernels": kernels(report), "warnings": report["warnings"],
                                 "profiler_kernels": reported["profiler"]}


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
