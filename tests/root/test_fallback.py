#!/usr/bin/python3
"""--perf-events: the way of kernels before 6.6 gives the same exact counts.

Detaching takes a tenth of a second for each probe, so few functions are taken.
"""

import harness

ROLES = ["--simulator", "truthsim*:noargs", "--simulator", "truthsim*:callback"]


def main():
    harness.need_root_and_profiler()
    checks = harness.Checks()
    with harness.Target("exact.py") as target:
        with harness.Recording([target.pid], "--perf-events", roles=ROLES) as recording:
            rows = target.ask(do="kinds", count=500, names=[
                "methods.noargs", "slots.heap_method_noargs", "callbacks.nested_callback"])
            status = recording.stop()
            report = recording.report()
    sites = sum(library["sites"] for library in report["processes"][0]["libraries"])
    checks.saw("%d sites, recording after %.2f s, report after %.2f s" % (
        sites, recording.recording_seconds, recording.stop_seconds))
    checks.that(status == 0, "profiler ended with %d" % status)
    harness.check_truth(checks, report, rows)
    harness.check_lossless(checks, report)
    checks.finish()


if __name__ == "__main__":
    main()
