#!/usr/bin/python3
"""True times: test_times.py TAG. Every row within 1 % of the truth, or 200 us, or half of
what the probes at its edges cost by the calibration: the truth is taken inside the calls, and
what a trap costs on its way in and out is outside of them (250 to 1000 ns, by the machine).

The truth takes what a stall at a probe costs (a busy machine, others attaching to the same
files) for Python's, the report for the category that was entered last. So a recording with a
row outside is made again, at most ATTEMPTS times: an error of ours is there every time."""

import collections
import json
import os
import sys

import harness

ATTEMPTS = 4


def rows_by_key(report):
    found = collections.Counter()
    for row in report["breakdown"]:
        found[row["tid"], row["phase"], row["operation"], row["category"]] += row["wall_ns"]
    return found


def edge_costs(report):
    """{row: ns} by what a hit costs on the average, times the changes from and to the row."""
    mean_ns = report["overhead"]["estimated_ns"] / max(report["overhead"]["hits"], 1)
    found = collections.Counter()
    for row in report["transitions"]:
        for side in ("from", "to"):
            found[row["tid"], row["phase"], row["operation"], row[side]] += (
                row["count"] * mean_ns)
    return found


def compare(checks, report, truth):
    found = rows_by_key(report)
    costs = edge_costs(report)
    worst = 0.0
    for row in truth:
        key = (row["tid"], row["phase"], row["operation"], row["category"])
        error_ns = abs(found[key] - row["ns"])
        worst = max(worst, error_ns / max(row["ns"], 1))
        allowed_ns = max(row["ns"] * 0.01, 200e3, costs[key] / 2)
        checks.that(error_ns <= allowed_ns, "%s/%s/%s: truth %.3f ms, reported %.3f ms" % (
            *key[1:], row["ns"] / 1e6, found[key] / 1e6))
    known = {(row["tid"], row["phase"], row["operation"], row["category"]) for row in truth}
    strange_ns = {key: ns for key, ns in found.items()
                  if key[2] and key not in known and ns > 200e3}
    checks.that(not strange_ns, "no other row inside operations above 200 us: %s" % strange_ns)


def attempt(checks, tag):
    roles = ["--simulator", "truthsim*", "--backend", "truthback*", "--native", "libtruthc.so*"]
    with harness.Target("times.py", tag, ["--libraries", harness.TRUTH]) as target:
        with harness.Recording([target.pid], roles=roles) as recording:
            target.say("go")
            truth = json.loads(target.out.wait("[", 60) or "[]")
            checks.that(truth, "the target told %d rows" % len(truth))
            status = recording.stop()
            report = recording.report()
    checks.that(status == 0, "profiler ended with %d" % status)
    harness.check_sums(checks, report)
    harness.check_lossless(checks, report)
    times = harness.Checks()
    compare(times, report, truth)
    return times.failed


def main():
    tag = sys.argv[1]
    harness.need_root_and_profiler()
    if not os.path.isdir(os.path.join(os.environ.get("RLS_PYTHONPATH", ""), "rlscope")):
        harness.skip("no rlscope package in RLS_PYTHONPATH")
    checks = harness.Checks()
    outside = [attempt(checks, tag)]
    while outside[-1] and len(outside) < ATTEMPTS:
        outside.append(attempt(checks, tag))
    checks.that(outside[-1] == 0, "rows outside, by attempt: %s" % outside)
    checks.finish()


if __name__ == "__main__":
    main()
