#!/usr/bin/python3
"""A recorder that is held up until the control ring is full: what it then missed of operations,
children, ends of threads and processes is found again."""

import json
import os
import signal
import time

import harness

CALLS = 1000


def step(target, name):
    target.say(name)
    line = target.out.wait("[", harness.PATIENCE_SECONDS)
    if line is None:
        raise RuntimeError("no answer to %s: %s" % (name, target.err.text()))
    return json.loads(line)[0]


def main():
    harness.need_root_and_profiler()
    checks = harness.Checks()
    with harness.Target("missed.py") as target:
        with harness.Recording([target.pid], "-v") as recording:
            start = time.monotonic()
            known = step(target, "begin")
            time.sleep(0.5)
            os.kill(recording.pid, signal.SIGSTOP)
            known.update(step(target, "flood"))
            os.kill(recording.pid, signal.SIGCONT)
            # Not if the control ring held it all.
            harness.eventually(lambda: any("is known again" in line for line in recording.err.seen))
            resumed = time.monotonic()
            time.sleep(2)
            step(target, "late")
            time.sleep(2)
            status = recording.stop()
            report = recording.report()
    dropped = {loss["buffer"]: loss["dropped"] for loss in report["losses"]}
    checks.saw("dropped: %s" % dropped)
    checks.that(status == 0, "profiler ended with %d" % status)
    if not dropped["control"]:
        harness.skip("the control ring held it all")
    checks.that(dropped["transitions"] == 0, "no transition is lost")

    processes = {process["pid"]: process for process in report["processes"]}
    missed = processes.get(known["missed"], {})
    checks.that(missed.get("name", "").startswith("python") and missed.get("ppid") == target.pid,
                "the child forked meanwhile is described: %s" % missed)
    seen = harness.flows(report, of_process=True)[known["missed"]]["python->simulator"]
    checks.that(seen == 2 * CALLS, "its calls: %d of %d" % (seen, 2 * CALLS))

    longest_ns = (resumed - start) * 1e9
    for thread in report["threads"]:
        if thread["tid"] in (known["thread"], known["early"]):
            checks.that(thread["wall_ns"] < longest_ns, "thread %d, which ended meanwhile, lasted %.2f s" % (
                thread["tid"], thread["wall_ns"] / 1e9))
    operations = {}
    for row in report["breakdown"]:
        if row["tid"] == target.pid and row["resource"] == "cpu":
            operations[row["operation"]] = operations.get(row["operation"], 0) + row["wall_ns"]
    checks.that(any("late" in name and ns > 2e9 for name, ns in operations.items()),
                "the operation entered meanwhile: %s" % operations)
    harness.check_sums(checks, report)
    checks.finish()


if __name__ == "__main__":
    main()
