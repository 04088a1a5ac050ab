#!/usr/bin/python3
"""attach --name, --cgroup, --container, --all: who is there, who comes later, who is not."""

import contextlib
import os
import subprocess
import tempfile
import time

import cgroups
import harness

# Imports on its first line of input; then each line is a new name for itself, and 300 calls.
SCRIPT = """\
import sys, threading
def calls():
    for _ in range(300): truthsim.noargs()
sys.stdin.readline()
sys.path.insert(0, sys.argv[1])
import truthsim
print("ready", flush=True)
for line in sys.stdin:
    if line.strip():
        open("/proc/self/comm", "w").write(line.strip())
        print("named", flush=True)
        sys.stdin.readline()
    thread = threading.Thread(target=calls)
    thread.start()
    thread.join()
    print("done", flush=True)
"""
CALLS = {"python->simulator": 300, "simulator->python": 300}


def await_new_processes(recording, *jobs):
    """Until the recording has found them."""
    waiting = {job.pid for job in jobs}
    while waiting:
        line = recording.err.wait("rlscope-bpf: debug: process ", harness.PATIENCE_SECONDS)
        if line is None:
            return
        if "from now on" in line:
            waiting.discard(int(line.split()[3]))


class Job(harness.Process):
    """A Python process that imports and calls on request."""

    def __init__(self, folder, name, imports=True):
        path = os.path.join(folder, name)
        with open(path, "w") as stream:
            stream.write(SCRIPT)
        super().__init__([harness.interpreter(), "-X", "utf8", path, harness.modules()])
        if imports:
            self.load()

    def load(self):
        self.say("")
        self.out.wait("ready", harness.PATIENCE_SECONDS)

    def rename(self, name):
        self.say(name)
        self.out.wait("named", harness.PATIENCE_SECONDS)

    def call(self):
        self.say("")
        self.out.wait("done", harness.PATIENCE_SECONDS)


def calls_of(report, pid):
    found = harness.flows(report, of_process=True).get(pid, {})
    return {flow: n for flow, n in found.items() if n}


def exact(checks, report, what, jobs, others=()):
    pids = {process["pid"] for process in report["processes"]}
    for job in jobs:
        found = calls_of(report, job.pid)
        checks.that(job.pid in pids and found == CALLS, "%s: 300 calls, reported %s" % (what, found))
    for job in others:
        checks.that(job.pid not in pids and not calls_of(report, job.pid),
                    "%s: another process is left out" % what)


def by_name(checks, folder):
    with Job(folder, "train_sac.py") as first, Job(folder, "evaluate.py") as other, \
            Job(folder, "worker.py") as renamed, \
            harness.Recording([], "-v", "--name", "train_*", "--name", "ray::*") as recording:
        with Job(folder, "train_ppo.py") as late:
            renamed.rename("ray::rollout")
            await_new_processes(recording, late, renamed)
            for job in (first, other, late, renamed):
                job.call()
        first.child.kill()
        first.child.wait()
        time.sleep(1)
        checks.that(recording.child.poll() is None, "--name: goes on when all have ended")
        status = recording.stop()
        report = recording.report()
    checks.that(status == 0, "--name: status %d" % status)
    exact(checks, report, "--name, there before", [first], [other])
    exact(checks, report, "--name, started later", [late])
    exact(checks, report, "--name, renamed later", [renamed])
    harness.check_sums(checks, report)
    harness.check_lossless(checks, report)


# It meets no probe, and hardly ever a tick: it waits.
SLEEPER = """
import threading, time
def sleep():
    while True: time.sleep(0.1)
threading.Thread(target=sleep, daemon=True).start()
print("ready", flush=True)
input()
open("/proc/self/comm", "w").write("train_sleeper")
input()
"""


def waits_of(pid):
    """How often the process's threads have waited; but its first waits for us only."""
    total = 0
    for tid in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/status" % (pid, tid)) as stream:
            total += sum(int(line.split()[1]) for line in stream if line.startswith("voluntary_ctxt_switches"))
    return total


def waits_of_who_comes_later(checks, folder):
    """Threads that were there before their process was selected."""
    with Job(folder, "train_sac.py", imports=False), \
            harness.Process([harness.interpreter(), "-c", SLEEPER]) as sleeper, \
            harness.Recording([], "-v", "--name", "train_*") as recording:
        sleeper.out.wait("ready", harness.PATIENCE_SECONDS)
        sleeper.say("")
        await_new_processes(recording, sleeper)
        enough = waits_of(sleeper.pid) + 20
        harness.eventually(lambda: waits_of(sleeper.pid) > enough)
        recording.stop()
        report = recording.report()
    slept_ns = sum(row["sleep_ns"] for row in report["lines"] if row["pid"] == sleeper.pid)
    checks.that(slept_ns > 1e9, "its sleeping thread slept for %.2f s in 20 waits of 0.1" % (slept_ns / 1e9))


def union(checks, folder):
    with Job(folder, "train_sac.py") as named, Job(folder, "evaluate.py") as numbered, \
            Job(folder, "worker.py") as other, \
            harness.Recording([numbered.pid], "--name", "train_sac.*", "--no-children") as recording:
        for job in (named, numbered, other):
            job.call()
        recording.stop()
        exact(checks, recording.report(), "--pid and --name", [named, numbered], [other])


