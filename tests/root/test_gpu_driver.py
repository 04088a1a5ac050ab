#!/usr/bin/python3
"""NVIDIA's own driver library and runtime under our probes, without a GPU.

Rests on Debian's libcuda1 and PyPI's nvidia-cuda-runtime (scripts/setup-cupti): what their
entry points look like, that the driver loads the bridge, and that calls are counted exactly.
Says nothing of what a GPU does.
"""

import os
import shutil

import harness

LIBRARIES = os.environ.get("RLSCOPE_CUPTI_LIBRARIES") or os.path.join(
    os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "rlscope-bpf", "cupti")
BRIDGE = os.environ.get("RLS_BRIDGE", "build/librlscope_cupti.so")
ROUNDS = 500


def start():
    folders = [os.path.join(LIBRARIES, "driver"), os.path.join(LIBRARIES, "12")]
    environment = dict(os.environ, LD_LIBRARY_PATH=":".join(folders), CUDA_INJECTION64_PATH=BRIDGE)
    # As root cuInit would make /dev/nvidiactl.
    job = harness.Process(["setpriv", "--bounding-set=-mknod", harness.interpreter(),
                           os.path.join(harness.HERE, "driver_job.py")], env=environment)
    if not job.out.wait("[", harness.PATIENCE_SECONDS):
        raise RuntimeError("the job is not ready: %s" % job.err.text())
    return job


def check_sites(checks, pid):
    probes = harness.run("probes", "--pid", str(pid), timeout=harness.PATIENCE_SECONDS).stdout
    lines = [line.split() for line in probes.splitlines() if " cu" in line and " symbol" in line]
    single = [line for line in lines if "single-step" in line]
    checks.that(len(lines) > 200 and not single,
                "%d entry points, %d of them single-step: %s" % (len(lines), len(single), single[:3]))


def main():
    harness.need_root_and_profiler()
    if not os.path.exists(os.path.join(LIBRARIES, "driver", "libcuda.so.1")):
        harness.skip("no libcuda in %s: scripts/setup-cupti fetches it" % LIBRARIES)
    if not shutil.which("setpriv"):
        harness.skip("no setpriv")
    checks = harness.Checks()
    with start() as job:
        with open("/proc/%d/maps" % job.pid) as maps:
            checks.that("librlscope_cupti" in maps.read(), "the driver loads the bridge in cuInit")
        check_sites(checks, job.pid)
        with harness.Recording([job.pid], roles=[]) as recording:
            job.say(str(ROUNDS))
            job.out.wait("[", harness.PATIENCE_SECONDS)
            status = recording.stop()
            report = recording.report()
    calls = {row["name"]: row["count"] for row in report.get("cuda_calls", [])}
    checks.that(status == 0 and calls.get("cuMemAlloc_v2") == ROUNDS and
                calls.get("cuStreamSynchronize") == ROUNDS and calls.get("cudaMalloc") == ROUNDS,
                "each call is counted once: %s" % calls)
    checks.that(not [entry for entry in report["gpu"] if entry["kernels"]], "no GPU, no kernels")
    harness.check_lossless(checks, report)
    checks.finish()


if __name__ == "__main__":
    main()
