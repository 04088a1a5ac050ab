#!/usr/bin/env python3
"""truth.py RECORDINGS [PROGRAM...]: how many rows of reports have the true value within the error that they state.

Programs of known shares (truth_job.py) do the same work alone, recorded, and alone again. Compared are

    line        the time of a line, and what ran of it (`lines`), ± error_ns
    operation   the time and the CPU time of an operation on a thread (`breakdown`), ± error_ns; its entries, exactly
    category    the CPU time of a category in an operation, ± error_ns
    corrected   an operation's time without the profiler, ± error_ns: its CPU time is the one that the work has alone, at
                the speed that the machine had while it was recorded

The truth is an interval itself: its clocks are read around each edge and within, and stretches alone differ.

A table, and all rows that are outside, on stderr; JSON on stdout.
"""

import collections
import glob
import json
import math
import os
import sys

import pairs

PROGRAMS = ["gil", "waits", "calls", "threads", "mixed"]
ROLES = ["--backend", "zlib*.so", "--simulator", "_random*.so"]
# Of a program's recordings, in turn.
OPTIONS = [["--overhead-budget", "none"], [], ["--overhead-budget", "none", "--sample-hz", "499"],
           ["--sample-hz", "499"]]
VERSIONS = ["3.9", "3.10", "3.11", "3.12", "3.13"]
ALONE = 3               # stretches before a recording, and so many after it
READING_NS = 2000       # of CPU time, what lies between its clock's reading and a line's edge
SHORT_WAIT_NS = 50e3    # an edge may have so much of a short wait on the wrong side (doc/limits.md)
ROW_MIN_NS = 10e6       # less is no row to judge by


class Recorder(pairs.Recorder):
    """With the roles of the standard library's modules."""

    def __init__(self, *options):
        super().__init__(*ROLES, *options)


class Job:
    def __init__(self, python, program):
        here = os.path.dirname(os.path.abspath(__file__))
        self.process = pairs.start([python, os.path.join(here, "truth_job.py"), program], env=pairs.environment())
        self.out, self.err = pairs.Lines(self.process.stdout), pairs.Lines(self.process.stderr)
        self.pid = self.process.pid
        self.out.wait("ready")

    def work(self):
        """{key: (ns at least, at most, CPU ns at least, at most, times)}"""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        answer = json.loads(self.out.wait("{"))
        self.lag = answer["lag"]
        return {tuple(row[0]): tuple(row[1:]) for row in answer["rows"]}

    def close(self):
        self.process.kill()
        self.process.wait()


