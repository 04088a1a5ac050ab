#!/usr/bin/python3
"""On-CPU time of operations, against the thread's own clock: a wait counts where it was, not where
the next call of a library is. And waits for a CPU: each is in the line in which it was."""

import collections
import json
import os

import harness

HERE = os.path.dirname(os.path.abspath(__file__))


# It shares its CPU with two others, so that it is taken off some ten times in each tenth of a second.
CROWDED = """
import os, sys, time
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
print("ready", flush=True)
sys.stdin.readline()
begin = time.thread_time()
while time.thread_time() < begin + 0.6:
    for _ in range(100000): pass
print("done", flush=True)
sys.stdin.readline()
"""
CROWD = """
import os
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
while True: pass
"""


def waits_for_a_cpu_are_sampled(checks):
    """Within a budget too, all of them: one that is left out is missing in its line."""
    python = harness.interpreter()
    with harness.Process([python, "-c", CROWDED]) as target, harness.Process([python, "-c", CROWD]), \
            harness.Process([python, "-c", CROWD]):
        target.out.wait("ready", harness.PATIENCE_SECONDS)
        with harness.Recording([target.pid], "--overhead-budget", "2%", roles=[]) as recording:
            target.say("go")
            target.out.wait("done", harness.PATIENCE_SECONDS)
            recording.stop()
            dump = harness.run("dump", recording.trace)
    events = [json.loads(line) for line in dump.stdout.splitlines()]
    waits = [event for event in events if event["event"] == "sample" and event.get("kind") == "cpu"]
    left_out = sum(event.get("every", 1) - 1 for event in waits)
    checks.that(len(waits) > 20 and left_out < 0.1 * len(waits), "%d waits for a CPU sampled, some %d left out" % (
        len(waits), left_out))


def main():
    harness.need_root_and_profiler()
    checks = harness.Checks()
    waits_for_a_cpu_are_sampled(checks)
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
