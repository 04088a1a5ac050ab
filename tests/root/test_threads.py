#!/usr/bin/python3
"""Every thread that runs has rows, whether it meets a probe or not: `python` where it runs Python, the role of the
library that it works in, else `native`. What they ran is what the threads' own clocks say."""

import collections
import json
import os
import shutil
import sys
import tempfile

import harness

JOB = os.path.join(harness.HERE, "thread_job.py")
BUDGETS = {"none": (), "2 %": ("--overhead-budget", "2")}
MS = 1000000


class Job(harness.Process):
    def __init__(self, tag, library):
        super().__init__([harness.interpreter(tag), JOB, library])
        if not self.out.wait('{"ready"', harness.PATIENCE_SECONDS):
            raise RuntimeError("the job is not ready: %s" % self.err.text())

    def ask(self, line):
        self.say(line)
        answer = self.out.wait('{"process"', harness.PATIENCE_SECONDS)
        if answer is None:
            raise RuntimeError("no answer to %s: %s" % (line, self.err.text()))
        return json.loads(answer)


def record(tag, library, before, lines, *arguments):
    """What the job ran by its clocks while it was recorded, and the report."""
    ran, threads = 0, collections.Counter()
    with Job(tag, library) as job:
        for line in before:
            job.ask(line)
        with harness.Recording([job.pid], *arguments, roles=[]) as recording:
            job.ask("clock")
            for line in lines:
                answer = job.ask(line)
                ran += answer["process"]
                for tid, ns in answer["threads"].items():
                    threads[job.pid if int(tid) == job.pid else int(tid)] += ns
            recording.stop()
            return job.pid, ran, threads, recording.report()


def on_cpu(report):
    """{tid: {category: ns}} of what ran."""
    found = collections.defaultdict(collections.Counter)
    for row in report["breakdown"]:
        if row["resource"] in ("cpu", "cpu+gpu"):
            found[row["tid"]][row["category"]] += row["on_cpu_ns"]
    return found


