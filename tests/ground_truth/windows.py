#!/usr/bin/env python3
"""A loop of rollouts and updates that knows when each of its calls was under way.

Waits for a line on stdin, works until there is another and prints its truth as one line of JSON:
[{"operation", "category", "ns", "calls"}, …]. Into --calls it writes, for each call into the
simulator, CLOCK_MONOTONIC before and after it (native 64-bit numbers): a probe in it was hit in
between. Then it waits for a third line and ends.

A rollout and an update take ROUND_NS together, so that a profiler which looks at set intervals
would see the same part again and again.
"""

import argparse
import array
import json
import os
import select
import sys
import time

ROUND_NS = 100 * 1000 * 1000
ROLLOUT_SHARE = 0.7
SIMULATE_NS = 10 * 1000
LEARN_NS = 30 * 1000
PYTHON_TURNS = 150


class Part:
    """One operation: its calls into a library, and the time that these and all of it took."""

    def __init__(self, name, category):
        self.name, self.category = name, category
        self.all_ns = self.inside_ns = self.calls = 0

    def rows(self):
        return [{"operation": self.name, "category": self.category, "ns": self.inside_ns,
                 "calls": self.calls},
                {"operation": self.name, "category": "python", "ns": self.all_ns - self.inside_ns,
                 "calls": self.calls}]


def python_work():
    for _ in range(PYTHON_TURNS):
        pass


def rollout(part, spin, log, end_ns):
    now = time.monotonic_ns
    start_ns = after_ns = now()
    while after_ns < end_ns:
        before_ns = now()
        part.inside_ns += spin(SIMULATE_NS)
        after_ns = now()
        log.append(before_ns)
        log.append(after_ns)
        part.calls += 1
        python_work()
    part.all_ns += now() - start_ns


def update(part, spin, end_ns):
    now = time.monotonic_ns
    start_ns = now()
    while now() < end_ns:
        part.inside_ns += spin(LEARN_NS)
        part.calls += 1
        python_work()
    part.all_ns += now() - start_ns


def main():
    try:
        os.nice(-20)  # who is preempted at a boundary measures the scheduler
    except OSError:
        pass
    parser = argparse.ArgumentParser()
    parser.add_argument("--modules", required=True)
    parser.add_argument("--calls", required=True)
    options = parser.parse_args()
    sys.path.insert(0, options.modules)
    import rlscope
    import truthback
    import truthsim
    print(json.dumps({"ready": os.getpid()}), flush=True)
    sys.stdin.readline()
    parts = Part("rollout", "simulator"), Part("update", "backend")
    log = array.array("q")
    at_ns = time.monotonic_ns()
    while not select.select([sys.stdin], [], [], 0)[0]:
        with rlscope.operation("rollout"):
            rollout(parts[0], truthsim.spin, log, at_ns + int(ROLLOUT_SHARE * ROUND_NS))
        with rlscope.operation("update"):
            update(parts[1], truthback.spin, at_ns + ROUND_NS)
        at_ns += ROUND_NS
    sys.stdin.readline()
    with open(options.calls, "wb") as stream:
        log.tofile(stream)
    print(json.dumps(parts[0].rows() + parts[1].rows()), flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    main()