def interpreters():
    """BENCH_PYTHONS, or those that pyenv has, or the system's."""
    given = os.environ.get("BENCH_PYTHONS", "").split()
    found = [path for version in VERSIONS
             for path in sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/%s.*/bin/python3" % version)))[-1:]]
    return given or found or ["/usr/bin/python3"]


# --- errors of sums, as doc/overhead.md has them ------------------------------------------------

def sum_of(rows, all_categories):
    """(time, CPU time, corrected, error): what goes one way is added, what may go either way is combined in squares."""
    shared = sum(row["error_shared_ns"] for row in rows)
    moved = sum(row.get("error_moved_ns", 0) for row in rows)
    divided = sum(row.get("error_divided_ns", 0) for row in rows)
    error = shared + abs(moved)
    if not all_categories:
        split = sum(max(row["error_ns"] - row.get("error_divided_ns", 0), 0) ** 2 -
                    (row["error_shared_ns"] + max(row.get("error_moved_ns", 0), 0)) ** 2 for row in rows)
        error = math.hypot(error, math.sqrt(max(split, 0)))
    return [sum(row[key] for row in rows) for key in ("wall_ns", "on_cpu_ns", "corrected_ns")] + [error + divided]


# --- comparisons ----------------------------------------------------------------------------

class Comparison:
    def __init__(self, program, python, options):
        self.about = {"program": program, "python": python, "options": options}
        self.rows = []

    def add(self, kind, name, truth, found, error):
        """truth: (at least, at most)"""
        self.rows.append({**self.about, "kind": kind, "name": name, "truth_ns": truth, "found_ns": found,
                          "error_ns": error, "held": truth[0] - error <= found <= truth[1] + error})


def compare_lines(to, report, pid, truth):
    for key, (low, high, cpu, _, times) in truth.items():
        if key[0] != "line" or low < ROW_MIN_NS:
            continue
        rows = [row for row in report["lines"] if row["pid"] == pid and row["line"] == key[2] and
                row["function"].rpartition(".")[2] == key[1]]
        ran = sum(row[part] for row in rows for part in ("python_ns", "native_ns", "system_ns"))
        error = math.sqrt(sum(row["error_ns"] ** 2 for row in rows))
        name = "%s:%d" % key[1:]
        to.add("line", name, (low, high), ran + sum(row["waiting_ns"] for row in rows), error)
        to.add("line, on CPU", name, (cpu - READING_NS * times, cpu + READING_NS * times), ran, error)


def compare_operations(to, report, truth, alone, spare):
    entries = collections.Counter()
    for row in report["operations"]:
        entries[row["tid"], row["operation"]] += row["entries"]
    for key, (low, high, cpu_low, cpu_high, times) in truth.items():
        if key[0] != "operation" or low < ROW_MIN_NS:
            continue
        name, tid = key[2], key[1]
        rows = [row for row in report["breakdown"] if row["tid"] == tid and row["operation"] == name]
        found, on_cpu, corrected, error = sum_of(rows, True)
        # Time itself is measured: the error is of what is subtracted from it.
        to.add("operation", name, (low, high), found, 0)
        to.add("operation, on CPU", name, (cpu_low, spare(cpu_high)), on_cpu, SHORT_WAIT_NS * times)
        to.add("entries", name, (times, times), entries[tid, name], 0)
        if name in alone:
            middle, half = (yardstick(truth) * share for share in alone[name])
            to.add("corrected", name, (low - cpu_low + middle - half, high - cpu_high + middle + half), corrected, error)


def compare_categories(to, report, truth, spare):
    for key, (_, _, cpu, _, _) in truth.items():
        if key[0] != "category" or cpu < ROW_MIN_NS:
            continue
        rows = [row for row in report["breakdown"] if row["tid"] == key[1] and row["operation"] == key[2] and
                row["category"] == key[3]]
        wall, on_cpu, corrected, error = sum_of(rows, False)
        # The truth's readings enclose the call's hits, of which a part is in Python's row.
        to.add("category, on CPU", "%s/%s" % key[2:], (cpu - (wall - corrected) - error, spare(cpu)), on_cpu,
               error)


def yardstick(truth):
    """CPU ns of work that no probe slows down: how fast the machine was."""
    return sum(row[2] for key, row in truth.items() if key[:2] == ("line", "loops"))


def cpu_alone(truths):
    """{operation: (CPU time alone, half width of the 95 % interval of one stretch more)} in yardsticks, over threads."""
    found = collections.defaultdict(list)
    for truth in truths:
        total = collections.Counter()
        for key, (_, _, cpu_low, cpu_high, _) in truth.items():
            if key[0] == "operation":
                total[key[2]] += (cpu_low + cpu_high) / 2
        for name, cpu in total.items():
            found[name].append(cpu / yardstick(truth))
    shares = {name: pairs.interval(values) for name, values in found.items()}
    return {name: (middle, half * math.sqrt(len(truths) + 1)) for name, (middle, half) in shares.items()}


def stolen_ns():
    """What the host of a virtual machine took of its CPUs, to 10 ms."""
    with open("/proc/stat", encoding="utf-8") as file:
        return int(file.readline().split()[8]) * 1e9 / os.sysconf("SC_CLK_TCK")


def record(program, python, options):
    job = Job(python, program)
    recorder = Recorder(*options)
    try:
        job.work()
        alone = [job.work() for _ in range(ALONE)]
        recorder.begin(job.pid)
        stolen = stolen_ns()
        truth = job.work()
        stolen = stolen_ns() - stolen
        report = recorder.end()["report"]
        alone += [job.work() for _ in range(ALONE)]
    finally:
        job.close()

    def spare(cpu_ns):
        """Running for us, but not for the thread's own clock: what the host took."""
        return cpu_ns * (1 + job.lag) + stolen
    to = Comparison(program, python, options)
    compare_lines(to, report, job.pid, truth)
    compare_operations(to, report, truth, cpu_alone(alone), spare)
    compare_categories(to, report, truth, spare)
    return to.rows, report["warnings"]


def show(rows):
    for row in rows:
        if not row["held"]:
            print("outside: %(program)s %(python)s %(options)s: %(kind)s %(name)s" % row +
                  ", truth %.2f to %.2f, found %.2f ± %.2f ms" % tuple(
                      ns / 1e6 for ns in [*row["truth_ns"], row["found_ns"], row["error_ns"]]),
                  file=sys.stderr, flush=True)


def summarize(rows):
    table = collections.defaultdict(lambda: [0, 0])
    for row in rows:
        for key in (row["kind"], "all"):
            table[key][0] += row["held"]
            table[key][1] += 1
    for kind, (held, count) in table.items():
        print("%-20s %4d of %4d within their error (%.1f %%)" % (kind, held, count, 100 * held / count),
              file=sys.stderr)
    return {kind: {"held": held, "rows": count} for kind, (held, count) in table.items()}


def main():
    if len(sys.argv) < 2 or not sys.argv[1].isdigit() or set(sys.argv[2:]) - set(PROGRAMS):
        sys.exit(__doc__)
    pythons, rows, number = interpreters(), [], 0
    for program in sys.argv[2:] or PROGRAMS:
        for i in range(int(sys.argv[1])):
            python, options = pythons[number % len(pythons)], OPTIONS[i % len(OPTIONS)]
            number += 1
            try:
                more, warnings = record(program, python, options)
            except pairs.Failed as error:
                print("%s %s left out: %s" % (program, python, error), file=sys.stderr, flush=True)
                continue
            rows += more
            show(more)
            print("%-8s %s %s: %d of %d %s" % (program, python, " ".join(options), sum(row["held"] for row in more),
                                               len(more), warnings), file=sys.stderr, flush=True)
    json.dump({"version": 1, "kinds": summarize(rows), "rows": rows}, sys.stdout, indent=1)
    print()
    sys.exit(0 if rows else 1)


if __name__ == "__main__":
    main()
