"""Measures what a job pays for being recorded within a budget (see scripts/bench/budget).

One job runs all the time and counts its steps in a shared page. Stretches without and with the
profiler alternate (off, on, off, on, …, off); what whole rounds take in a stretch with it (a rollout
and its update, or some steps alike) is held against those of its two neighbours. Its shares are held
against those of a short recording of everything. Before that `calibrate --pid` has looked on.
"""
import collections
import json
import mmap
import os
import statistics
import struct
import subprocess
import sys
import tempfile
import time

BINARY = os.environ["RLS_BIN"]
OFF_SECONDS = 20
# Steps after which the job does the same again: a rollout and its update, or some of many alike.
ROUND_STEPS = {"onpolicy": 512, "offpolicy": 64, "sb3_ppo": 2048}
ALL_SECONDS = 20
CALIBRATION_SECONDS = 20
JOB = """
import mmap, runpy, struct, sys, os
sys.path.insert(0, os.path.dirname(sys.argv[1]))
import common
page = mmap.mmap(os.open(sys.argv[2], os.O_RDWR), 4096)
step = common.Budget.step
def counted(self):
    page[:8] = struct.pack("Q", self.steps + 1)
    return step(self)
common.Budget.step = counted
script = sys.argv[1]
sys.argv = [script, "--seconds", "100000"]
runpy.run_path(script, run_name="__main__")
"""


class Job:
    def __init__(self, script):
        self.round_steps = ROUND_STEPS[os.path.splitext(os.path.basename(script))[0]]
        self.file = tempfile.NamedTemporaryFile()
        self.file.truncate(4096)
        self.page = mmap.mmap(self.file.fileno(), 4096)
        self.child = subprocess.Popen([os.environ["RLS_JOB_PYTHON"], "-c", JOB, script,
                                       self.file.name], stdout=subprocess.DEVNULL)
        while self.steps() < 1000:
            if self.child.poll() is not None:
                sys.exit("the job has ended")
            time.sleep(0.1)

    def steps(self):
        return struct.unpack("Q", self.page[:8])[0]

    def ran_seconds(self):
        """CPU time, to the nanosecond."""
        total = 0
        for task in os.listdir("/proc/%d/task" % self.child.pid):
            try:
                with open("/proc/%d/task/%s/schedstat" % (self.child.pid, task),
                          encoding="ascii") as file:
                    total += int(file.read().split()[0])
            except OSError:
                pass
        return total / 1e9

    def rounds(self, seconds):
        """[(time, CPU time)] of each round that is whole within the next so many seconds."""
        end, number, last, rounds = time.monotonic() + seconds, None, None, []
        while time.monotonic() < end:
            now = self.steps() // self.round_steps
            if now != number:
                took = time.monotonic(), self.ran_seconds()
                if number is not None:
                    rounds.append(tuple((new - old) / (now - number)
                                        for new, old in zip(took, last)))
                number, last = now, took
            time.sleep(0.002)
        return rounds[1:]  # the first began somewhere


def calibrate(job):
    """What hits cost this job; the recordings go by it."""
    done = subprocess.run([BINARY, "calibrate", "--pid", str(job.child.pid), "--duration",
                           str(CALIBRATION_SECONDS)], capture_output=True, text=True, check=False)
    print((done.stdout or done.stderr).strip(), flush=True)


def record(job, budget, seconds):
    """The report of a recording, and the job's rounds meanwhile."""
    with tempfile.TemporaryDirectory() as folder:
        command = [BINARY, "attach", "--pid", str(job.child.pid), "--overhead-budget", budget,
                   "--duration", str(seconds), "--format", "json",
                   "--report", folder + "/report.json", "-o", folder + "/trace"]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as profiler:
            for line in profiler.stderr:
                if line.startswith("recording"):
                    break
            rounds = job.rounds(seconds)
            for _ in profiler.stderr:
                pass
        with open(folder + "/report.json", encoding="utf-8") as file:
            return json.load(file), rounds


def shares(report):
    """{(operation, category): (points, stated error in points)} of the corrected time."""
    time_of, error_of = collections.Counter(), collections.Counter()
    for row in report["breakdown"]:
        key = row["operation"], row["category"]
        time_of[key] += row["corrected_ns"]
        error_of[key] += row["error_ns"]
    total = sum(time_of.values())
    return {key: (100 * time_of[key] / total, 100 * error_of[key] / total) for key in time_of}


def compare(whole, part):
    print("  %-40s %9s %9s %9s %9s" % ("share of corrected time, points", "all", "budget",
                                       "differ", "± stated"))
    nothing = 0.0, 0.0
    inside = 0
    for key in sorted(whole | part, key=lambda key: -whole.get(key, nothing)[0]):
        one, other = whole.get(key, nothing), part.get(key, nothing)
        error = one[1] + other[1]
        inside += abs(one[0] - other[0]) <= error
        print("  %-40s %9.2f %9.2f %+9.2f %9.2f" % (" ".join(key), one[0], other[0],
                                                  other[0] - one[0], error))
    worst = max(abs(whole.get(key, nothing)[0] - part.get(key, nothing)[0])
                for key in whole | part)
    print("  %d of %d within the stated errors; the largest difference is %.2f points; "
          "the largest error stated within the budget %.2f points" %
          (inside, len(whole | part), worst, max(error for _, error in part.values())))


def main():
    script, seconds, rounds, budgets = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]
    job = Job(script)
    try:
        calibrate(job)
        whole = record(job, "none", ALL_SECONDS)[0] if not os.environ.get("RLS_NO_SHARES") else None
        for budget in budgets:
            ratios = []
            before = job.rounds(OFF_SECONDS)
            for _ in range(rounds):
                report, during = record(job, budget, seconds)
                after = job.rounds(OFF_SECONDS)
                ratios.append(statistics.mean(took for took, _ in during) /
                              statistics.mean(took for took, _ in before + after))
                before = after
            print("%s: the job takes %.4f × as long (%s); probes are held to cost %.2f %%" % (
                budget, statistics.mean(ratios), " ".join("%.4f" % ratio for ratio in ratios),
                report["overhead"]["percent"]))
            print("  " + json.dumps(report["overhead"].get("budget", "all was traced")), flush=True)
            if whole:
                compare(shares(whole), shares(report))
    finally:
        job.child.kill()


if __name__ == "__main__":
    main()
