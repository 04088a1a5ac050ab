#!/usr/bin/python3
"""Subinterpreters: samples have the names of what runs there, in all threads. Argument: the interpreter's tag.

Before CPython 3.12 all share one GIL, a thread's slot stays what it was while it runs a subinterpreter, and a
subinterpreter may be run by another thread than the one that made it.
"""

import collections
import os
import sys

import harness

HZ = 499
SHARE = 0.9 # of what was sampled, at least: the rest is the way in
JOINING = ["join", "_wait_for_tstate_lock", "wait", "start"] # where a thread waits for one that it started
SCRIPT = """
import os, sys, threading, time
try:
    import _interpreters as subinterpreters
except ImportError:
    import _xxsubinterpreters as subinterpreters
CODE = '''
import os
os.write(1, b"ready" + bytes([10]))
def sub_spin():
    x = 0
    for i in range(100000):
        x += i
def sub_busy():
    while True:
        sub_spin()
def sub_wait():
    import time
    while True:
        time.sleep(0.01)
'''
THREAD = CODE + '''
import threading
thread = threading.Thread(target=sub_busy)
thread.start()
thread.join()
'''
def make(threads=False):
    if sys.version_info < (3, 9):
        return subinterpreters.create()
    if sys.version_info < (3, 13):
        own_gil = sys.version_info >= (3, 12) and not threads
        return subinterpreters.create(isolated=own_gil)
    return subinterpreters.create("legacy" if threads else "isolated")
made = threading.Event()
def run(code):
    interpreter = make(code is THREAD)
    made.set()
    subinterpreters.run_string(interpreter, code)
def main_busy():
    while True:
        x = 0
        for i in range(100000):
            x += i
kind = sys.argv[1]
if kind == "many": # that are not in use; the newest is the first of the list
    for i in range(5):
        make()
if kind in ("inline", "many"):
    run(CODE + "sub_busy()")
elif kind == "wait":
    run(CODE + "sub_wait()")
elif kind == "thread":
    threading.Thread(target=run, args=(CODE + "sub_busy()",)).start()
elif kind == "both":
    threading.Thread(target=run, args=(CODE + "sub_busy()",)).start()
    made.wait()
    main_busy()
elif kind == "alternate":
    interpreter = make()
    # Once: code that each turn makes anew may be gone before it is named.
    subinterpreters.run_string(interpreter, CODE)
    while True:
        subinterpreters.run_string(interpreter, "sub_spin()")
        x = 0
        for i in range(100000):
            x += i
elif kind == "inner":
    run(THREAD)
elif kind.startswith("handed"): # made here, run by another thread
    interpreter = make()
    code = CODE + ("sub_wait()" if kind == "handed_wait" else "sub_busy()")
    def run_handed():
        subinterpreters.run_string(interpreter, code)
    thread = threading.Thread(target=run_handed)
    thread.start()
    if kind == "handed":
        thread.join()
    main_busy()
"""


def switches(pid):
    with open("/proc/%d/status" % pid) as stream:
        return int(stream.read().split("\nvoluntary_ctxt_switches:")[1].split()[0])


def busiest(pid):
    """The threads of the process that run."""
    before = {int(tid): harness.ran_seconds(pid, int(tid)) for tid in os.listdir("/proc/%d/task" % pid)}
    harness.eventually(lambda: sum(harness.ran_seconds(pid, tid) - ran for tid, ran in before.items()) > 0.2)
    return [tid for tid, ran in before.items() if harness.ran_seconds(pid, tid) - ran > 0.02]


def recorded(tag, kind):
    with harness.Process([harness.interpreter(tag), "-c", SCRIPT, kind]) as job:
        if job.out.wait("ready", harness.PATIENCE_SECONDS) is None:
            raise RuntimeError(job.err.text())
        with harness.Recording([job.pid], "--sample-hz", str(HZ)) as recording:
            if kind == "wait":
                before = switches(job.pid)
                harness.eventually(lambda: switches(job.pid) > before + 50)
            else:
                harness.let_run(job.pid, 0.7, busiest(job.pid))
            status = recording.stop()
            report = recording.report()
    return status, report


def by_function(report, columns):
    functions = collections.Counter()
    for line in report["lines"]:
        functions[line["function"].split(".")[-1]] += sum(line[column] for column in columns)
    return functions


def milliseconds(functions):
    return {name: ns // 10**6 for name, ns in functions.items() if ns >= 10**6}


def one_gil(report):
    """Before 3.12 interpreters do not ask each other for the one GIL: one of two may have it all the time."""
    return report["processes"][0]["python"].startswith(("3.8.", "3.9.", "3.10.", "3.11."))


def check(checks, tag, kind, expected):
    status, report = recorded(tag, kind)
    checks.that(status == 0, "%s: profiler ended with %d" % (kind, status))
    functions = by_function(report, ["waiting_ns"] if kind == "wait" else ["python_ns", "native_ns", "system_ns"])
    total = sum(functions.values())
    named = sum(functions[name] for name in expected)
    checks.that(total and named >= SHARE * total, "%s of %d ms are in %s: %s" % (
        kind, total // 10**6, expected, milliseconds(functions)))
    for name in [] if kind in ("both", "handed_busy") and one_gil(report) else expected:
        checks.that(functions[name] >= 0.1 * total, "%s: %s is there" % (kind, name))


def check_handed(checks, tag, kind, of_main, of_other):
    """Each of the two threads has what it runs, whichever made the interpreter."""
    status, report = recorded(tag, kind)
    checks.that(status == 0, "%s: profiler ended with %d" % (kind, status))
    functions = by_function(report, ["python_ns", "native_ns", "system_ns", "waiting_ns"])
    pid = report["processes"][0]["pid"]
    main_ns = sum(thread["wall_ns"] for thread in report["threads"] if thread["tid"] == pid)
    other_ns = sum(thread["wall_ns"] for thread in report["threads"] if thread["tid"] != pid)
    for names, wall_ns in ((of_main, main_ns), (of_other, other_ns)):
        named = sum(functions[name] for name in names)
        checks.that(wall_ns and 0.5 * wall_ns <= named <= 1.5 * wall_ns, "%s: of %d ms %d are in %s: %s" % (
            kind, wall_ns // 10**6, named // 10**6, names, milliseconds(functions)))


def main():
    harness.need_root_and_profiler()
    tag = sys.argv[1]
    checks = harness.Checks()
    for kind, expected in (("inline", ["sub_spin"]), ("many", ["sub_spin"]), ("thread", ["sub_spin"]),
                           ("both", ["sub_spin", "main_busy"]), ("alternate", ["sub_spin", "<module>"]),
                           ("inner", ["sub_spin"]), ("wait", ["sub_wait"])):
        check(checks, tag, kind, expected)
    # Where the other holds the one GIL all the time, it is met in the line in which it asked for it.
    check_handed(checks, tag, "handed", JOINING, ["sub_spin", "sub_busy"])
    check_handed(checks, tag, "handed_busy", JOINING + ["main_busy"], ["sub_spin", "sub_busy", "<module>"])
    check_handed(checks, tag, "handed_wait", JOINING + ["main_busy"], ["sub_wait", "<module>"])
    checks.finish()


main()
