"""Measures what the monitor costs and how it bears jobs that come and go (see scripts/bench/monitor)."""
import collections
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

import budget
import loss
import pairs

SAMPLE = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$")
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
PORT = 20000 + os.getpid() % 20000
SECONDS = "rlscope_operation_seconds_total"
NAME = "rls-bench"
CHURNING = """
open("/proc/self/comm", "w").write("%s")
import sys, time
sys.path.insert(0, sys.argv[1])
import truthsim, truthback
end = time.monotonic() + 2
while time.monotonic() < end:
    for _ in range(1000):
        truthsim.noargs()
    time.sleep(0.05)
""" % NAME


class Monitor:
    def __init__(self, *arguments):
        self.child = subprocess.Popen(
            [os.environ["RLS_BIN"], "monitor", "--listen", "127.0.0.1:%d" % PORT,
             "--simulator", "truthsim*", "--backend", "truthback*", *arguments],
            stderr=subprocess.PIPE, text=True)
        self.err = pairs.Lines(self.child.stderr)

    def is_starting(self):
        if self.child.poll() is not None:
            sys.exit("the monitor has ended")
        return not any(line.startswith("metrics at") for line in self.err.seen)

    def wait(self):
        while self.is_starting():
            time.sleep(0.05)

    def page(self):
        """[(name, {label: value}, number)]"""
        try:
            with urllib.request.urlopen("http://127.0.0.1:%d/metrics" % PORT) as answer:
                lines = answer.read().decode().splitlines()
        except urllib.error.HTTPError:  # no figures yet
            time.sleep(0.2)
            return self.page()
        return [(match[1], dict(LABEL.findall(match[2] or "")), float(match[3]))
                for match in map(SAMPLE.match, lines) if match]

    def resident_mib(self):
        with open("/proc/%d/statm" % self.child.pid, encoding="ascii") as file:
            return int(file.read().split()[1]) * 4096 / 2**20

    def open_files(self):
        return len(os.listdir("/proc/%d/fd" % self.child.pid))

    def cpu_seconds(self):
        return pairs.cpu_seconds(self.child.pid)

    def stop(self):
        self.child.send_signal(signal.SIGTERM)
        if self.child.wait():
            budget.say("the monitor ended with %d" % self.child.returncode)


# ---- cost ----

def shares(page):
    """Of operations: who forked the job waits outside of any, and is watched too."""
    time_of = collections.Counter()
    for name, labels, number in page:
        if name == SECONDS and labels["operation"]:
            time_of[labels["operation"], labels["category"]] += number
    return time_of


def show_shares(whole, seen):
    whole = {key: entry for key, entry in whole.items() if key[0]}
    # The twin is watched too, and is in none of these: nothing that it calls is probed.
    total, seen_total = sum(entry[0] for entry in whole.values()), sum(seen[key] for key in whole)
    budget.say("  %-40s %9s %9s" % ("share of time, points", "all", "watched"))
    for key, (points, _) in sorted(whole.items(), key=lambda item: -item[1][0]):
        if points >= 1:
            budget.say("  %-40s %9.2f %9.2f" % ("%s, %s" % key,
                                           100 * points / total, 100 * seen[key] / seen_total))


def watch(job, percent, seconds, shown):
    """What the job did while it was watched, from when to when, and what share of a CPU that takes."""
    began_ns = time.monotonic_ns()
    monitor = Monitor("--overhead-budget", percent)
    answers = job.repeat(monitor.is_starting)
    end = time.monotonic() + 10  # what the first span may cost is spent at its beginning
    answers += job.repeat(lambda: time.monotonic() < end)
    first, since, used = shares(monitor.page()), time.monotonic(), monitor.cpu_seconds()
    end = since + seconds
    answers += job.repeat(lambda: time.monotonic() < end)
    cpu = 100 * (monitor.cpu_seconds() - used) / (time.monotonic() - since)
    shown.update(shares(monitor.page()))
    shown.subtract(first)
    stopping = threading.Thread(target=monitor.stop)
    stopping.start()
    answers += job.repeat(stopping.is_alive)
    return answers, began_ns, time.monotonic_ns(), cpu


