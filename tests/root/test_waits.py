#!/usr/bin/python3
"""On-CPU time of operations, against the thread's own clock: a wait counts where it was, not where
the next call of a library is."""

import collections
import json
import os

import harness

HERE = os.path.dirname(os.path.abspath(__file__))


def main():
    harness.need_root_and_profiler()
    checks = harness.Checks()
    with harness.Target("waits_job.py", arguments=["--libraries", harness.TRUTH], folder=HERE) as target:
        with harness.Recording([target.pid]) as recording:
            target.say("go")
            truth = json.loads(target.out.wait("[", harness.PATIENCE_SECONDS) or "[{}]")[0]
            status = recording.stop()
            report = recording.report()
    checks.that(status == 0, "profiler ended with %d" % status)
    found = collections.Counter()
    for row in report["breakdown"]:
        if row["tid"] == target.pid:
            found[row["operation"]] += row["on_cpu_ns"]
    harness.check_sums(checks, report)
    checks.that(len(truth) == 4, "the job reported %d operations" % len(truth))
    for operation, true_ns in truth.items():
        # An edge lies between two readings of a clock, and waits below 50 us are reported together.
        allowed_ns = 0.03 * true_ns + 1000 * 1000
        checks.that(abs(found[operation] - true_ns) <= allowed_ns, "%s: on CPU %.2f ms, reported %.2f ms" % (
            operation, true_ns / 1e6, found[operation] / 1e6))
    checks.finish()


if __name__ == "__main__":
    main()