def everyone(checks, folder):
    with Job(folder, "train_sac.py", imports=False) as late, \
            Job(folder, "plain.py", imports=False) as plain, \
            Job(folder, "worker.py") as there, harness.Recording([], "-v", "--all") as recording:
        late.load()
        with Job(folder, "train_ppo.py") as new:
            await_new_processes(recording, late, new)
            for job in (late, there, new):
                job.call()
        recording.stop()
        exact(checks, recording.report(), "--all", [late, there, new], [plain])


def everyones_children(checks):
    """Who is forked is one of all from its first call on, whatever is said of children."""
    with harness.Target("workers.py") as target, \
            harness.Recording([], "--all", "--no-children") as recording:
        rows = target.ask(do="fork", workers=4, count=50)
        recording.stop()
        harness.check_truth(checks, recording.report(), rows)


def move(path, *jobs):
    for job in jobs:
        with open(os.path.join(path, "cgroup.procs"), "w") as stream:
            stream.write(str(job.pid))


def by_cgroup(checks, folder):
    name = "rls-test-%d" % os.getpid()
    with cgroups.new(name) as path, cgroups.new(name, "below") as below, cgroups.new(name + "x") as sibling, \
            Job(folder, "a.py") as inside, Job(folder, "b.py") as deeper, \
            Job(folder, "c.py") as moved, Job(folder, "d.py") as outside:
        checks.that(attach("--cgroup", path).stderr.count("no process is in cgroup") == 1,
                    "--cgroup, empty: said so")
        move(path, inside)
        move(below, deeper)
        move(sibling, outside)
        with harness.Recording([], "-v", "--cgroup", path) as recording:
            move(path, moved)
            await_new_processes(recording, moved)
            for job in (inside, deeper, moved, outside):
                job.call()
            recording.stop()
            exact(checks, recording.report(), "--cgroup", [inside, deeper, moved], [outside])


def by_container(checks, folder):
    ids = ["%08x" % os.getpid() + digit * 56 for digit in "ab"]
    with cgroups.new("docker-%s.scope" % ids[0]) as path, cgroups.new("libpod-%s.scope" % ids[1]) as other, \
            Job(folder, "a.py") as inside, Job(folder, "b.py") as neighbour:
        move(path, inside)
        move(other, neighbour)
        done = attach("--container", ids[0][:8])
        checks.that(done.returncode == 1 and "ambiguous" in done.stderr,
                    "--container, ambiguous: %r" % done.stderr)
        with harness.Recording([], "--container", ids[0][:9]) as recording:
            inside.call()
            neighbour.call()
            recording.stop()
            report = recording.report()
        exact(checks, report, "--container", [inside], [neighbour])
        found = {process["pid"]: process.get("container") for process in report["processes"]}
        checks.that(found.get(inside.pid) == ids[0], "its id is reported: %s" % found)


def attach(*arguments):
    return harness.run("attach", "-o", "/dev/null", "--duration", "0.2", *arguments)


def not_itself(checks, folder):
    path = os.path.join(folder, "profiler-%d" % os.getpid())
    os.symlink(os.path.abspath(harness.BINARY), path)
    done = subprocess.run([path, "attach", "--name", os.path.basename(path)], timeout=harness.PATIENCE_SECONDS,
                          stderr=subprocess.PIPE, encoding="utf-8")
    checks.that(done.returncode == 1 and "named like" in done.stderr, "itself: %r" % done.stderr)


def refused(checks):
    for arguments, status, words in (
            (["--name", "no-such-program*"], 1, "named like"),
            (["--cgroup", "/no/such/cgroup"], 1, "no cgroup"),
            (["--container", "ffffffffffffffff"], 1, "container"),
            (["--container", "not-hex"], 2, "hex"),
            (["--container", "f" * 65], 2, "hex"),
            (["--name", ""], 2, "--name"),
            (["--name", "kthreadd"], 1, "named like")):
        done = attach(*arguments)
        checks.that(done.returncode == status and words in done.stderr and not done.stdout,
                    "%s: status %d, %r" % (" ".join(arguments)[:40], done.returncode, done.stderr))
    with subprocess.Popen(["sleep", "600"]) as sleeping:
        done = attach("--name", "sleep")
        sleeping.kill()
    checks.that(done.returncode == 1 and "Python" in done.stderr, "not Python: %r" % done.stderr)


def main():
    harness.need_root_and_profiler()
    checks = harness.Checks()
    with tempfile.TemporaryDirectory(prefix="rls-") as folder:
        for test in (by_name, waits_of_who_comes_later, union, everyone):
            test(checks, folder)
        if cgroups.root():
            by_cgroup(checks, folder)
            by_container(checks, folder)
        else:
            checks.saw("no cgroup v2 hierarchy: --cgroup and --container not tried")
        not_itself(checks, folder)
    everyones_children(checks)
    refused(checks)
    checks.finish()


if __name__ == "__main__":
    main()
