#!/usr/bin/python3
"""Operations by functions on sampled stacks (--operation): test_operations.py TAG.

A program that knows how long it was in which is divided as it says, within the stated errors,
and as the same program is when it is annotated; each category sums to what was traced."""

import collections
import json
import sys

import harness

RULES = ["--operation", "simulation=*.step", "--operation", "training=operations.py:*.train"]
KEYS = [(operation, category) for operation in ("simulation", "training", "")
        for category in ("python", "simulator")]


def record(tag, *arguments, options=RULES):
    with harness.Target("operations.py", tag, ["--libraries", harness.TRUTH, *arguments]) as target:
        with harness.Recording([target.pid], "--sample-hz", "499", *options) as recording:
            target.say("go")
            truth = json.loads(target.out.wait("{", harness.PATIENCE_SECONDS) or "{}")
            status = recording.stop()
            return truth, status, recording.report()


def rows_of(report):
    return {(row["operation"], row["category"]): row for row in report["breakdown"]}


def traced_shares(report):
    """By category, over operations: what --operation does not touch."""
    sums = collections.Counter()
    for row in report["breakdown"]:
        sums[row["category"]] += row["wall_ns"]
    return sums


def check_truth(checks, truth, report):
    rows, whole = rows_of(report), sum(thread["wall_ns"] for thread in report["threads"])
    # Waiting to begin and to end is no operation's, and not the program's truth.
    outside = max(0, whole - sum(sum(times.values()) for times in truth.values()))
    for operation, category in KEYS:
        true_ns = truth.get(operation, {}).get(category, 0)
        row = rows.get((operation, category), {"wall_ns": 0, "error_ns": 0, "method": "sampled"})
        allowed_ns = 1.5 * row["error_ns"] + 0.02 * whole
        checks.that(-allowed_ns <= row["wall_ns"] - true_ns <= allowed_ns + (0 if operation else outside),
                    "%s, %s: truth %.0f ms, samples %.0f ms, error %.0f ms" % (
                        operation or "none", category, true_ns / 1e6, row["wall_ns"] / 1e6,
                        row["error_ns"] / 1e6))
        checks.that(row["method"] == "sampled", "its method is %s" % row["method"])
        if operation:
            checks.that(row["error_ns"] < 0.15 * whole, "its error is no excuse")


def off_by(report, truth, operation, category):
    """How far a row's share of all is from the truth of its own run."""
    return (rows_of(report)[operation, category]["wall_ns"] - truth[operation][category]) / sum(
        sum(times.values()) for times in truth.values())


def check_annotated(checks, truth, report, sampled_truth, sampled):
    """The machine gives no two runs the same shares, so each is held against its own truth."""
    for operation, category in KEYS[:4]:
        row, found = rows_of(report)[operation, category], rows_of(sampled)[operation, category]
        whole_ns = sum(sum(times.values()) for times in sampled_truth.values())
        annotated_off = off_by(report, truth, operation, category)
        sampled_off = off_by(sampled, sampled_truth, operation, category)
        allowed = 1.5 * found["error_ns"] / whole_ns + 0.03
        checks.that(row["method"] == "traced", "annotated, %s is %s" % (operation, row["method"]))
        checks.that(abs(annotated_off - sampled_off) <= allowed,
                    "%s, %s: annotated %+.1f %%, by samples %+.1f %% off, allowed %.1f apart" % (
                        operation, category, 100 * annotated_off, 100 * sampled_off, 100 * allowed))


def check_cross_check(checks, report):
    """By category, what ran as traced and as sampled."""
    rows = {row["category"]: row for row in report["cross_check"]}
    traced_ns = sum(row["traced_ns"] for row in rows.values())
    sampled_ns = sum(row["sampled_ns"] for row in rows.values())
    for category in ("python", "simulator"):
        row = rows[category]
        traced, sampled = row["traced_ns"] / traced_ns, row["sampled_ns"] / sampled_ns
        checks.that(abs(traced - sampled) <= 1.5 * row["error_ns"] / sampled_ns + 0.02,
                    "%s: traced %.1f %%, sampled %.1f %%" % (category, 100 * traced, 100 * sampled))
        checks.that(row["unseen_ns"] + row["probes_ns"] <= 0.1 * sampled_ns,
                    "unseen %.1f ms, probes %.1f ms of it" % (
                        row["unseen_ns"] / 1e6, row["probes_ns"] / 1e6))
    kinds = sum(row["ns"] for row in report["samples"]
                if row["kind"] in ("python", "runtime", "native", "system", "probe"))
    checks.that(kinds == sampled_ns, "every running sample is in it: %.3f s" % (kinds / 1e9))


def check_refusals(checks):
    for options, word in ((["--operation", "step"], "NAME=FUNCTION"),
                          (["--operation", "=x"], "NAME=FUNCTION"),
                          (["--operation", "a=file:"], "NAME=FUNCTION"),
                          (["--operation", "a=b", "--sample-hz", "0"], "--sample-hz 0"),
                          (["--verify", "--sample-hz", "0"], "--sample-hz 0")):
        done = harness.run("attach", "--pid", "1", *options)
        checks.that(done.returncode and word in done.stderr and len(done.stderr.splitlines()) < 3,
                    "%s is refused: %s" % (" ".join(options), done.stderr.strip()))


def main():
    tag = sys.argv[1]
    harness.need_root_and_profiler()
    checks = harness.Checks()
    truth, status, report = record(tag)
    checks.that(status == 0, "profiler ended with %d" % status)
    harness.check_sums(checks, report)
    check_truth(checks, truth, report)
    check_cross_check(checks, report)
    checks.that(all(row["operation"] == "" for row in report["transitions"]) and report["transitions"],
                "whose the transitions are is not known")
    lines = collections.Counter()
    for row in report["lines"]:
        lines[row["operation"]] += row["samples"]
    checks.that(lines["simulation"] > 200 and lines["training"] > 200, "lines have operations: %s" % dict(lines))
    annotated_truth, status, annotated = record(tag, "--annotate")
    checks.that(status == 0, "profiler ended with %d" % status)
    harness.check_sums(checks, annotated)
    check_annotated(checks, annotated_truth, annotated, truth, report)
    check_refusals(checks)
    checks.finish()


if __name__ == "__main__":
    main()
