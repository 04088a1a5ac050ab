#!/usr/bin/python3
"""Children that end at once: each imports a library with a role, calls it and is gone before anybody can look at it.
The library of the first is probed all the same, for those after it, and what the first ones lack is a warning."""

import collections
import sys

import harness

CALLS = 200
CHILDREN_MAX = 300 # until the library is probed: each lives long enough on a machine that nobody else uses, or none
AFTER = 5
CHILD = """
import sys
sys.path.insert(0, %r)
import truthsim
for _ in range(%d):
    truthsim.noargs()
"""
PARENT = """
import subprocess, sys
print("ready", flush=True)
for line in sys.stdin:
    child = subprocess.Popen([sys.executable, "-c", %r])
    child.wait()
    print("ended", child.pid, flush=True)
"""


def run_child(job):
    """Its pid."""
    job.say("")
    line = job.out.wait("ended", harness.PATIENCE_SECONDS)
    if line is None:
        raise RuntimeError(job.err.text())
    return int(line.split()[1])


def probed_alone(recording):
    """Whether the library was probed of a process that had ended; None: it is not probed yet."""
    lines = [line for line in recording.err.seen if "truthsim" in line and line.endswith(" is probed\n")]
    return "has ended" in lines[0] if lines else None


def recorded(tag):
    """The pids of the children before the library is probed, of those after, and the report."""
    child = CHILD % (harness.modules(tag), CALLS)
    with harness.Process([harness.interpreter(tag), "-c", PARENT % child]) as job:
        if job.out.wait("ready", harness.PATIENCE_SECONDS) is None:
            raise RuntimeError(job.err.text())
        with harness.Recording([job.pid], "-v") as recording:
            before = [run_child(job)]
            while probed_alone(recording) is None and len(before) < CHILDREN_MAX:
                before.append(run_child(job))
            alone = probed_alone(recording)
            after = [run_child(job) for _ in range(AFTER)]
            recording.stop()
            return before, after, alone, recording.report()


def main():
    harness.need_root_and_profiler()
    checks = harness.Checks()
    before, after, alone, report = recorded(sys.argv[1])
    calls = collections.Counter()
    for row in report["transitions"]:
        if row["to"] == "simulator":
            calls[row["pid"]] += row["count"]
    checks.saw("%d children until the library was probed, of %s" % (
        len(before), "one that had ended" if alone else "one that lived"))
    checks.that([calls[pid] for pid in after] == [CALLS] * AFTER, "all calls of the next %d count: %s" % (
        AFTER, [calls[pid] for pid in after]))
    checks.that(all(calls[pid] <= CALLS for pid in before), "none of those before has more: %s" % (
        [calls[pid] for pid in before][-10:]))
    warned = [warning for warning in report["warnings"] if "traced" in warning]
    checks.that(bool(warned) if alone else True, "what the first lack is a warning: %s" % warned)
    checks.finish()


main()
