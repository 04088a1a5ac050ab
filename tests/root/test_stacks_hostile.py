#!/usr/bin/python3
"""Stacks that no interpreter has: cycles, pointers to nowhere, random bytes, names longer than
memory (hostile_python.c); many threads; and a second interpreter in one process. The target goes
on, the profiler ends well, and what could not be walked is counted."""

import collections
import json
import os
import sys
import tempfile

import harness

HZ = 997
FRAMES_MAX = 256
RAN_SECONDS = 0.1               # each thread, at least
RUNNING = ("python", "runtime", "native", "system")

MANY = """
import sys, threading, time
def worker(n):
    exec("def of_thread_%d(end):\\n while time.thread_time() < end: pass\\nof_thread_%d(end)" % (n, n),
         dict(time=time, end=time.thread_time() + 0.05))
print("ready", flush=True)
sys.stdin.readline()
threads = [threading.Thread(target=worker, args=(n,)) for n in range(32)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print("done", flush=True)
sys.stdin.readline()
"""

# The second one is loaded when recording begins, and then runs code of its own, in a thread.
SECOND = """
import ctypes, os, sys, threading, time
def in_the_first(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end: pass
second = ctypes.CDLL(sys.argv[1], mode=os.RTLD_LOCAL | os.RTLD_DEEPBIND)
os.environ["PYTHONHOME"] = sys.argv[2]
print("ready", flush=True)
sys.stdin.readline()
in_the_first(0.5)
def start_second():
    second.Py_InitializeEx(0)
    second.PyRun_SimpleString(b"import time\\nend = time.thread_time() + 0.6\\ndef in_the_second():\\n"
                              b"  while time.thread_time() < end: pass\\n"
                              b"in_the_second()")
thread = threading.Thread(target=start_second)
thread.start()
in_the_first(0.5)
thread.join()
print("done", flush=True)
sys.stdin.readline()
"""


class Program(harness.Process):
    def __init__(self, command, ready="ready"):
        super().__init__(command)
        self.line = self.out.wait(ready, harness.PATIENCE_SECONDS)
        if self.line is None:
            raise RuntimeError("not ready: %s" % self.err.text())


def record(target, answer, threads=()):
    """Events by thread, the report, the profiler's status; the target said `answer`, or its threads have run."""
    with harness.Recording([target.child.pid], "--sample-hz", str(HZ), roles=[]) as recording:
        if answer is None:
            harness.let_run(target.pid, RAN_SECONDS, threads)
        else:
            target.say("go")
            target.out.wait(answer, harness.PATIENCE_SECONDS)
        status = recording.stop()
        lines = harness.run("dump", recording.trace).stdout.split("\n")
        return [json.loads(line) for line in lines if line], recording.report(), status


def stacks_by_thread(events):
    frames = {event["id"]: event for event in events if event.get("event") == "frame"}
    found = collections.defaultdict(list)
    for event in events:
        if event.get("event") != "sample":
            continue
        stack, leaf = [], event.get("frame", 0)
        while leaf:
            if not frames[leaf].get("native"):
                stack.append((frames[leaf]["function"], frames[leaf].get("line", 0)))
            leaf = frames[leaf].get("parent", 0)
        found[event["tid"]].append((event["kind"], stack))
    return found


def counted(report, what):
    said = [w for w in report["warnings"] if what in w]
    return int(said[0].split(",")[1].split()[0]) if said else 0


