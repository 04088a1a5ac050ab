#!/usr/bin/python3
"""Ranges of PyTorch's own making and somebody's, within a budget and without.

Somebody's are operations from the first on. Where for ten seconds all were PyTorch's, and many, ranges are watched in
windows only until one of somebody's begins in one; from then on they are all there, as long as they were."""

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
early = time.monotonic()
while True:
    with record_function("first"):
        time.sleep(0.002)
    if time.monotonic() >= early + EARLY:
        break
early = time.monotonic() - early
time.sleep(0.5)
total = 0
for _ in range(300):
    with record_function("mine"):
        begin = time.monotonic_ns()
        optimizer.step()
        time.sleep(0.002)
        spent = time.monotonic_ns() - begin
    total += spent
print(json.dumps([total, early]), flush=True)
sys.stdin.readline()
"""


def record(python, own, early, *options):
    """The report, how long "mine" was (ns) and "first" (s), and what was said."""
    program = "OWN, EARLY = %f, %f\n" % (own, early) + PROGRAM
    with harness.Process([python, "-c", program]) as target:
        if not target.out.wait("ready", harness.PATIENCE_SECONDS):
            harness.skip("%s has no torch" % python)
        with harness.Recording([target.pid], "--verbose", *options, roles=[]) as recording:
            target.say("go")
            truth, early = json.loads(target.out.wait("[", harness.PATIENCE_SECONDS) or "[0, 0]")
            recording.stop()
            return recording.report(), truth, early, recording.err.text()


def times_of(report):
    times = {}
    for row in report["breakdown"]:
        times[row["operation"]] = times.get(row["operation"], 0) + row["wall_ns"]
    return times


def check_mine(checks, what, times, truth):
    mine = times.get("mine", 0)
    checks.that(abs(mine - truth) < 0.05 * truth, "%s: the ranges took %.1f ms, reported %.1f" % (
        what, truth / 1e6, mine / 1e6))


def check(checks, budget, report, truth):
    times = times_of(report)
    check_mine(checks, "budget " + budget, times, truth)
    checks.that(not any(name.startswith("Optimizer") for name in times),
                "PyTorch's own are no operations: %s" % sorted(times))
    checks.that("first" in times, "the first is there")


def check_windowed(checks, python):
    """Somebody's begin when ranges are watched in windows only."""
    report, truth, early, said = record(python, 25, 20, "--overhead-budget", "2%")
    times = times_of(report)
    checks.that("in windows only from here on" in said, "PyTorch's own are too many to be watched all the time")
    if checks.that("earlier ones may be missing" in said, "somebody's are seen in a window, and that is said"):
        check_mine(checks, "after that", times, truth)
    first = times.get("first", 0) / 1e9
    checks.that(first < 1.025 * early, "what is there of the first is no longer than it was: %.2f of %.2f s" % (first, early))


def main():
    checks = harness.Checks()
    python = os.environ.get("RLS_TORCH_PYTHON") or harness.interpreter()
    for budget in ("none", "2%"):
        check(checks, budget, *record(python, 3.5, 0, "--overhead-budget", budget)[:2])
    check_windowed(checks, python)
    checks.finish()


if __name__ == "__main__":
    main()