def cost(workload, seconds, rounds, budgets):
    job, results = budget.job_of(workload, twin=True), {}
    try:
        budget.calibrate(job)
        whole, _ = budget.record(job, "none", budget.ALL_SECONDS)
        budget.say(budget.HEAD)
        for percent in budgets:
            found, shown, cpu = [], collections.Counter(), []
            before = job.alone(budget.OFF_SECONDS)
            for _ in range(rounds):
                during, began_ns, ended_ns, of_cpu = watch(job, percent, seconds, shown)
                after = job.alone(budget.OFF_SECONDS)
                found.append(loss.of(job, before, during, after, began_ns, ended_ns))
                cpu.append(of_cpu)
                before = after
                budget.show(percent, found[-1], None)
                budget.say("the monitor takes %.2f %% of a CPU" % of_cpu)
            # Its windows are in no trace, and bursts hide them: what it costs is what is beyond these.
            budget.say("%s: medians of %d: in between %s, in all %s, with bursts beyond what they add alone %s, beside the twin %s; "
                  "the monitor %.2f %%" % (
                      percent, rounds, *[budget.middle([one[key] for one in found])
                                         for key in ("between", "all", "beyond_bursts", "beside_twin")],
                      statistics.median(cpu)))
            show_shares(budget.shares(whole), shown)
            results[percent] = {"rounds": found, "cpu_percent": cpu}
        json.dump({"version": 1, "work": budget.PIECES.get(workload, workload), "budgets": results}, sys.stdout, indent=1)
    except pairs.Failed as error:
        sys.exit(str(error))
    finally:
        job.close()


# ---- churn ----

def state(monitor, page):
    return (monitor.resident_mib(), monitor.open_files(), len(page),
            len({labels["job"] for _, labels, _ in page if "job" in labels}))


def with_figures(page):
    return {labels["job"] for name, labels, number in page if name == SECONDS and number > 0}


def churn(seconds, count):
    monitor = Monitor("--name", NAME, "--overhead-budget", "1%")
    modules = os.path.join(os.environ["RLS_TRUTH"], "system")
    children, states = [], []
    names = set()  # over all pages: those that ended minutes ago are no longer reported
    try:
        monitor.wait()
        start = time.monotonic()
        for number in range(count):
            while time.monotonic() - start < number * seconds / count:
                time.sleep(0.02)
            children.append(subprocess.Popen(
                [os.environ["RLS_JOB_PYTHON"], "-c", CHURNING, modules],
                env=dict(os.environ, RLSCOPE_JOB="churn-%d" % number)))
            children = [child for child in children if child.poll() is None]
            if number % max(1, count // 20) == 0:
                page = monitor.page()
                names |= with_figures(page)
                states.append(state(monitor, page))
                budget.say("after %3d jobs: %6.1f MiB, %3d descriptors, %5d series, %3d jobs reported" % (
                    number, *states[-1]))
        for child in children:
            child.wait()
        time.sleep(12)
        page = monitor.page()
        states.append(state(monitor, page))
        budget.say("at the end:     %6.1f MiB, %3d descriptors, %5d series, %3d jobs reported" % states[-1])
        names |= with_figures(page)
        missing = [number for number in range(count) if "churn-%d" % number not in names]
        seen = sum(number for name, _, number in page if name == "rlscope_jobs_seen_total")
        lost = {labels["buffer"]: number for name, labels, number in page
                if name == "rlscope_lost_events_total" and number}
        budget.say("%d jobs seen; without figures: %s; lost: %s; the monitor took %.1f s of CPU" % (
            seen, missing or "none", lost or "nothing", monitor.cpu_seconds()))
        json.dump({"version": 1, "seen": seen, "missing": missing, "lost": lost, "states": states}, sys.stdout, indent=1)
    finally:
        monitor.stop()


def main():
    if sys.argv[1] == "churn":
        churn(float(sys.argv[2]), int(sys.argv[3]))
    else:
        cost(sys.argv[2], float(sys.argv[3]), int(sys.argv[4]), sys.argv[5:])


if __name__ == "__main__":
    main()
