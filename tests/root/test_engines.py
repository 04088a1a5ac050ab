#!/usr/bin/python3
"""A thread that a library made is never in Python, whatever it calls, and whether or not it has a state there: what
it does itself is its library's where that has a role, and nobody knows where it has none."""

import os
import sys

import harness

JOB = """
import ctypes, os, sys, threading
truthc, engine = (ctypes.CDLL(os.path.join(sys.argv[1], name)) for name in ("libtruthc.so", "libtruthengine.so"))

class Work(ctypes.Structure):
    _fields_ = [("call", ctypes.c_void_p), ("count", ctypes.c_long), ("each_ns", ctypes.c_uint64),
                ("ensure", ctypes.c_void_p), ("save", ctypes.c_void_p)]

def address(function):
    return ctypes.cast(function, ctypes.c_void_p)

def spin():
    for _ in range(100):
        truthc.truthc_spin(ctypes.c_uint64(1000000))

print("ready", flush=True)
for line in sys.stdin:
    if line == "thread\\n":     # one of Python's own
        thread = threading.Thread(target=spin)
        thread.start()
        thread.join()
    else:
        state = [address(ctypes.pythonapi.PyGILState_Ensure), address(ctypes.pythonapi.PyEval_SaveThread)]
        work = Work(address(truthc.truthc_spin), 100, 1000000, *(state if line == "state\\n" else [None, None]))
        engine.truthengine_start(ctypes.byref(work))
        engine.truthengine_join()
    print("done", flush=True)
"""

SPENT_NS = 100 * 1000000


def spent(tag, word, *roles):
    """{category: ns} of the thread that the job makes."""
    with harness.Process([harness.interpreter(tag), "-c", JOB, harness.TRUTH]) as target:
        if not target.out.wait("ready", 30):
            raise RuntimeError("the job is not ready: %s" % target.err.text())
        with harness.Recording([target.pid], "--simulator", "libtruthc.so*", *roles, roles=[]) as recording:
            target.say(word)
            target.out.wait("done", 30)
            recording.stop()
            found = {}
            for row in recording.report()["breakdown"]:
                if row["tid"] != target.pid:
                    found[row["category"]] = found.get(row["category"], 0) + row["wall_ns"]
            return found


def main():
    harness.need_root_and_profiler()
    checks, tag = harness.Checks(), sys.argv[1] if len(sys.argv) > 1 else "system"
    if not os.path.exists(os.path.join(harness.TRUTH, "libtruthengine.so")):
        harness.skip("no libtruthengine.so in %s" % harness.TRUTH)
    for word in ("none", "state"):
        found = spent(tag, word, *(["--sample-hz", "0"] if word == "state" else []))
        checks.that(found.get("simulator", 0) >= SPENT_NS and not found.get("python"),
                    "an engine's thread, its state there %s: %s" % (word, found))
        found = spent(tag, word, "--backend", "libtruthengine.so*")
        checks.that(found.get("simulator", 0) >= SPENT_NS and not found.get("python") and
                    found.get("backend", 0) >= 0.98 * SPENT_NS, "the same, of a backend: %s" % found)
    found = spent(tag, "thread")
    checks.that(found.get("simulator", 0) >= SPENT_NS and found.get("python", 0) > 0,
                "a thread of Python's own: %s" % found)
    checks.finish()


if __name__ == "__main__":
    main()
