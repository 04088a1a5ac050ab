#!/usr/bin/python3
"""--perf-events: the way of kernels before 6.6 gives the same exact counts.

Detaching takes a tenth of a second for each probe, so few functions are taken, and the
report does not wait for it.
"""

import subprocess
import time

import harness

ROLES = ["--simulator", "truthsim*:noargs", "--simulator", "truthsim*:callback"]
FEW = ["--backend", "truthback*:noargs"]


def removers():
    """Pids of what profilers have left behind to remove their probes; others' may be there, too."""
    found = subprocess.run(["pgrep", "-x", "rlscope-detach"], stdout=subprocess.PIPE, encoding="ascii", check=False)
    return set(found.stdout.split())


def removed_in_the_end(checks):
    before = removers()
    with harness.Target("exact.py") as target:
        with harness.Recording([target.pid], "--perf-events", roles=FEW) as recording:
            status = recording.stop()
    start = time.monotonic()
    gone = harness.eventually(lambda: not removers() - before)
    checks.that(status == 0 and gone, "profiler ended with %d, probes were removed %.1f s after the report: %s" % (
        status, time.monotonic() - start, gone))


def main():
    harness.need_root_and_profiler()
    checks = harness.Checks()
    removed_in_the_end(checks)
    before = removers()
    with harness.Target("exact.py") as target:
        with harness.Recording([target.pid], "--perf-events", roles=ROLES) as recording:
            rows = target.ask(do="kinds", count=500, names=[
                "methods.noargs", "slots.heap_method_noargs", "callbacks.nested_callback"])
            status = recording.stop()
            still = bool(removers() - before)
            report = recording.report()
    sites = sum(library["sites"] for library in report["processes"][0]["libraries"])
    checks.saw("%d sites, recording after %.2f s, report after %.2f s" % (
        sites, recording.recording_seconds, recording.stop_seconds))
    checks.that(status == 0 and still, "profiler ended with %d without waiting for the kernel, which goes on: %s" % (
        status, still))
    harness.check_truth(checks, report, rows)
    harness.check_lossless(checks, report)
    checks.finish()


if __name__ == "__main__":
    main()
