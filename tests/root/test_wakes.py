#!/usr/bin/python3
"""Samples of a program that mostly waits and wakes up often: test_wakes.py TAG HZ. Each of its waits must have
ended when it did, also where the kernel does not tell that a thread runs again, and ticks must not stand for
the time that the machine idled."""

import json
import os
import sys

import harness

RUNNING = ("python_ns", "native_ns", "system_ns")


def record(tag, hz):
    with harness.Target("wakes.py", tag) as target:
        with harness.Recording([target.pid], "--sample-hz", hz, roles=[]) as recording:
            target.say("go")
            truth = json.loads(target.out.wait("{", harness.PATIENCE_SECONDS) or "{}")
            status = recording.stop()
            return truth, status, recording.report()


def check_waits(checks, what, rows, kind, true_ns):
    """The program's own clock goes on until it runs again: until a CPU is free, and the interpreter's lock."""
    seen_ns = sum(row[kind] for row in rows)
    late_ns = sum(row["run_queue_ns"] + row["lock_ns"] for row in rows if row[kind])
    checks.that(-0.03 * true_ns - late_ns < seen_ns - true_ns < 0.03 * true_ns,
                "%s %.3f s, samples say %.3f, and %.3f of not yet running" % (
                    what, true_ns / 1e9, seen_ns / 1e9, late_ns / 1e9))


def main():
    tag, hz = sys.argv[1], sys.argv[2]
    harness.need_root_and_profiler()
    checks = harness.Checks()
    truth, status, report = record(tag, hz)
    checks.that(status == 0, "profiler ended with %d" % status)
    for line, true_ns in truth["io"].items():
        rows = [row for row in report["lines"] if row["line"] == int(line) and
                os.path.basename(row["file"]) == os.path.basename(truth["file"])]
        check_waits(checks, "read of a pipe: waited", rows, "io_ns", true_ns)
    check_waits(checks, "threads slept", report["lines"], "sleep_ns", truth["sleep_ns"])
    ran_ns = sum(row[kind] for row in report["lines"] for kind in RUNNING)
    checks.that(ran_ns < 2 * truth["cpu_ns"], "ran %.3f s, samples say %.3f: not twice as much" % (
        truth["cpu_ns"] / 1e9, ran_ns / 1e9))
    checks.finish()


if __name__ == "__main__":
    main()
