#!/usr/bin/python3
"""Helper threads have the operation that is open while they work, and enter none."""

import collections
import json
import os
import sqlite3
import tempfile

import harness

HERE = os.path.dirname(os.path.abspath(__file__))


def record(shape, folder=None):
    """(what the job says of its helpers, the report)"""
    with harness.Target("helpers_job.py", arguments=["--libraries", harness.TRUTH], folder=HERE) as target:
        with harness.Recording([target.pid], folder=folder) as recording:
            target.say(shape)
            said = json.loads(target.out.wait("[", harness.PATIENCE_SECONDS) or "null")
            status = recording.stop()
            assert status == 0 and said is not None, (status, said, recording.err.text())
            return said, recording.report()


def entries(report):
    found = collections.Counter()
    for row in report["operations"]:
        found[row["operation"]] += row["entries"]
    return dict(found)


def check_operations(checks, shape, expected):
    """expected: entries by operation."""
    said, report = record(shape)
    times = collections.defaultdict(collections.Counter)
    for row in report["breakdown"]:
        if row["category"] == "simulator":
            times[row["tid"]][row["operation"]] += row["wall_ns"]
    for helper in said:
        got = times[helper["tid"]]
        checks.that(got[helper["operation"]] >= 0.97 * sum(got.values()) > 0,
                    "%s: a helper worked in %r: %s" % (shape, helper["operation"], dict(got)))
    checks.that(entries(report) == expected, "%s: entries %s" % (shape, entries(report)))


def check_compare(checks):
    with tempfile.TemporaryDirectory(prefix="rls-") as folder:
        for shape in ("alone", "helped"):
            os.mkdir(os.path.join(folder, shape))
            _, report = record(shape, os.path.join(folder, shape))
            checks.that(entries(report) == {"infer": 50, "other": 50},
                        "%s: entries %s" % (shape, entries(report)))
        traces = [os.path.join(folder, shape, "trace") for shape in ("alone", "helped")]
        # How long they take differs, as helpers take the CPUs; how many they are does not.
        compared = json.loads(harness.run("compare", "--format", "json", *traces).stdout)
        calls = {row["operation"]: (row["a"]["calls"], row["b"]["calls"]) for row in compared["comparisons"][0]["rows"]
                 if row["operation"] and row["category"] == "total"}
        checks.that(calls == {"infer": (50, 50), "other": (50, 50)}, "compare counts the same calls: %s" % calls)
        base = os.path.join(folder, "report.db")
        harness.run("report", "--format", "sqlite", "-o", base, traces[1])
        with sqlite3.connect(base) as connection:
            found = dict(connection.execute(
                "select operation, sum(entries) from operations group by operation"))
        checks.that(found == {"infer": 50, "other": 50}, "in the database: %s" % found)
        dumped = [json.loads(line) for line in harness.run("dump", traces[1]).stdout.splitlines()]
        stacks = [event for event in dumped if event["event"] == "operation" and event["stack"]]
        checks.that(all("continued" in event for event in stacks if event["tid"] != event["pid"]),
                    "helpers' operations are continued in the dump")


def main():
    harness.need_root_and_profiler()
    checks = harness.Checks()
    check_operations(checks, "after_a_worker", {"worker": 1})
    check_operations(checks, "after_main", {"main": 1})
    check_operations(checks, "within_main", {"outer": 1, "inner": 1})
    check_operations(checks, "own", {"outer": 2})
    check_operations(checks, "forked", {"parent": 1, "child": 1})
    check_compare(checks)
    checks.finish()


if __name__ == "__main__":
    main()
