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
            truth = json.loads(target.out.wait("{", 120) or "{}")
            status = recording.stop()
            return truth, status, recording.report()


def main():
    tag, hz = sys.argv[1], sys.argv[2]
    harness.need_root_and_profiler()
    checks = harness.Checks()
    truth, status, report = record(tag, hz)
    checks.that(status == 0, "profiler ended with %d" % status)
    for line, true_ns in truth["io"].items():
        seen_ns = sum(row["io_ns"] for row in report["lines"] if row["line"] == int(line) and
                      os.path.basename(row["file"]) == os.path.basename(truth["file"]))
        checks.that(abs(seen_ns - true_ns) < 0.03 * true_ns,
                    "read of a pipe: waited %.3f s, samples say %.3f" % (true_ns / 1e9, seen_ns / 1e9))
    slept_ns = sum(row["sleep_ns"] for row in report["lines"])
    checks.that(abs(slept_ns - truth["sleep_ns"]) < 0.03 * truth["sleep_ns"],
                "threads slept %.3f s, samples say %.3f" % (truth["sleep_ns"] / 1e9, slept_ns / 1e9))
    ran_ns = sum(row[kind] for row in report["lines"] for kind in RUNNING)
    checks.that(ran_ns < 2 * truth["cpu_ns"], "ran %.3f s, samples say %.3f: not twice as much" % (
        truth["cpu_ns"] / 1e9, ran_ns / 1e9))
    checks.finish()


if __name__ == "__main__":
    main()
