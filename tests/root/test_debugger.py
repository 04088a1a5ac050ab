#!/usr/bin/python3
"""A target that a debugger traces is warned of, at the start and later, in the report too."""

import sys

import harness

SEIZE = """
import ctypes, os, sys, time
PTRACE_SEIZE = 0x4206
libc = ctypes.CDLL(None, use_errno=True)
if libc.ptrace(ctypes.c_long(PTRACE_SEIZE), int(sys.argv[1]), None, None):
    sys.exit("ptrace: " + os.strerror(ctypes.get_errno()))
print("traces", flush=True)
sys.stdin.read()
"""


def tracer(pid):
    process = harness.Process([sys.executable, "-c", SEIZE, str(pid)])
    if not process.out.wait("traces", harness.PATIENCE_SECONDS):
        harness.skip("cannot trace: " + process.err.text())
    return process


def warned(texts, pid, by):
    begin = "process %d is traced by process %d" % (pid, by)
    return [text for text in texts if begin in text]


def check_report(checks, recording, target, debugger, when):
    checks.that(recording.stop() == 0, "%s: the recording ends in order" % when)
    said = warned(recording.report()["warnings"], target.pid, debugger.pid)
    checks.that(len(said) == 1, "%s: reported once: %s" % (when, said))
    checks.that(target.ask(do="kinds", count=5, names=["methods.o"]), "%s: the target works on" % when)


def main():
    harness.need_root_and_profiler()
    checks = harness.Checks()
    with harness.Target("exact.py") as target, harness.Recording([target.pid]) as recording:
        checks.that(recording.stop() == 0, "without a debugger the recording ends in order")
        checks.that("traced by" not in str(recording.report()["warnings"]), "and nothing is said of one")
    with harness.Target("exact.py") as target, tracer(target.pid) as debugger:
        with harness.Recording([target.pid]) as recording:
            checks.that(warned(recording.err.seen, target.pid, debugger.pid), "before it begins: said at once")
            check_report(checks, recording, target, debugger, "traced before")
    with harness.Target("exact.py") as target, harness.Recording([target.pid]) as recording:
        with tracer(target.pid) as debugger:
            checks.that(harness.eventually(lambda: warned(recording.err.seen, target.pid, debugger.pid)),
                        "while it records: said")
            check_report(checks, recording, target, debugger, "traced later")
    checks.finish()


if __name__ == "__main__":
    main()
