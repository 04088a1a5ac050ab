#!/usr/bin/python3
"""A recorder that is held up loses events: every one is counted, their threads are `unknown`
meanwhile, or what samples say, and the target does not notice."""

import json
import os
import signal

import harness

SECONDS = 2.5               # of the target's CPU time, in which it does the same on any machine
HELD_SECONDS = 1.5          # of it


def stretches(trace):
    """How often a thread's category was unknown for a while, and for how long in all. (A thread that has left Python
    ends so.)"""
    since, count, total_ns = {}, 0, 0
    for line in harness.run("dump", trace).stdout.splitlines():
        if '"category"' not in line:
            continue
        event = json.loads(line)
        if event.get("event") != "category":
            continue
        thread = event["pid"], event["tid"]
        if event["category"] == "unknown":
            since[thread] = event["time_ns"]
        elif thread in since:
            count += 1
            total_ns += event["time_ns"] - since.pop(thread)
    return count, total_ns


def other_thread(pid):
    """Not the first, which waits for it."""
    return max((int(tid) for tid in os.listdir("/proc/%d/task" % pid) if int(tid) != pid), default=0)


def losses_of_the_killed(checks):
    """Totals are written as one goes, so that a trace without an end says what it lacks."""
    command = dict(do="load", kinds=["load.fastest"], workers=0, threads=1, seconds=2 * SECONDS, cpu=True)
    with harness.Target("load.py", arguments=["--libraries", harness.TRUTH]) as target:
        with harness.Recording([target.pid]) as recording:
            target.say(json.dumps(command))
            tid = harness.eventually(lambda: other_thread(target.pid))
            os.kill(recording.pid, signal.SIGSTOP)
            harness.let_run(target.pid, HELD_SECONDS, [tid])
            os.kill(recording.pid, signal.SIGCONT)
            noted = harness.eventually(lambda: '"event":"loss"' in harness.run("dump", recording.trace).stdout)
            recording.child.kill()
            recording.wait()
            if not noted:
                checks.saw("all transitions fit the ring for %.1f s" % HELD_SECONDS)
                return
            done = harness.run("report", recording.trace, "--format", "json")
    report = json.loads(done.stdout)
    dropped = {loss["buffer"]: loss["dropped"] for loss in report["losses"]}
    checks.that(done.returncode == 3 and dropped.get("transitions"),
                "killed: status %d, losses %s" % (done.returncode, dropped))
    checks.that(any("events were lost" in text for text in report["warnings"]),
                "and a warning says so: %s" % report["warnings"])


def held_up(checks, *arguments):
    command = dict(do="load", kinds=["load.fastest"], workers=0, threads=1, seconds=SECONDS, cpu=True)
    with harness.Target("load.py", arguments=["--libraries", harness.TRUTH]) as target:
        with harness.Recording([target.pid], *arguments) as recording:
            target.say(json.dumps(command))
            tid = harness.eventually(lambda: other_thread(target.pid))
            harness.let_run(target.pid, 0.5, [tid])
            os.kill(recording.pid, signal.SIGSTOP)
            harness.let_run(target.pid, HELD_SECONDS, [tid])
            os.kill(recording.pid, signal.SIGCONT)
            answer = target.out.wait("[", harness.PATIENCE_SECONDS)
            checks.that(answer is not None, "the target went on")
            status = recording.stop()
            report = recording.report()
            count, unknown_ns = stretches(recording.trace)
    truth = sum(json.loads(answer)[0]["truth"].values())
    seen = sum(entry["count"] for entry in report["transitions"])
    dropped = {loss["buffer"]: loss["dropped"] for loss in report["losses"]}
    checks.that(status == 0, "profiler ended with %d" % status)
    if not dropped["transitions"]:
        harness.skip("%d transitions fit the ring for %.1f s" % (truth, HELD_SECONDS))
    checks.that(dropped["control"] == 0, "nothing else is lost: %s" % dropped)
    # The first event after a stretch comes out of unknown, which is no transition.
    checks.that(seen + dropped["transitions"] + count == truth,
                "%d seen, %d dropped, %d first after it: %d in truth" % (
                    seen, dropped["transitions"], count, truth))
    # More than one where the recorder, let go on, had too little of a busy machine at first.
    warnings = [text for text in report["warnings"] if "%d transitions lost (gaps: %d)" % (
            dropped["transitions"], count) in text]
    checks.that(len(warnings) == 1, "the report says on which thread: %s" % warnings)
    harness.check_sums(checks, report)
    return unknown_ns, [row for row in report["breakdown"] if row["tid"] == tid]


def main():
    harness.need_root_and_profiler()
    checks = harness.Checks()
    losses_of_the_killed(checks)
    unknown_ns, rows = held_up(checks, "--sample-hz", "0")
    rows_ns = sum(row["wall_ns"] for row in rows if row["category"] == "unknown")
    checks.that(unknown_ns > 0 and rows_ns >= unknown_ns,
                "%.3f s unknown in the trace, %.3f in the report" % (unknown_ns / 1e9, rows_ns / 1e9))
    unknown_ns, rows = held_up(checks)
    rows_ns = sum(row["wall_ns"] for row in rows if row["method"] == "sampled")
    left_ns = sum(row["wall_ns"] for row in rows if row["category"] == "unknown")
    checks.that(unknown_ns > 0 and rows_ns >= unknown_ns and left_ns < unknown_ns / 20,
                "%.3f s unknown in the trace, %.3f in rows by samples, %.3f unknown in the report" % (
                    unknown_ns / 1e9, rows_ns / 1e9, left_ns / 1e9))
    checks.finish()


if __name__ == "__main__":
    main()
