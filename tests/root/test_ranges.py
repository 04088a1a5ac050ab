#!/usr/bin/python3
"""Ranges of PyTorch's own making and somebody's, within a budget and without.

Where only PyTorch's own are seen their ends are not probed any more; somebody's that begin after that
are operations but for the first, and are as long as they were. After ten seconds it is listened now and then
whether somebody's begin: until it is they are none, after that again as long as they were."""

import json
import os

import harness

# 300 ranges of a known length, after OWN seconds in which all are PyTorch's, and what is called "first", EARLY seconds.
PROGRAM = """
import json, sys, time, torch
from torch.profiler import record_function
layer = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
print("ready", flush=True)
sys.stdin.readline()
end = time.monotonic() + OWN
while time.monotonic() < end:
    optimizer.zero_grad()
    optimizer.step()
    time.sleep(0.001)
end = time.monotonic() + EARLY
while True:
    with record_function("first"):
        time.sleep(0.002)
    if time.monotonic() >= end:
        break
time.sleep(0.5)
total = 0
for _ in range(300):
    with record_function("mine"):
        begin = time.monotonic_ns()
        optimizer.step()
        time.sleep(0.002)
        spent = time.monotonic_ns() - begin
    total += spent
print(json.dumps(total), flush=True)
sys.stdin.readline()
"""


def record(python, own, early, *options):
    """The report, how long "mine" was, and what was said."""
    program = "OWN, EARLY = %f, %f\n" % (own, early) + PROGRAM
    with harness.Process([python, "-c", program]) as target:
        if not target.out.wait("ready", 60):
            harness.skip("%s has no torch" % python)
        with harness.Recording([target.pid], "--verbose", *options, roles=[]) as recording:
            target.say("go")
            truth = json.loads(target.out.wait("", 60) or "0")
            recording.stop()
            return recording.report(), truth, recording.err.text()


def times_of(report):
    times = {}
    for row in report["breakdown"]:
        times[row["operation"]] = times.get(row["operation"], 0) + row["wall_ns"]
    return times


def check_mine(checks, what, times, truth):
    mine = times.get("mine", 0)
    checks.that(abs(mine - truth) < 0.05 * truth, "%s: the ranges took %.1f ms, reported %.1f" % (
        what, truth / 1e6, mine / 1e6))


def check(checks, budget, report, truth, said, unheard):
    times = times_of(report)
    check_mine(checks, "budget " + budget, times, truth)
    checks.that(not any(name.startswith("Optimizer") for name in times),
                "PyTorch's own are no operations: %s" % sorted(times))
    checks.that(("first" in times) != unheard, "the first is %s" % ("lost" if unheard else "there"))
    checks.that(("their ends are not probed" in said) == unheard and
                ("their ends are probed again" in said) == unheard,
                "ends were %s" % ("left alone for a while" if unheard else "always probed"))


def check_dozing(checks, python):
    """Somebody's begin when it is listened for them now and then only: 0.25 s of at most 3.75."""
    report, truth, said = record(python, 12.5, 4.5, "--overhead-budget", "2%")
    times = times_of(report)
    checks.that("now and then" in said, "PyTorch's own are too many to be heard all the time")
    check_mine(checks, "after that", times, truth)
    first = times.get("first", 0) / 1e9
    checks.that(0.3 < first < 4.8, "they are heard after 3.75 s at the latest: %.2f of 4.5 s are there" % first)
    checks.that("earlier ones may be missing" in said, "and it is told")


def main():
    checks = harness.Checks()
    python = os.environ.get("RLS_TORCH_PYTHON") or harness.interpreter()
    for budget, unheard in (("none", False), ("2%", True)):
        check(checks, budget, *record(python, 3.5, 0, "--overhead-budget", budget), unheard)
    check_dozing(checks, python)
    checks.finish()


if __name__ == "__main__":
    main()
