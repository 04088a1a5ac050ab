#!/usr/bin/python3
"""Samples by line: test_lines.py TAG [HZ]. What each line of a program that measures itself ran
and waited, by kind, against what the samples say, within their own error.

A sample shows one instant, so the truth is met within the stated error, which holds
in 95 of 100 cases: twice that, and what a timer's tick and a moved thread are off by."""

import collections
import csv
import io
import json
import os
import sys

import harness

HZ = int(sys.argv[2]) if len(sys.argv) > 2 else 997
TICKS = 6
KINDS = {"python": "python_ns", "native": "native_ns", "system": "system_ns",
         "lock": "lock_ns", "sleep": "sleep_ns", "io": "io_ns"}


def record(tag):
    arguments = ["--libraries", harness.TRUTH]
    if os.environ.get("RLS_LINES_SECONDS"):     # the 20, say, by hand
        arguments += ["--seconds", os.environ["RLS_LINES_SECONDS"]]
    with harness.Target("lines.py", tag, arguments) as target:
        with harness.Recording([target.pid], "--sample-hz", str(HZ), roles=[]) as recording:
            target.say("go")
            truth = json.loads(target.out.wait("{", harness.PATIENCE_SECONDS) or "{}")
            status = recording.stop()
            lines = harness.run("report", "--by", "line", "--format", "csv", recording.trace).stdout
            return truth, status, recording.report(), list(csv.DictReader(io.StringIO(lines)))


def by_line(report, file):
    found = collections.defaultdict(collections.Counter)
    for row in report["lines"]:
        if os.path.basename(row["file"]) != os.path.basename(file):
            continue
        for kind, column in KINDS.items():
            found[row["line"]][kind] += row[column]
        found[row["line"]]["error"] += row["error_ns"]
    return found


def compare(checks, truth, found):
    tick_ns = 1e9 / HZ
    for line, kinds in sorted(truth["lines"].items(), key=lambda pair: int(pair[0])):
        seen = found[int(line)]
        for kind, true_ns in kinds.items():
            if kind not in KINDS or true_ns < 20 * tick_ns:
                continue
            allowed_ns = 2 * seen["error"] + TICKS * tick_ns + 0.01 * true_ns
            checks.that(abs(seen[kind] - true_ns) <= allowed_ns,
                        "line %s, %s: truth %.0f ms, samples %.0f ms, allowed %.0f ms apart" % (
                            line, kind, true_ns / 1e6, seen[kind] / 1e6, allowed_ns / 1e6))


def check_shares(checks, truth, found):
    """Each line's share of all per kind: within a point, but for what so many samples leave open."""
    places = [(line, kind) for line in truth["lines"] for kind in KINDS]
    true_ns = sum(truth["lines"][line].get(kind, 0) for line, kind in places)
    found_ns = sum(found[int(line)][kind] for line, kind in places)
    worst = 0
    for line, kinds in truth["lines"].items():
        for kind in KINDS:
            error = 1.5 * found[int(line)]["error"] / true_ns
            apart = abs(found[int(line)][kind] / found_ns - kinds.get(kind, 0) / true_ns)
            worst = max(worst, apart)
            if apart > 0.01 + error:
                checks.that(False, "line %s, %s: %.1f points apart" % (line, kind, 100 * apart))
    checks.that(worst < 0.05, "no share is more than %.2f points from the truth" % (100 * worst))


def check_sums(checks, report):
    lines = sum(row["python_ns"] + row["native_ns"] + row["system_ns"] + row["waiting_ns"]
                for row in report["lines"])
    kinds = sum(row["ns"] for row in report["samples"])
    checks.that(lines == kinds > 0, "lines and kinds add up to the same: %.3f s" % (lines / 1e9))
    for row in report["lines"]:
        waits = sum(row[name] for name in ("lock_ns", "io_ns", "sleep_ns", "child_ns", "gpu_ns",
                                           "run_queue_ns", "other_ns"))
        if waits != row["waiting_ns"] or row["runtime_ns"] > row["python_ns"]:
            checks.that(False, "parts add up: %s" % row)


def main():
    tag = sys.argv[1]
    harness.need_root_and_profiler()
    checks = harness.Checks()
    truth, status, report, csv_lines = record(tag)
    checks.that(status == 0, "profiler ended with %d" % status)
    checks.that(len(truth["lines"]) >= 14, "the target reported %d lines" % len(truth["lines"]))
    check_sums(checks, report)
    checks.that([(int(row["line"]), int(row["native_ns"])) for row in csv_lines] == [
        (row["line"], row["native_ns"]) for row in report["lines"]], "CSV has the same lines")
    compare(checks, truth, by_line(report, truth["file"]))
    check_shares(checks, truth, by_line(report, truth["file"]))
    functions = {row["function"].split(".")[-1]: row for row in report["functions"]}
    for name in ("python_line", "deep", "truthc_spin"):
        checks.that(name in functions, "function %s is named" % name)
    checks.that(functions.get("truthc_spin", {}).get("native") is True, "truthc_spin is native")
    harness.check_walks(checks, report)
    checks.finish()


if __name__ == "__main__":
    main()
