#!/usr/bin/python3
"""True times: test_times.py TAG. Every row within 1 % of the truth, or 200 us.

The truth takes what a stall at a probe costs (a busy machine, others attaching to the same
files) for Python's, the report for the category that was entered last. So the rows outside are
looked at in another recording, at most ATTEMPTS times: an error of ours is there every time."""

import collections
import json
import os
import sys

import harness

ATTEMPTS = 8


def rows_by_key(report):
    found = collections.Counter()
    for row in report["breakdown"]:
        found[row["tid"], row["phase"], row["operation"], row["category"]] += row["wall_ns"]
    return found


def compare(checks, report, truth):
    """The numbers of the rows that are outside, and -1 for rows that should not be there."""
    found = rows_by_key(report)
    outside = set()
    for number, row in enumerate(truth):
        key = (row["tid"], row["phase"], row["operation"], row["category"])
        error_ns = abs(found[key] - row["ns"])
        allowed_ns = max(row["ns"] * 0.01, 200e3)
        if not checks.that(error_ns <= allowed_ns, "%s/%s/%s: truth %.3f ms, reported %.3f ms" % (
            *key[1:], row["ns"] / 1e6, found[key] / 1e6)):
            outside.add(number)
    known = {(row["tid"], row["phase"], row["operation"], row["category"]) for row in truth}
    strange_ns = {key: ns for key, ns in found.items()
                  if key[2] and key not in known and ns > 200e3}
    if not checks.that(not strange_ns, "no other row inside operations above 200 us: %s" % strange_ns):
        outside.add(-1)
    return outside


def attempt(checks, tag):
    roles = ["--simulator", "truthsim*", "--backend", "truthback*", "--native", "libtruthc.so*"]
    with harness.Target("times.py", tag, ["--libraries", harness.TRUTH]) as target:
        with harness.Recording([target.pid], roles=roles) as recording:
            target.say("go")
            truth = json.loads(target.out.wait("[", harness.PATIENCE_SECONDS) or "[]")
            checks.that(truth, "the target reported %d rows" % len(truth))
            status = recording.stop()
            report = recording.report()
    checks.that(status == 0, "profiler ended with %d" % status)
    harness.check_sums(checks, report)
    harness.check_lossless(checks, report)
    return compare(harness.Checks(), report, truth)


def main():
    tag = sys.argv[1]
    harness.need_root_and_profiler()
    if not os.path.isdir(os.path.join(os.environ.get("RLS_PYTHONPATH", ""), "rlscope")):
        harness.skip("no rlscope package in RLS_PYTHONPATH")
    checks = harness.Checks()
    outside = attempt(checks, tag)
    attempts = 1
    while outside and attempts < ATTEMPTS:
        outside &= attempt(checks, tag)
        attempts += 1
    checks.that(not outside, "rows that were outside in each of %d recordings: %s" % (
        attempts, sorted(outside)))
    checks.finish()


if __name__ == "__main__":
    main()
