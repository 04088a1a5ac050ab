#!/usr/bin/python3
"""Operations that no probe hit follows are not lost with a process that ends abruptly."""

import json
import os

import harness

ALLOWED_NS = 30e6  # a child may wait for a CPU between its clock's reading and the edge


def memory_is_there_at_exit():
    """Whether a thread's end is reported before its memory is given up: Linux 6.16."""
    return tuple(int(number) for number in os.uname().release.split("-")[0].split(".")[:2]) >= (6, 16)


def check_child(checks, report, truth):
    spent = {}
    for row in report["breakdown"]:
        if row["pid"] == truth["pid"]:
            key = (row["phase"], row["operation"])
            spent[key] = spent.get(key, 0) + row["wall_ns"]
    for operation, true_ns in truth["operations"].items():
        found_ns = spent.get(("last", operation), 0)
        checks.that(abs(found_ns - true_ns) < ALLOWED_NS, "%s: %s took %.1f ms, reported %.1f ms" % (
            truth["end"], operation, true_ns / 1e6, found_ns / 1e6))
    checks.that(spent.get(("last", ""), 0) >= 45e6, "%s: what followed is no operation's" % truth["end"])


def main():
    harness.need_root_and_profiler()
    if not memory_is_there_at_exit():
        harness.skip("this kernel gives a thread's memory up before it tells of its end")
    checks = harness.Checks()
    with harness.Target("ending.py") as target:
        with harness.Recording([target.pid]) as recording:
            target.say("go")
            rows = json.loads(target.out.wait("[", harness.PATIENCE_SECONDS) or "[]")
            status = recording.stop()
            report = recording.report()
    checks.that(status == 0 and len(rows) == 4, "status %d, %d children" % (status, len(rows)))
    harness.check_sums(checks, report)
    for row in rows:
        check_child(checks, report, row)
    checks.finish()


if __name__ == "__main__":
    main()
