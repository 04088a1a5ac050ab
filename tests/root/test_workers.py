#!/usr/bin/python3
"""Children are followed from their first call: fork, exec, subprocess, multiprocessing."""

import harness

METHODS = ["fork", "inside", "exec", "subprocess", "mp_fork", "mp_spawn", "mp_forkserver"]


def record(arguments, methods, count):
    with harness.Target("workers.py") as target:
        with harness.Recording([target.pid], *arguments) as recording:
            rows = []
            for method in methods:
                rows += target.ask(do=method, workers=4, count=count)
            status = recording.stop()
            return target.pid, rows, status, recording.report()


def followed(checks):
    parent, rows, status, report = record([], METHODS, 500)
    checks.that(status == 0, "profiler ended with %d" % status)
    harness.check_truth(checks, report, rows)
    harness.check_sums(checks, report)
    harness.check_lossless(checks, report)
    parents = {process["pid"]: process["ppid"] for process in report["processes"]}
    missing = [row["pid"] for row in rows if row["pid"] not in parents]
    checks.that(not missing, "%d processes in the report, missing %s" % (len(parents), missing))
    orphans = [pid for pid, ppid in parents.items() if pid != parent and ppid not in parents]
    checks.that(not orphans, "every child has its parent there, orphans %s" % orphans)


def not_followed(checks):
    parent, _, status, report = record(["--no-children"], ["fork", "mp_spawn"], 50)
    pids = {process["pid"] for process in report["processes"]}
    checks.that(status == 0 and pids == {parent}, "--no-children: processes %s of %s" % (
        pids, {parent}))
    others = {pid for pid in harness.flows(report, of_process=True) if pid != parent}
    checks.that(not others, "--no-children: no transitions of others, saw %s" % others)


def main():
    harness.need_root_and_profiler()
    checks = harness.Checks()
    followed(checks)
    not_followed(checks)
    checks.finish()


if __name__ == "__main__":
    main()
