#!/usr/bin/python3
"""Operations around await and yield: test_async.py TAG. From 3.12 on they follow their task or
generator; before, an end that is not the innermost's is warned of."""

import collections
import json
import os
import sys

import harness

HERE = os.path.dirname(os.path.abspath(__file__))


def record(tag, shape):
    with harness.Target("async_job.py", tag, ["--libraries", harness.TRUTH], folder=HERE) as target:
        with harness.Recording([target.pid]) as recording:
            target.say(shape)
            truth = json.loads(target.out.wait("[", harness.PATIENCE_SECONDS) or "[{}]")[0]
            status = recording.stop()
            assert status == 0 and truth, (status, recording.err.text())
            return truth, recording.report()


def warnings(report):
    return [text for text in report["warnings"] if "not the innermost" in text]


def main():
    tag = sys.argv[1]
    harness.need_root_and_profiler()
    checks = harness.Checks()
    follows = tag not in ("3.8", "3.9", "3.10", "3.11", "system")
    for shape in ("rollouts", "consumed", "generators"):
        truth, report = record(tag, shape)
        found = collections.Counter()
        for row in report["breakdown"]:
            if row["category"] == "simulator":
                found[row["operation"]] += row["on_cpu_ns"]
        entries = {row["operation"]: row["entries"] for row in report["operations"]}
        checks.saw("%s: %s, reported %s, entries %s" % (shape, truth, dict(found), entries))
        if not follows:
            continue
        for operation, true_ns in truth.items():
            share, got = true_ns / sum(truth.values()), found[operation] / sum(found.values())
            checks.that(abs(share - got) < 0.03, "%s, %r: %.1f %%, reported %.1f %%" % (
                shape, operation, 100 * share, 100 * got))
        checks.that(all(count == 1 for count in entries.values()), "each was entered once")
        checks.that(not warnings(report), "no warning: %s" % report["warnings"])
    if not follows:
        checks.that(warnings(report), "ends across each other are warned of: %s" % report["warnings"])
    checks.finish()


if __name__ == "__main__":
    main()