def hostile(checks):
    with Program([os.environ["RLS_HOSTILE"]], '{"ready"') as target:
        threads = json.loads(target.line)["threads"]
        events, report, status = record(target, None, threads.values())
        target.say("end")
        rounds = json.loads(target.out.wait('{"rounds"', harness.PATIENCE_SECONDS) or '{"rounds": {}}')["rounds"]
    of_tid = stacks_by_thread(events)
    found = {kind: of_tid[tid] for kind, tid in threads.items()}
    checks.that(status == 0, "the profiler ended with %d" % status)
    checks.that(len(rounds) == len(threads) and all(rounds.values()), "the target goes on: %s" % rounds)
    checks.that(min(len(stacks) for stacks in found.values()) >= 20, "samples of each: %s" % {
        kind: len(stacks) for kind, stacks in found.items()})
    honest = [("inner", 30), ("middle", 20), ("outer", 10)]
    checks.that(all(stack == honest for _, stack in found["sane"]), "the sane stack is as it is")
    # Memory that is not there just then is not waited for.
    short = [stack for _, stack in found["cycle"] if len(stack) < FRAMES_MAX]
    checks.that(all(set(stack) <= {("here", 1), ("there", 2)} for _, stack in found["cycle"]) and
                max(len(stack) for _, stack in found["cycle"]) == FRAMES_MAX and len(short) <= len(found["cycle"]) / 20,
                "the cycle ends after %d frames, but for %d of %d" % (FRAMES_MAX, len(short), len(found["cycle"])))
    short = [stack for _, stack in found["deep"] if len(stack) < FRAMES_MAX]
    checks.that(all(stack == [("recursion", 5)] * len(stack) for _, stack in found["deep"]) and
                max(len(stack) for _, stack in found["deep"]) == FRAMES_MAX and len(short) <= len(found["deep"]) / 20,
                "so does what is 100000 deep, but for %d of %d" % (len(short), len(found["deep"])))
    checks.that(all(not stack for _, stack in found["shims"]), "a cycle without code has no frames")
    checks.that(all(not stack for kind in ("nowhere", "unfilled") for _, stack in found[kind]),
                "none are reported that lead nowhere, or where C did not enter from")
    checks.that(all(stack in (honest, []) for _, stack in found["flickers"]),
                "a state that comes and goes: whole stacks or none")
    names = {name for _, stack in found["names"] for name, _ in stack}
    checks.that(names <= {"ÿ" * 6}, "names that cannot be are not invented: %s" % sorted(
        name[:8] for name in names))
    deep = len(found["cycle"]) + len(found["deep"]) - len(short)
    entering = len(found["shims"]) + len(found["nowhere"]) + len(found["unfilled"])
    checks.that(counted(report, "deeper stacks") >= deep, "too deep: %d of them counted" % deep)
    checks.that(counted(report, "entering Python") >= entering, "without C's frame: %d of them" % entering)


def nameless(checks):
    """It is said where it is much."""
    with Program([os.environ["RLS_HOSTILE"], "names"], '{"ready"') as target:
        _, report, status = record(target, None, json.loads(target.line)["threads"].values())
        target.say("end")
    checks.that(status == 0 and counted(report, "could be named") > 0, "code without names: %s" % report["warnings"])


def endless_list(checks):
    with Program([os.environ["RLS_HOSTILE"], "endless-list"], '{"ready"') as target:
        # Its first thread waits all the time.
        events, _, status = record(target, None, json.loads(target.line)["threads"].values())
        checks.that(status == 0 and target.child.poll() is None and stacks_by_thread(events),
                    "a list of threads without an end: status %d" % status)
        target.say("end")


def many_threads(checks):
    with Program([harness.interpreter("system"), "-c", MANY]) as target:
        events, report, status = record(target, "done")
    of_tid = stacks_by_thread(events)
    functions, wrong = {}, 0
    for tid, stacks in of_tid.items():
        mine = {name for _, stack in stacks for name, _ in stack if name.startswith("of_thread_")}
        wrong += len(mine) > 1
        for name in mine:
            functions[name] = tid
    walked = sum(len(stacks) for stacks in of_tid.values())
    checks.that(status == 0 and len(functions) == 32 and not wrong,
                "32 threads: %d functions, each in one of %d threads" % (len(functions), len(of_tid)))
    failed = counted(report, "could not be read") + counted(report, "could be named")
    checks.that(failed <= walked / 200, "%d samples, %d failed" % (walked, failed))


def second_interpreter(checks, first, second):
    home = os.path.dirname(os.path.dirname(harness.interpreters().get(second, "")))
    library = os.path.join(home, "lib", "libpython%s.so.1.0" % second)
    if first not in harness.interpreters() or not os.path.exists(library):
        checks.saw("left out, for want of CPython %s and a library of %s" % (first, second))
        return
    with Program([harness.interpreter(first), "-c", SECOND, library, home]) as target:
        events, report, status = record(target, "done")
        alive = target.child.poll() is None
    names = collections.Counter()
    for kind, stack in sum(stacks_by_thread(events).values(), []):
        names.update({name for name, _ in stack if kind in RUNNING})
    checks.that(status == 0 and alive, "%s with %s in it: status %d" % (first, second, status))
    checks.that(names["in_the_first"] > 100, "the first one's functions are seen: %d times" %
                names["in_the_first"])
    mixed = [stack for stacks in stacks_by_thread(events).values() for _, stack in stacks
             if {"in_the_first", "start_second"} <= {name for name, _ in stack}]
    checks.that(not mixed, "and in their own thread: %s" % mixed[:1])
    checks.saw("said: %s" % [w for w in report["warnings"] if w.startswith("samples")])


def main():
    harness.need_root_and_profiler()
    checks = harness.Checks()
    hostile(checks)
    nameless(checks)
    endless_list(checks)
    many_threads(checks)
    second_interpreter(checks, "3.12", "3.10")
    checks.finish()


if __name__ == "__main__":
    main()
