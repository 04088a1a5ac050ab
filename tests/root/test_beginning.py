#!/usr/bin/python3
"""The beginning of a program: test_beginning.py TAG. A wait that begins as soon as a program can has
its line, in `run`, in children that are started anew, and in an interpreter that nobody has met; what
is not traced because libraries came before their probes is stated in seconds."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

import harness

SLEEP = "import time\ntime.sleep(%s)  # here\n"
START = """import subprocess, sys
children = [subprocess.Popen([sys.executable, %r]) for _ in range(4)]
for child in children:
    child.wait()
"""
# A library is loaded and called while the recorder stands still.
LATE = """import sys, time
sys.path.insert(0, %r)
print("ready", flush=True)
sys.stdin.readline()
import truthsim
start = time.monotonic()
while time.monotonic() < start + 0.5:
    truthsim.noargs()
print("called", flush=True)
sys.stdin.readline()
"""


def write(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, "w") as stream:
        stream.write(text)
    return path


def run(folder, command, *options, env=None):
    """The report of `run`."""
    path = os.path.join(folder, "report.json")
    done = harness.run("run", "-o", os.path.join(folder, "trace"), "--format", "json", "--report", path,
                       *options, "--", *command, env=env)
    if done.returncode:
        raise RuntimeError("run ended with %d: %s" % (done.returncode, done.stderr))
    with open(path) as stream:
        return json.load(stream)


def slept(report, pid, path):
    return sum(row["sleep_ns"] for row in report["lines"]
               if row["pid"] == pid and row["file"] == path and row["line"] == 2)


# Where others keep the recorder from its CPUs until a process has ended, its code cannot be named any more: not each time.
RUNS = 6


def has_waited(checks, report, pid):
    waited = sum(row["sleep_ns"] for row in report["lines"] if row["pid"] == pid)
    checks.that(waited >= 2.97e9, "the first wait counts: %d ns of 3 s" % waited)


def check_first_wait(checks, command, script, env=None):
    """The report of a run in which it has its line, or of the last."""
    for _ in range(RUNS):
        with tempfile.TemporaryDirectory(prefix="rls-") as folder:
            report = run(folder, command, env=env)
        pid = report["processes"][0]["pid"]
        has_waited(checks, report, pid)
        if slept(report, pid, script) >= 2.97e9:
            break
    checks.that(slept(report, pid, script) >= 2.97e9, "%s: it has its line: %d ns of 3 s" % (
        os.path.basename(command[0]), slept(report, pid, script)))
    return report


def first_wait(checks, folder, python):
    script = write(folder, "sleep_first.py", SLEEP % 3)
    report = check_first_wait(checks, [python, script], script)
    by_category = {}
    for row in report["breakdown"]:
        by_category[row["category"]] = by_category.get(row["category"], 0) + row["wall_ns"]
    # What runs before the first Python frame is native.
    checks.that(by_category.get("python", 0) >= 2.97e9 and set(by_category) <= {"python", "native", "unknown"},
                "it is Python: %s" % by_category)


def children_of(report):
    """Numbers of processes begin anew at times, so the parent's need not be the least."""
    pids = {row["pid"] for row in report["processes"]}
    return sorted(row["pid"] for row in report["processes"] if row["ppid"] in pids)


def check_children(checks, report, script):
    """How many there are, and how many of them have the line of their first wait."""
    children = children_of(report)
    checks.that(len(children) == 4, "%d children" % len(children))
    for pid in children:
        wall = sum(row["wall_ns"] for row in report["breakdown"] if row["pid"] == pid)
        python_ns = sum(row["wall_ns"] for row in report["breakdown"]
                        if row["pid"] == pid and row["category"] == "python")
        has_waited(checks, report, pid)
        checks.that(wall and python_ns >= 0.98 * wall, "%d of %d ns are Python" % (python_ns, wall))
    return len(children), sum(slept(report, pid, script) >= 2.97e9 for pid in children)


def children_started_anew(checks, folder, python):
    script = write(folder, "sleep_in_child.py", SLEEP % 3)
    seen = named = 0
    for _ in range(RUNS):
        count, with_line = check_children(checks, run(folder, [python, write(folder, "start.py", START % script)]), script)
        seen, named = seen + count, named + with_line
        if with_line == count:
            break
    checks.that(2 * named >= seen, "the first waits of %d of %d children have their lines" % (named, seen))


def unknown_executable(checks, folder, python):
    """Whose name says nothing."""
    prefix = subprocess.check_output([python, "-c", "import sys; print(sys.base_prefix)"], encoding="utf-8").strip()
    real = subprocess.check_output([python, "-c", "import os, sys; print(os.path.realpath(sys.executable))"],
                                   encoding="utf-8").strip()
    snake = shutil.copy(real, os.path.join(folder, "snake"))
    script = write(folder, "sleep_first.py", SLEEP % 3)
    check_first_wait(checks, [snake, script], script, dict(os.environ, PYTHONHOME=prefix))


def late_library(checks, folder, python, tag):
    job = write(folder, "late.py", LATE % harness.modules(tag))
    path = os.path.join(folder, "late.json")
    command = [harness.BINARY, "run", *harness.ROLES, "--overhead-budget", "none", "-v", "-o",
               os.path.join(folder, "late.trace"), "--format", "json", "--report", path, "--", python, job]
    with harness.Process(command) as recorder:
        recorder.out.wait("ready", harness.PATIENCE_SECONDS)
        os.kill(recorder.pid, signal.SIGSTOP)
        recorder.say("go")
        recorder.out.wait("called", harness.PATIENCE_SECONDS)
        os.kill(recorder.pid, signal.SIGCONT)
        harness.eventually(lambda: any("truthsim" in line and line.endswith(" is probed\n")
                                       for line in recorder.err.seen))
        recorder.say("end")
        recorder.wait()
        with open(path) as stream:
            report = json.load(stream)
    found = re.findall(r"([\d.]+) s of process \d+ were not traced in full", " ".join(report["warnings"]))
    checks.that(len(found) == 1 and float(found[0]) >= 0.5,
                "a library came 0.5 s before its probes, and that is said: %s" % report["warnings"])
    checks.that(any("not traced in full" in line for line in recorder.err.seen), "on stderr too")


def main(tag):
    harness.need_root_and_profiler()
    checks = harness.Checks()
    python = harness.interpreter(tag)
    with tempfile.TemporaryDirectory(prefix="rls-") as folder:
        first_wait(checks, folder, python)
        children_started_anew(checks, folder, python)
        if tag == "system":
            unknown_executable(checks, folder, python)
            late_library(checks, folder, python, tag)
    checks.finish()


main(sys.argv[1])
