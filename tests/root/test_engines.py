#!/usr/bin/python3
"""A thread that a library made is in that library, where it has a role: whatever it calls, through whatever others, and
whether or not Python has a state for it. Where it has no role, samples find it in native code."""

import os
import shutil
import sys
import tempfile

import harness

JOB = """
import ctypes, os, sys, threading
truthc, engine = (ctypes.CDLL(os.path.join(sys.argv[1], name)) for name in ("libtruthc.so", "libtruthengine.so"))
other = ctypes.CDLL(os.path.join(sys.argv[2], "libnobodys.so"))

class Work(ctypes.Structure):
    _fields_ = [("call", ctypes.c_void_p), ("through", ctypes.c_void_p), ("count", ctypes.c_long),
                ("each_ns", ctypes.c_uint64), ("ensure", ctypes.c_void_p), ("save", ctypes.c_void_p)]

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
        work = Work(address(truthc.truthc_spin), address(other.truthengine_through), 100, 1000000,
                    *(state if line == "state\\n" else [None, None]))
        engine.truthengine_start(ctypes.byref(work))
        engine.truthengine_join()
    print("done", flush=True)
"""

SPENT_NS = 100 * 1000000
LITTLE = 0.05


def spent(tag, folder, word, *arguments):
    """({category: ns}, {(from, to): count}) of the thread that the job makes."""
    with harness.Process([harness.interpreter(tag), "-c", JOB, harness.TRUTH, folder]) as target:
        if not target.out.wait("ready", harness.PATIENCE_SECONDS):
            raise RuntimeError("the job is not ready: %s" % target.err.text())
        with harness.Recording([target.pid], "--simulator", "libtruthc.so*", *arguments, roles=[]) as recording:
            target.say(word)
            target.out.wait("done", harness.PATIENCE_SECONDS)
            recording.stop()
            report, found, flows = recording.report(), {}, {}
            for row in report["breakdown"]:
                if row["tid"] != target.pid:
                    found[row["category"]] = found.get(row["category"], 0) + row["wall_ns"]
            for row in report["transitions"]:
                if row["tid"] != target.pid:
                    flow = row["from"], row["to"]
                    flows[flow] = flows.get(flow, 0) + row["count"]
            return found, flows


def engine(checks, tag, folder, word, *arguments):
    found, flows = spent(tag, folder, word, "--backend", "libtruthengine.so*", *arguments)
    checks.that(found.get("simulator", 0) >= 2 * SPENT_NS and found.get("backend", 0) >= (1 - LITTLE) * SPENT_NS and
                found.get("python", 0) < LITTLE * SPENT_NS, "a backend's own thread, %s: %s" % (word, found))
    checks.that(199 <= flows.get(("backend", "simulator"), 0) <= 200, "and its calls: %s" % flows)


def main():
    harness.need_root_and_profiler()
    checks, tag = harness.Checks(), sys.argv[1] if len(sys.argv) > 1 else "system"
    made = os.path.join(harness.TRUTH, "libtruthengine.so")
    if not os.path.exists(made):
        harness.skip("no libtruthengine.so in %s" % harness.TRUTH)
    with tempfile.TemporaryDirectory(prefix="rls-") as folder:
        shutil.copy(made, os.path.join(folder, "libnobodys.so"))
        engine(checks, tag, folder, "none")
        engine(checks, tag, folder, "state", "--sample-hz", "0")
        found, flows = spent(tag, folder, "state")
        checks.that(found.get("simulator", 0) >= 2 * SPENT_NS and found.get("native", 0) >= (1 - LITTLE) * SPENT_NS and
                    found.get("python", 0) < LITTLE * SPENT_NS and not flows,
                    "one of a library without a role: %s, %s" % (found, flows))
        found, flows = spent(tag, folder, "thread")
        checks.that(found.get("simulator", 0) >= SPENT_NS and found.get("python", 0) > 0 and
                    flows.get(("python", "simulator")) == 100, "a thread of Python's own: %s, %s" % (found, flows))
    checks.finish()


if __name__ == "__main__":
    main()