def check_all_ran(checks, what, ran, threads, report):
    """Σ rows is what the process ran, and each thread's rows are what it ran."""
    found = on_cpu(report)
    total = sum(sum(rows.values()) for rows in found.values())
    checks.that(total >= 0.98 * ran - 2 * MS, "%s: rows of %d threads have %.1f of %.1f ms" % (
        what, len(found), total / MS, ran / MS))
    missing = {tid: (ns // MS, sum(found[tid].values()) // MS) for tid, ns in threads.items()
               if sum(found[tid].values()) < 0.97 * ns - 2 * MS}
    checks.that(not missing, "%s: each of %d threads has what it ran: %s" % (what, len(threads), missing or "yes"))
    harness.check_sums(checks, report)
    odd = [row for row in report["breakdown"] if row["category"] == "unknown" and row["on_cpu_ns"] > 0.02 * ran + 5 * MS]
    checks.that(not odd, "%s: little is unknown: %s" % (what, odd))


def check_category(checks, what, report, tids, category, how="sampled"):
    for tid in tids:
        rows = on_cpu(report)[tid]
        checks.that(rows[category] >= 0.9 * sum(rows.values()), "%s: thread %d is %s: %s" % (
            what, tid, category, {name: ns // MS for name, ns in rows.items()}))
        methods = {row["method"] for row in report["breakdown"]
                   if row["tid"] == tid and row["category"] == category}
        checks.that(methods == {how}, "%s: %s: %s" % (what, how, methods))


def threads_of_python(checks, tag, library, budget):
    for line, count in (("python 600", 1), ("two 400", 2), ("lasting 400", 1), ("first 600", 1)):
        what = "%s, budget %s" % (line, budget)
        pid, ran, threads, report = record(tag, library, [], [line], *BUDGETS[budget])
        checks.that(len(threads) == count and sum(threads.values()) > 0.9 * ran, "%s: the job has worked" % what)
        check_all_ran(checks, what, ran, threads, report)
        # The first one waited in Python when it was met, which says what it is in from then on.
        check_category(checks, what, report, threads, "python", "traced" if line.startswith("first") else "sampled")


def threads_of_a_library(checks, tag, library, budget, category, *roles):
    what = "pool in %s, budget %s" % (os.path.basename(library), budget)
    pid, ran, threads, report = record(tag, library, ["start 4"], ["work 3 300", "work 2 200"], *roles,
                                       *BUDGETS[budget])
    check_all_ran(checks, what, ran, threads, report)
    check_category(checks, what, report, threads, category)
    checks.that(len(on_cpu(report)) <= 5, "%s: who did not run has no rows" % what)
    return pid, report


def code_called_from_python(checks, tag, library, budget):
    """Half of the first thread's time is in a library without a role: no probe says so."""
    what = "called from Python, budget %s" % budget
    lines = ["call 50", "first 50"] * 16
    pid, ran, threads, report = record(tag, library, [], lines, *BUDGETS[budget])
    check_all_ran(checks, what, ran, threads, report)
    rows = on_cpu(report)[pid]
    share = rows["native"] / sum(rows.values())
    error = sum(row["error_ns"] for row in report["breakdown"] if row["category"] == "native")
    checks.that(abs(share - 0.5) < max(0.1, 2 * error / sum(rows.values())), "%s: native is half, %.2f ± %.2f" % (
        what, share, error / sum(rows.values())))


def brief_threads(checks, tag, library, budget):
    """Threads that are over before they are sampled: most of 1 ms each are."""
    what = "brief threads, budget %s" % budget
    pid, ran, threads, report = record(tag, library, [], ["brief 200 1", "first 20"], *BUDGETS[budget])
    found = on_cpu(report)
    total = sum(sum(rows.values()) for rows in found.values())
    checks.that(len(found) >= 200, "%s: %d have rows" % (what, len(found)))
    checks.that(total >= 0.95 * ran, "%s: they have %.1f of %.1f ms" % (what, total / MS, ran / MS))
    native = sum(rows["native"] for tid, rows in found.items() if tid != pid)
    checks.that(native >= 150 * MS, "%s: %.1f ms are native" % (what, native / MS))


def threads_that_switch(checks, tag, library, budget):
    """They leave their CPUs thousands of times: what each switch takes is in their clocks too."""
    what = "20,000 switches, budget %s" % budget
    pid, ran, threads, report = record(tag, library, [], ["passing 10000"], *BUDGETS[budget])
    check_all_ran(checks, what, ran, threads, report)


def many_threads(checks, tag, library):
    """Who sleeps costs nothing, however many they are."""
    pid, ran, threads, report = record(tag, library, ["start 2000"], ["work 3 50"], *BUDGETS["2 %"])
    checks.that(len(on_cpu(report)) < 100, "of 2000 threads %d have run" % len(on_cpu(report)))
    check_all_ran(checks, "2000 threads", ran, threads, report)


def nothing_sampled(checks, tag, library):
    """A recording without samples cannot say what they were in, but that they ran."""
    pid, ran, threads, report = record(tag, library, [], ["python 200"], "--sample-hz", "0")
    found = on_cpu(report)
    tid = next(iter(threads))
    checks.that(found[tid]["unknown"] >= 0.97 * threads[tid] - 2 * MS, "without samples it is unknown: %s" % found[tid])


def main():
    harness.need_root_and_profiler()
    checks, tag = harness.Checks(), sys.argv[1] if len(sys.argv) > 1 else "system"
    made = os.environ["RLS_THREAD_POOL"]
    with tempfile.TemporaryDirectory(prefix="rls-") as folder:
        plain, role = (os.path.join(folder, name) for name in ("libnobodys.so", "libsimpool.so"))
        shutil.copy(made, plain)
        shutil.copy(made, role)
        for budget in BUDGETS:
            threads_of_python(checks, tag, plain, budget)
            threads_of_a_library(checks, tag, plain, budget, "native")
            threads_of_a_library(checks, tag, role, budget, "simulator", "--simulator", "libsimpool.so")
            code_called_from_python(checks, tag, plain, budget)
            brief_threads(checks, tag, plain, budget)
            threads_that_switch(checks, tag, plain, budget)
        many_threads(checks, tag, plain)
        nothing_sampled(checks, tag, plain)
    checks.finish()


if __name__ == "__main__":
    main()
