#!/usr/bin/python3
"""What attaching cannot get: descriptors, and processes that end meanwhile. The reason is reported, once, and what can be
recorded is."""

import json
import os
import re
import resource
import subprocess
import tempfile
import time

import harness

CALLS = 300
LIMITS = 30, 60, 66, 72, 120
SHORT = re.compile(r"too many open files: (\d+) needed, limit (\d+); raise it with `ulimit -n (\d+)`")
KILLED = 12
JOB = os.path.join(harness.HERE, "file_job.py")
LIBRARY = os.environ.get("RLS_FILE_LIBRARY_1", "")
ROLES = ["--simulator", "libfile.so:sim_step"]


def limited(soft, hard):
    return {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))}


def job(folder):
    target = harness.Process([harness.interpreter(), JOB, os.path.join(folder, "libfile.so")])
    if target.out.wait("ready", harness.PATIENCE_SECONDS) is None:
        raise RuntimeError("the job does not begin: " + target.err.text())
    return target


def work(target):
    target.say(str(CALLS))
    if target.out.wait("done", harness.PATIENCE_SECONDS) is None:
        raise RuntimeError("the job did not go on: " + target.err.text())


def calls(report, pid):
    return sum(row["count"] or 0 for row in report["transitions"]
               if row["pid"] == pid and row["to"] == "simulator")


def record(folder, options, **limits):
    """A recording within a limit: its status, its report or None, what it said."""
    with job(folder) as target:
        command = [harness.BINARY, "attach", "--pid", str(target.pid), *ROLES, *options, "--format", "json",
                   "-o", os.path.join(folder, "trace")]
        with harness.Process(command, **limits) as recorder:
            if recorder.err.wait("recording", harness.PATIENCE_SECONDS) is not None:
                work(target)
                recorder.child.send_signal(2)
            status = recorder.wait()
            report = json.loads(recorder.out.text()) if status == 0 else None
            work(target)
        return status, report, recorder.err.text(), calls(report, target.pid) if report else None


def check_limit(checks, folder, limit, options):
    """The calls are all counted, or it is said that they are not, and how many descriptors would do."""
    name = "limit %d %s" % (limit, " ".join(options))
    status, report, said, counted = record(folder, options, **limited(limit, limit))
    short = SHORT.search(said)
    if short:
        warned = report and any(SHORT.search(warning) for warning in report["warnings"])
        checks.that(status == 1 or warned, "%s: ends, or the report has the warning" % name)
        checks.that(int(short.group(2)) == limit < int(short.group(1)), "%s: %s" % (name, short.group(0)))
        needed = int(short.group(3))
        status, report, said, counted = record(folder, options, **limited(needed, needed))
        checks.that(status == 0 and "too many" not in said, "%s: %d suffice" % (name, needed))
    else:
        checks.that(status == 0, "%s: recorded" % name)
        if "none" in options:
            checks.that(counted == CALLS, "%s: %s calls of %d" % (name, counted, CALLS))
    lines = [line for line in said.splitlines() if "budget" not in line and "refused" in line]
    checks.that(not lines, "%s: nothing is said to be the kernel's fault %s" % (name, lines))


def test_descriptors(checks, folder):
    for options in harness.EXACT, []:
        for limit in LIMITS:
            check_limit(checks, folder, limit, options)
    status, _, said, counted = record(folder, harness.EXACT, **limited(30, 4096))
    checks.that(status == 0 and counted == CALLS and "open files" not in said,
                "the soft limit is raised to the hard one: status %d, %s calls, %r" % (status, counted, said[-300:]))


def test_ending(checks, folder):
    """One of two processes with one library is killed while probes are put on."""
    with job(folder) as target:
        recorder = harness.Recording([target.pid, target.pid], roles=ROLES)
        begins = recorder.recording_seconds
        recorder.stop()
    refused = missed = 0
    for k in range(KILLED):
        with job(folder) as first, job(folder) as second:
            command = [harness.BINARY, "attach", "--pid", str(first.pid), "--pid", str(second.pid), *ROLES,
                       *harness.EXACT, "--format", "json", "-o", os.path.join(folder, "trace")]
            with harness.Process(command) as recorder:
                time.sleep(begins * (k + 0.5) / KILLED)
                first.child.kill()
                first.child.wait()
                if recorder.err.wait("recording", harness.PATIENCE_SECONDS) is not None:
                    work(second)
                    recorder.child.send_signal(2)
                status = recorder.wait()
                said = recorder.err.text()
                if status == 0:
                    missed += calls(json.loads(recorder.out.text()), second.pid) != CALLS
                else:
                    refused += 1
                    checks.that(status == 1 and "no process with pid %d" % first.pid in said,
                                "it has ended before all began: %r" % said)
                checks.that("refused" not in said and "cannot" not in said, "nothing else is said: %r" % said[-200:])
    checks.that(refused < KILLED / 2, "%d of %d recordings were refused" % (refused, KILLED))
    checks.that(not missed, "the other process's calls are counted: %d recordings lack some" % missed)


def main():
    harness.need_root_and_profiler()
    checks = harness.Checks()
    for test in test_descriptors, test_ending:
        with tempfile.TemporaryDirectory(prefix="rls-limits-") as folder:
            subprocess.run(["cp", LIBRARY, os.path.join(folder, "libfile.so")], check=True)
            test(checks, folder)
    checks.finish()


main()
