#!/usr/bin/python3
"""Samples at the scheduler's ticks: none of its own interrupts for a program that just runs, or whose waits
come many at once, and a timer for one that keeps step with the ticks, whose lines have their true shares all
the same.

When a program begins to run after a wait is its own affair only where no other is in its way: those that
wait have real-time priority here. How long one has run is asked of its own CPU clock."""

import collections
import json
import os

import harness

# Each does its work once, says how long it has run, and waits. (Who asks how long more often than this is taken off
# a busy CPU between the ticks.)
RUNS = """
import json, sys, time
print("ready", flush=True)
wanted = float(sys.stdin.readline())
begin = time.thread_time()
while time.thread_time() < begin + wanted:
    for _ in range(1000000): pass
print(json.dumps({"ran": time.thread_time() - begin}), flush=True)
sys.stdin.readline()
"""

REAL_TIME = """
import os
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
"""

# Two lines, each for 2 ms of every 8, from a grid of instants that ticks are on as well.
PACED = REAL_TIME + """
import json, sys, time
ran = {}
def spin(name, until):
    begin = time.thread_time()
    while time.monotonic() < until: pass
    ran[name] = ran.get(name, 0) + time.thread_time() - begin
def first(until):
    spin("first", until)
def second(until):
    spin("second", until)
print("ready", flush=True)
rounds = int(float(sys.stdin.readline()) / 0.008)
for _ in range(rounds):
    due = (int(time.monotonic() / 0.008) + 1) * 0.008 + 0.001
    time.sleep(max(0, due - time.monotonic()))
    begun = time.monotonic()
    first(begun + 0.002)
    second(begun + 0.004)
print(json.dumps(ran), flush=True)
sys.stdin.readline()
"""

# Two threads hand a byte to and fro, within a fraction of the time between two ticks, now and then.
BURSTS = REAL_TIME + """
import os, random, sys, threading, time
ping, pong = os.pipe(), os.pipe()
def echo():
    while True:
        os.write(pong[1], os.read(ping[0], 1))
threading.Thread(target=echo, daemon=True).start()
print("ready", flush=True)
for _ in range(int(float(sys.stdin.readline()) / 0.25)):
    for _ in range(12):
        os.write(ping[1], b"x")
        os.read(pong[0], 1)
    time.sleep(random.uniform(0.2, 0.3))
print("{}", flush=True)
sys.stdin.readline()
"""


def timers_of(pid):
    """How many perf events it has."""
    found = 0
    for name in os.listdir("/proc/%d/fd" % pid):
        try:
            found += "perf_event" in os.readlink("/proc/%d/fd/%s" % (pid, name))
        except OSError:
            pass
    return found


def record(program, seconds, *options):
    """How many timers the recorder had in the end, what the program said, and the report; prints why there are any."""
    with harness.Process([harness.interpreter(), "-c", program]) as target:
        target.out.wait("ready", harness.PATIENCE_SECONDS)
        with harness.Recording([target.pid], "-v", *options, "--overhead-budget", "none",
                               roles=[]) as recording:
            target.say(str(seconds))
            answer = target.out.wait("{", harness.PATIENCE_SECONDS)
            if answer is None:
                raise RuntimeError("the program has not done its work: %s" % target.err.text())
            timers = timers_of(recording.pid)
            recording.stop()
            for line in recording.err.seen:
                if "timer of their own" in line:
                    print("      " + line.strip(), flush=True)
            return timers, json.loads(answer), recording.report()


def who_runs_has_no_timer(checks, others):
    timers, answer, report = record(RUNS, 2)
    samples = sum(row["samples"] for row in report["samples"] if row["kind"] in
                  ("python", "runtime", "native", "system"))
    checks.that(timers == others, "no timers for 199 samples a second")
    checks.that(0.5 < samples / (199 * answer["ran"]) < 1.5, "%d samples while it ran, for %.2f s" % (
        samples, answer["ran"]))
    timers, _, _ = record(RUNS, 0.5, "--sample-hz", "1999")
    checks.that(timers > others, "timers for 1999")


def who_waits_in_bursts_has_none(checks, others):
    timers, _, _ = record(BURSTS, 4)
    checks.that(timers == others, "no timers for a program that waits many times at once")


def who_keeps_step_has_one(checks, others):
    timers, ran, report = record(PACED, 5)
    checks.that(timers > others, "timers for a program that is paced by the ticks' clock")
    shares = collections.Counter()
    for row in report["functions"]:
        if row["function"] in ("first", "second"):
            shares[row["function"]] = row["total_ns"] - row["waiting_ns"]
    total = sum(shares.values())
    truth = ran["first"] / (ran["first"] + ran["second"])
    checks.that(total and abs(shares["first"] / total - truth) < 0.15, "lines have their shares, the first %.2f: %s ms" % (
        truth, {name: ns // 1000000 for name, ns in shares.items()}))


def main():
    harness.need_root_and_profiler()
    checks = harness.Checks()
    others, _, _ = record(RUNS, 0.1, "--sample-hz", "0") # such as tell of what is mapped
    who_runs_has_no_timer(checks, others)
    who_waits_in_bursts_has_none(checks, others)
    who_keeps_step_has_one(checks, others)
    checks.finish()


if __name__ == "__main__":
    main()
