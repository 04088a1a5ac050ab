#!/usr/bin/python3
"""kill -9 of the profiler leaves nothing; two profilers at once both count.

RLS_KILL_ROUNDS (10) sets how often the profiler is killed.
"""

import os
import random
import signal
import subprocess
import time

import harness

CALLS = 20000
SCRIPT = ("import sys, time\nsys.path.insert(0, %r)\nimport truthsim\nf = truthsim.noargs\n"
          "print('ready', flush=True)\n"
          "for line in sys.stdin:\n"
          "    count = int(line)\n    start = time.perf_counter()\n"
          "    total = sum(f() for _ in range(count))\n"
          "    print('done', total, time.perf_counter() - start, flush=True)\n")


def measure(target, count=CALLS):
    """(sum of the answers, seconds) of so many calls."""
    target.say(str(count))
    line = target.out.wait("done", 60)
    _, total, seconds = line.split()
    return int(total), float(seconds)


def links():
    done = subprocess.run(["bpftool", "link", "show"], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, universal_newlines=True)
    return done.stdout.count("perf_event") + done.stdout.count("uprobe_multi")


def killed_again_and_again(checks):
    rounds = int(os.environ.get("RLS_KILL_ROUNDS", "10"))
    before_links = links()
    with harness.Process([harness.interpreter(), "-c", SCRIPT % harness.modules()]) as target:
        target.out.wait("ready", 20)
        measure(target)
        before = min(measure(target)[1] for _ in range(5))
        right, live = 0, 0
        for number in range(rounds):
            with harness.Recording([target.pid], live=False) as recording:
                if number % 2:
                    live += recording.err.wait("recording", 60) is not None
                target.say(str(CALLS // 4))
                time.sleep(random.random() * 0.3)  # any moment: attaching, attached, draining
                os.kill(recording.pid, signal.SIGKILL)
                recording.wait()
                right += int(target.out.wait("done", 60).split()[1]) == CALLS // 4
        time.sleep(0.3)
        after = min(measure(target)[1] for _ in range(5))
    checks.that(right == rounds and live == rounds // 2,
                "%d of %d answers right, %d kills while recording" % (right, rounds, live))
    checks.saw("20000 calls: %.4f s before, %.4f s after; %d links before, %d after" % (
        before, after, before_links, links()))
    checks.that(after < before * 1.5 + 0.001, "the target has its unprofiled speed again")


def trace_of_the_killed(checks):
    """A trace whose recorder was killed is read up to its last chunk, and says so."""
    with harness.Target("exact.py") as target:
        with harness.Recording([target.pid]) as recording:
            target.ask(do="kinds", count=300, seconds=120)
            time.sleep(1.5)
            recording.child.kill()
            recording.wait()
            done = harness.run("report", recording.trace, "--format", "json")
            size = os.path.getsize(recording.trace)
    checks.that(done.returncode == 3 and "simulator" in done.stdout,
                "killed recorder's trace of %d bytes: status %d, %r" % (
                    size, done.returncode, done.stderr[:150]))


def two_at_once(checks):
    with harness.Target("exact.py") as target:
        with harness.Recording([target.pid]) as first, harness.Recording([target.pid]) as second:
            rows = target.ask(do="kinds", count=100, seconds=120)
            statuses = [first.stop(), second.stop()]
            reports = [first.report(), second.report()]
    checks.that(statuses == [0, 0], "two profilers: statuses %s" % statuses)
    for report in reports:
        harness.check_truth(checks, report, rows)
        harness.check_sums(checks, report)


def main():
    harness.need_root_and_profiler()
    checks = harness.Checks()
    killed_again_and_again(checks)
    trace_of_the_killed(checks)
    two_at_once(checks)
    checks.finish()


if __name__ == "__main__":
    main()
