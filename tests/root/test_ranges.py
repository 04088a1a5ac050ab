#!/usr/bin/python3
"""Ranges of PyTorch's own making and somebody's, within a budget and without.

Where only PyTorch's own are seen their ends are not probed any more; somebody's that begin after that
are operations but for the first, and are as long as they were."""

import json
import os

import harness

# 300 ranges of a known length, after 3.5 s in which all are PyTorch's.
PROGRAM = """
import json, sys, time, torch
from torch.profiler import record_function
layer = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
print("ready", flush=True)
sys.stdin.readline()
end = time.monotonic() + 3.5
while time.monotonic() < end:
    optimizer.zero_grad()
    optimizer.step()
    time.sleep(0.001)
for name in ("first", *["mine"] * 300):
    with record_function(name):
        begin = time.monotonic_ns()
        optimizer.step()
        time.sleep(0.002)
        spent = time.monotonic_ns() - begin
    if name == "first":
        time.sleep(0.5)
        total = 0
    else:
        total += spent
print(json.dumps(total), flush=True)
sys.stdin.readline()
"""


def record(python, *options):
    """The report, how long "mine" was, and what was said."""
    with harness.Process([python, "-c", PROGRAM]) as target:
        if not target.out.wait("ready", 60):
            harness.skip("%s has no torch" % python)
        with harness.Recording([target.pid], "--verbose", *options, roles=[]) as recording:
            target.say("go")
            truth = json.loads(target.out.wait("", 60) or "0")
            recording.stop()
            return recording.report(), truth, recording.err.text()


def check(checks, budget, report, truth, said, unheard):
    times = {}
    for row in report["breakdown"]:
        times[row["operation"]] = times.get(row["operation"], 0) + row["wall_ns"]
    mine = times.get("mine", 0)
    checks.that(abs(mine - truth) < 0.05 * truth, "budget %s: the ranges took %.1f ms, reported %.1f" % (
        budget, truth / 1e6, mine / 1e6))
    checks.that(not any(name.startswith("Optimizer") for name in times),
                "PyTorch's own are no operations: %s" % sorted(times))
    checks.that(("first" in times) != unheard, "the first is %s" % ("lost" if unheard else "there"))
    checks.that(("their ends are not probed" in said) == unheard and
                ("their ends are probed again" in said) == unheard,
                "ends were %s" % ("left alone for a while" if unheard else "always probed"))


def main():
    checks = harness.Checks()
    python = os.environ.get("RLS_TORCH_PYTHON") or harness.interpreter()
    for budget, unheard in (("none", False), ("2%", True)):
        check(checks, budget, *record(python, "--overhead-budget", budget), unheard)
    checks.finish()


if __name__ == "__main__":
    main()
