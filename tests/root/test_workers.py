#!/usr/bin/python3
"""Children are followed from their first call: fork, exec, subprocess, multiprocessing."""

import time

import harness

SHARED_BYTES = 32 << 20
SHARING = """
import os, sys, time
sys.path.insert(0, sys.argv[1])
import truthsim
kept = b"\\x5a" * %d
parent = os.getpid()
if os.fork():
    time.sleep(600)
print("ready", os.getpid(), flush=True)
while os.getppid() == parent:
    truthsim.noargs()
    time.sleep(0.001)
""" % SHARED_BYTES

METHODS = ["fork", "inside", "exec", "subprocess", "mp_fork", "mp_spawn", "mp_forkserver"]
LATE_NS = 5000000000  # who waits for a pipe's end may see it before the process's


class Recorded:
    """Each method's children, when they were started and awaited, and what was reported."""

    def __init__(self, arguments, methods, count):
        self.rows, self.windows = [], {}
        with harness.Target("workers.py") as target:
            with harness.Recording([target.pid], *arguments) as recording:
                for method in methods:
                    start_ns = time.monotonic_ns()
                    rows = target.ask(do=method, workers=4, count=count)
                    for row in rows:
                        self.windows[row["pid"]] = (method, start_ns, time.monotonic_ns())
                    self.rows += rows
                self.status = recording.stop()
                self.parent, self.report = target.pid, recording.report()
                self.text = harness.run("report", recording.trace).stdout


def followed(checks):
    recorded = Recorded([], METHODS, 500)
    report = recorded.report
    checks.that(recorded.status == 0, "profiler ended with %d" % recorded.status)
    harness.check_truth(checks, report, recorded.rows)
    harness.check_sums(checks, report)
    harness.check_lossless(checks, report)
    tree(checks, recorded)
    totals(checks, recorded)


def tree(checks, recorded):
    """Each child is a process of its own, with its parent, its name and its life."""
    processes = {process["pid"]: process for process in recorded.report["processes"]}
    missing = [pid for pid in recorded.windows if pid not in processes]
    checks.that(not missing, "%d processes in the report, missing %s" % (len(processes), missing))
    orphans = [pid for pid, process in processes.items()
               if pid != recorded.parent and process["ppid"] not in processes]
    checks.that(not orphans, "every child has its parent there, orphans %s" % orphans)
    direct = [pid for pid, (method, _, _) in recorded.windows.items() if method != "mp_forkserver"]
    strangers = [pid for pid in direct if processes[pid]["ppid"] != recorded.parent]
    checks.that(not strangers, "its own children are its own, others %s" % strangers)
    wrong = [(method, processes[pid]["start_ns"] - start, end - processes[pid]["end_ns"])
             for pid, (method, start, end) in recorded.windows.items()
             if not start <= processes[pid]["start_ns"] < processes[pid]["end_ns"] <= end + LATE_NS]
    checks.that(not wrong, "every child starts and ends when it did: %s" % wrong)
    expected = {"mp_spawn": "spawn_main", "mp_fork": "workers.py", "fork": "workers.py",
                "exec": "--once", "subprocess": "--once"}
    wrong = [(method, processes[pid]["cmdline"])
             for pid, (method, _, _) in recorded.windows.items()
             if expected.get(method, "") not in " ".join(processes[pid]["cmdline"])
             or not processes[pid]["name"].startswith("python")]
    checks.that(not wrong, "every child has its name and its last command line: %s" % wrong)


def totals(checks, recorded):
    """The text report has a node for each process, and all of them together."""
    missing = [pid for pid in recorded.windows if "(pid %d)" % pid not in recorded.text]
    together = recorded.text.partition("\nall processes\n")[2]
    found = [int(line.split()[-2].replace(",", "")) for line in together.splitlines()
             if "python \u2192 simulator" in line]
    flows = harness.flows(recorded.report).values()  # the parent's own calls too
    truth = sum(flow["python->simulator"] for flow in flows)
    checks.that(not missing and sum(found) == truth, "the text has every process, and %s of %d calls "
                "in all" % (found, truth))


def not_followed(checks):
    recorded = Recorded(["--no-children"], ["fork", "mp_spawn"], 50)
    parent, status, report = recorded.parent, recorded.status, recorded.report
    pids = {process["pid"] for process in report["processes"]}
    checks.that(status == 0 and pids == {parent}, "--no-children: processes %s of %s" % (
        pids, {parent}))
    others = {pid for pid in harness.flows(report, of_process=True) if pid != parent}
    checks.that(not others, "--no-children: no transitions of others, saw %s" % others)


def shared_bytes(pid):
    with open("/proc/%d/smaps_rollup" % pid) as rollup:
        return sum(int(line.split()[1]) << 10 for line in rollup
                   if line.startswith(("Shared_Clean:", "Shared_Dirty:")))


def sharing(checks):
    """A worker that is looked into goes on sharing what it has from its parent."""
    command = [harness.interpreter(), "-c", SHARING, harness.modules()]
    with harness.Process(command) as target:
        worker = int(target.out.wait("ready", harness.PATIENCE_SECONDS).split()[1])
        harness.eventually(lambda: shared_bytes(worker) > SHARED_BYTES, 30)
        before = shared_bytes(worker)
        with harness.Recording([worker]) as recording:
            during = shared_bytes(worker)
            status = recording.stop()
            flows = harness.flows(recording.report())
        checks.that(status == 0 and flows[worker, worker]["python->simulator"] > 0,
                    "a worker is recorded: %s" % dict(flows))
    checks.that(before > SHARED_BYTES and before - during < SHARED_BYTES / 4,
                "it shares %d MiB with its parent, %d before" % (during >> 20, before >> 20))


def main():
    harness.need_root_and_profiler()
    checks = harness.Checks()
    sharing(checks)
    followed(checks)
    not_followed(checks)
    checks.finish()


if __name__ == "__main__":
    main()
