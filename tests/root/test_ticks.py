#!/usr/bin/python3
"""Samples at the scheduler's ticks: none of its own interrupts for a program that just runs, or whose waits
come many at once, and a timer for one that keeps step with the ticks, whose lines have their true shares all
the same."""

import collections
import os
import time

import harness

RUNS = """
import sys, time
print("ready", flush=True)
sys.stdin.readline()
while True:
    end = time.thread_time() + 0.003
    while time.thread_time() < end:
        for _ in range(100): pass
"""

# Two lines, each for 2 ms of every 8, from a grid of instants that ticks are on as well.
PACED = """
import sys, time
def spin(until):
    while time.monotonic() < until: pass
def first(until):
    spin(until)
def second(until):
    spin(until)
print("ready", flush=True)
sys.stdin.readline()
while True:
    due = (int(time.monotonic() / 0.008) + 1) * 0.008 + 0.001
    time.sleep(max(0, due - time.monotonic()))
    begun = time.monotonic()
    first(begun + 0.002)
    second(begun + 0.004)
"""

# Two threads hand a byte to and fro, within a fraction of the time between two ticks, now and then.
BURSTS = """
import os, random, sys, threading, time
ping, pong = os.pipe(), os.pipe()
def echo():
    while True:
        os.write(pong[1], os.read(ping[0], 1))
threading.Thread(target=echo, daemon=True).start()
print("ready", flush=True)
sys.stdin.readline()
while True:
    for _ in range(12):
        os.write(ping[1], b"x")
        os.read(pong[0], 1)
    end = time.monotonic() + random.uniform(0.2, 0.3)
    while time.monotonic() < end: pass
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
    with harness.Process([harness.interpreter(), "-c", program]) as target:
        target.out.wait("ready", 30)
        with harness.Recording([target.pid], *options, "--overhead-budget", "none",
                               roles=[]) as recording:
            target.say("go")
            time.sleep(seconds)
            timers = timers_of(recording.pid)
            recording.stop()
            return timers, recording.report()


def who_runs_has_no_timer(checks, others):
    timers, report = record(RUNS, 2)
    samples = sum(row["samples"] for row in report["samples"] if row["kind"] in
                  ("python", "runtime", "native", "system"))
    checks.that(timers == others, "no timers for 199 samples a second")
    checks.that(50 < samples < 2.5 * 199, "%d samples while it ran, in 2 s" % samples)
    timers, _ = record(RUNS, 0.5, "--sample-hz", "1999")
    checks.that(timers > others, "timers for 1999")


def who_waits_in_bursts_has_none(checks, others):
    timers, _ = record(BURSTS, 4)
    checks.that(timers == others, "no timers for a program that waits many times at once")


def who_keeps_step_has_one(checks, others):
    timers, report = record(PACED, 5)
    checks.that(timers > others, "timers for a program that is paced by the ticks' clock")
    shares = collections.Counter()
    for row in report["functions"]:
        if row["function"] in ("first", "second"):
            shares[row["function"]] = row["total_ns"] - row["waiting_ns"]
    total = sum(shares.values())
    checks.that(total and abs(shares["first"] / total - 0.5) < 0.15,
                "a half each: %s ms" % {name: ns // 1000000 for name, ns in shares.items()})


def main():
    harness.need_root_and_profiler()
    checks = harness.Checks()
    others, _ = record(RUNS, 0.1, "--sample-hz", "0") # such as tell of what is mapped
    who_runs_has_no_timer(checks, others)
    who_waits_in_bursts_has_none(checks, others)
    who_keeps_step_has_one(checks, others)
    checks.finish()


if __name__ == "__main__":
    main()
