#!/usr/bin/python3
"""The monitor without a budget beside a recording of the same process: test_monitor.py.

Both count every transition, exactly, and their times differ by no more than 2 %. A job that is there when
the monitor begins is counted from its first call on; of one that comes later it is known that it is from
when a call of its was (counted below)."""

import collections
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

import cgroups
import harness
import monitoring
import test_gpu_batches as gpu

SOURCE = os.path.dirname(os.path.dirname(harness.HERE))
sys.path.insert(0, os.path.join(SOURCE, "tests/metrics"))
from promtool import MISSING, promtool  # noqa: E402

ROLES = ["--simulator", "truthsim*", "--backend", "truthback*", "--native", "libtruthc.so*"]
SECONDS = "rlscope_operation_seconds_total"
ON_CPU = "rlscope_operation_on_cpu_seconds_total"
TRANSITIONS = "rlscope_transitions_total"


def times_apart(checks, report, page, job):
    """The rows whose times are not the recording's."""
    wanted = collections.Counter()
    for row in report["breakdown"]:
        if row["operation"]:
            wanted[row["phase"], row["operation"], row["category"]] += row["wall_ns"] / 1e9
    outside = set()
    for (phase, operation, category), seconds in wanted.items():
        found = page.sum(SECONDS, job=job, phase=phase, operation=operation, category=category)
        if abs(found - seconds) > max(0.02 * seconds, 3e-3):
            outside.add((phase, operation, category))
            checks.saw("%s/%s/%s: %.4f s, in the recording %.4f s" % (
                phase, operation, category, found, seconds))
    checks.that(wanted, "times of %d rows are held against the recording's" % len(wanted))
    return outside


def compare_transitions(checks, report, page, job):
    wanted = collections.Counter()
    outside = sum(entry["count"] for entry in report["transitions"] if not entry["operation"])
    for entry in report["transitions"]:
        if not entry["operation"]:
            continue  # a helper's, while another thread's last edge has not been read
        wanted[entry["operation"], entry["from"], entry["to"]] += entry["count"]
    wrong = ["%s %s->%s: %d, in the recording %d" % (*key, page.sum(
        TRANSITIONS, job=job, operation=key[0], **{"from": key[1], "to": key[2]}), count)
        for key, count in wanted.items()
        if page.sum(TRANSITIONS, job=job, operation=key[0],
                    **{"from": key[1], "to": key[2]}) != count]
    total = sum(wanted.values())
    checks.that(total and not wrong, "%d transitions, each as in the recording: %s" % (total, wrong))
    checks.that(page.sum(TRANSITIONS, job=job) == total + outside, "and no other")


def check_lossless(checks, page):
    checks.that(page.sum("rlscope_lost_events_total") == 0, "nothing lost")
    checks.that(len(page.values("rlscope_lost_events_total", "buffer")) > 3, "every buffer is reported")


def compare_with_recording(checks):
    environment = dict(os.environ, RLSCOPE_JOB="known",
                       PYTHONPATH=os.environ.get("RLS_PYTHONPATH", ""))
    command = [harness.interpreter(), os.path.join(harness.TRUTH_SOURCES, "times.py"),
               "--modules", harness.modules(), "--libraries", harness.TRUTH]
    with harness.Process(command, env=environment) as target:
        target.out.wait('{"ready"', harness.PATIENCE_SECONDS)
        with monitoring.Monitor(*harness.EXACT, roles=ROLES) as monitor:
            with harness.Recording([target.pid], roles=ROLES) as recording:
                target.say("go")
                truth = json.loads(target.out.wait("[", harness.PATIENCE_SECONDS) or "[]")
                checks.that(truth, "the target reported %d rows" % len(truth))
                recording.stop()
                report = recording.report()
            status, page = monitor.stop()
        checks.that(status == 0, "monitor ended with %d" % status)
    compare_transitions(checks, report, page, "known")
    check_lossless(checks, page)
    return times_apart(checks, report, page, "known")


def check_known_target(checks, attempts=4):
    """The two look at the clock one after the other: a thread that is stopped in between has an edge at two
    times. So rows that are apart are looked at again, since an error of ours is there every time."""
    outside = compare_with_recording(checks)
    for _ in range(1, attempts):
        if not outside:
            break
        outside &= compare_with_recording(checks)
    checks.that(not outside, "times within 2 %% of the recording's, but for %s" % (sorted(outside) or "none"))


# On each line of input: 300 calls, on a thread of its own as nothing else on it is timed.
JOB = """
import sys, threading
sys.path.insert(0, sys.argv[1])
import truthsim
def calls():
    for _ in range(300): truthsim.noargs()
print("ready", flush=True)
for line in sys.stdin:
    thread = threading.Thread(target=calls)
    thread.start()
    thread.join()
    print("done", flush=True)
"""
# Makes names up, and says how many calls that made.
HOSTILE = """
import sys
sys.path.insert(0, sys.argv[1])
import rlscope, truthsim
print("ready", flush=True)
sys.stdin.readline()
for i in range(20000):
    with rlscope.operation("name %d" % i):
        truthsim.noargs()
print("done", flush=True)
sys.stdin.readline()
"""
# Waits in one operation and runs in the other, half a second each, and tells how long it ran.
WAITING = """
import sys, time
sys.path.insert(0, sys.argv[1])
import rlscope, truthsim
print("ready", flush=True)
sys.stdin.readline()
truthsim.noargs()  # a thread is known from its first boundary on
with rlscope.operation("waits"):
    time.sleep(0.5)
with rlscope.operation("runs"):
    truthsim.noargs()
    end = time.thread_time() + 0.5
    while time.thread_time() < end:
        pass
print("done", flush=True)
sys.stdin.readline()
"""


# Has nothing but what PyTorch's users write.
RANGES = """
import sys, torch
from torch.profiler import record_function
sys.path.insert(0, sys.argv[1])
import truthsim
layer = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
print("ready", flush=True)
sys.stdin.readline()
for _ in range(100):
    with record_function("outer"):
        truthsim.noargs()
        with record_function("inner"):
            for _ in range(3): truthsim.noargs()
            optimizer.step()  # PyTorch's own range is none of the user's
            truthsim.noargs()
        truthsim.noargs()
    truthsim.noargs()
print("done", flush=True)
sys.stdin.readline()
"""


class Job(harness.Process):
    def __init__(self, name, script=JOB, python=None):
        environment = dict(os.environ, PYTHONPATH=os.environ.get("RLS_PYTHONPATH", ""))
        environment.pop("RLSCOPE_JOB", None)
        if name:
            environment["RLSCOPE_JOB"] = name
        super().__init__([python or harness.interpreter(), "-c", script, harness.modules()],
                         env=environment)
        self.out.wait("ready", harness.PATIENCE_SECONDS)

    def call(self):
        self.say("")
        self.out.wait("done", harness.PATIENCE_SECONDS)

    def end(self):
        self.child.stdin.close()
        self.wait()


def calls_of(page, job):
    return [page.sum(TRANSITIONS, job=job, **{"from": a, "to": b}) for a, b in
            (("python", "simulator"), ("simulator", "python"))]


def whole(before, page, job):
    """Whether the page has a job's 300 calls more than the one before."""
    return [b - a for a, b in zip(calls_of(before, job), calls_of(page, job))] == [300, 300]


def counted(monitor, jobs):
    """Has jobs that came after the monitor, {label: job}, make calls until 300 in a row have been counted:
    from then on each is. {label: what has been counted by then}"""
    waiting, page = dict(jobs), monitor.fresh()
    for _ in range(100):
        before = page
        for job in waiting.values():
            job.call()
        page = monitor.fresh()
        waiting = {label: job for label, job in waiting.items() if not whole(before, page, label)}
        if not waiting:
            return {label: calls_of(page, label) for label in jobs}
    raise RuntimeError("never counted: %s" % sorted(waiting))


def check_more(checks, page, label, before, calls, what):
    found = [b - a for a, b in zip(before[label], calls_of(page, label))]
    checks.that(found == [calls, calls], "%s: %s" % (what, found))


def contained(stack, container):
    """A job that finds itself in a container before it loads anything; None without cgroup v2."""
    if not cgroups.root():
        return None
    path = stack.enter_context(cgroups.new("docker-%s.scope" % container))
    return stack.enter_context(Job("", "open(%r, 'w').write('0')\n" % (
        path + "/cgroup.procs") + JOB))


def served():
    """One whose figures can be had at any time, and in the end."""
    return monitoring.Served("--print", *harness.EXACT, "--interval", "0.2", roles=ROLES)


def check_jobs(checks):
    """Jobs there before, there later, over, with one name, in a container; and a held-up monitor."""
    container = "%08x" % os.getpid() + "c" * 56
    with contextlib.ExitStack() as stack:
        first = stack.enter_context(Job("twin"))
        monitor = stack.enter_context(served())
        second = stack.enter_context(Job("twin"))
        over = stack.enter_context(Job("over"))
        inside = contained(stack, container)
        late = {"twin#2": second, "over": over, **({container[:12]: inside} if inside else {})}
        before = counted(monitor, late)
        first.call()
        over.call()
        over.end()
        monitor.child.send_signal(signal.SIGSTOP)  # sums are made in the kernel: nothing is lost
        for _ in range(50):
            second.call()
        monitor.child.send_signal(signal.SIGCONT)
        if inside:
            inside.call()
        monitor.until(lambda page: page.sum("rlscope_processes", job="over") == 0)
        status, page = monitor.stop()
        checks.that(status == 0, "monitor ended with %d" % status)
    checks.that(calls_of(page, "twin") == [300, 300], "there before: %s" % calls_of(page, "twin"))
    check_more(checks, page, "twin#2", before, 15000, "of the same name, there later")
    check_more(checks, page, "over", before, 300, "over")
    checks.that(page.sum("rlscope_processes", job="twin") == 1 and
                page.sum("rlscope_processes", job="over") == 0, "who lives and who does not")
    if inside:
        check_more(checks, page, container[:12], before, 300, "in a container")
        checks.that(container in page.values("rlscope_process_info", "container"), "whose name is known")
    check_lossless(checks, page)


def descriptors_left(monitor, files):
    """How many more it has than before, once no more are closed."""
    def left():
        return len(os.listdir("/proc/%d/fd" % monitor.pid)) - files
    harness.eventually(lambda: left() <= 2)
    return left()


def check_churn(checks, jobs=50, at_once=5):
    """Short jobs, one after the other: each is counted, and nothing is left of them."""
    before = {}
    with served() as monitor:
        with Job("churn-before") as first:
            counted(monitor, {"churn-before": first})
            first.end()
            monitor.until(lambda page: page.sum("rlscope_processes", job="churn-before") == 0)
        files = len(os.listdir("/proc/%d/fd" % monitor.pid))
        for start in range(0, jobs, at_once):
            with contextlib.ExitStack() as stack:
                some = {"churn-%d" % number: stack.enter_context(Job("churn-%d" % number))
                        for number in range(start, start + at_once)}
                before.update(counted(monitor, some))
                for job in some.values():
                    job.call()
                for job in some.values():
                    job.end()
        monitor.until(lambda page: not any(page.sum("rlscope_processes", job=label) for label in before))
        left = descriptors_left(monitor, files)
        _, page = monitor.stop()
    others = page.sum("rlscope_jobs_seen_total") - jobs - 1
    if others:
        checks.saw("%d other jobs came, descriptors are not looked at: %d more" % (others, left))
    else:
        checks.that(left <= 2, "descriptors more than before: %d" % left)
    wrong = [(label, counts, calls_of(page, label)) for label, counts in before.items()
             if calls_of(page, label) != [count + 300 for count in counts]]
    checks.that(len(before) == jobs and not wrong, "%d jobs, 300 calls each: %s" % (jobs, wrong))
    check_lossless(checks, page)


def check_made_up_names(checks):
    with Job("hostile", HOSTILE) as job, monitoring.Monitor(*harness.EXACT, roles=ROLES) as monitor:
        job.call()
        _, page = monitor.stop()
        said = [line for line in monitor.err.text().splitlines() if "more than 200 operations" in line]
    checks.that(len(said) == 1 and "job hostile" in said[0], "it is said, once: %s" % said)
    names = {labels["operation"] for name, labels, _ in page.samples
             if name == SECONDS and labels["job"] == "hostile"}
    checks.that("other" in names and 100 < len(names) <= 202, "%d names" % len(names))
    counts = calls_of(page, "hostile")
    checks.that(counts == [20000, 20000], "no call is lost for it: %s" % counts)


def check_ranges(checks):
    """Operations of a job that is not annotated: record_function's."""
    python = os.environ.get("RLS_TORCH_PYTHON") or harness.interpreter()
    if subprocess.run([python, "-c", "import torch"], stderr=subprocess.DEVNULL).returncode:
        checks.saw("not looked at: %s has no torch" % python)
        return
    with Job("ranges", RANGES, python) as job, monitoring.Monitor(*harness.EXACT, roles=ROLES) as monitor:
        job.call()
        _, page = monitor.stop()
    found = {operation: page.sum(TRANSITIONS, job="ranges", operation=operation,
                                 **{"from": "python", "to": "simulator"})
             for operation in {labels["operation"] for name, labels, _ in page.samples
                               if name == SECONDS and labels["job"] == "ranges"}}
    checks.that(found == {"outer": 200, "inner": 400, "": 100}, "calls by range: %s" % found)
    check_lossless(checks, page)


def check_waiting(checks):
    """To wait is not to run, whatever for."""
    with Job("waits", WAITING) as job, monitoring.Monitor(*harness.EXACT, roles=ROLES) as monitor:
        job.call()
        _, page = monitor.stop()
    for operation, least, most in (("waits", 0, 0.1), ("runs", 0.49, 1)):
        wall = page.sum(SECONDS, job="waits", operation=operation)
        on_cpu = page.sum(ON_CPU, job="waits", operation=operation)
        checks.that(wall >= 0.5 and least <= on_cpu <= min(most, wall),
                    "%s: %.3f s, on a CPU %.3f s" % (operation, wall, on_cpu))


def check_idle(checks):
    """A job that waited before the monitor came, and never does anything."""
    with Job("idle", JOB), served() as monitor:
        page = monitor.until(lambda page: page.sum(SECONDS, job="idle") >= 1)
        wall, on_cpu = page.sum(SECONDS, job="idle"), page.sum(ON_CPU, job="idle")
        checks.that(on_cpu <= 0.05 * wall, "idle: %.3f s, on a CPU %.3f s" % (wall, on_cpu))


def check_gpu(checks):
    """What a bridge tells, beside a recording of it; the numbers are a stand-in's."""
    roles = ["--native", "no-such-library"]
    with gpu.GpuTarget() as target, \
            monitoring.Monitor("--name", "gpu_target.py", *harness.EXACT, roles=roles) as monitor, \
            gpu.record(target) as recording:
        target.ask(do="work", launches=300, operation="training")
        target.ask(do="work", launches=100, operation="inference", kernel_ns=5000)
        recording.stop()
        report = recording.report()
        _, page = monitor.stop()
    kernels = page.sum("rlscope_gpu_kernels_total")
    checks.that(kernels == gpu.kernels(report) == 400, "%d kernels" % kernels)
    reported = sum(entry["busy_ns"] for entry in report["gpu"])
    busy = sum(round(1e9 * number) for name, _, number in page.samples
               if name == "rlscope_gpu_busy_seconds_total")
    checks.that(reported and abs(busy - reported) <= 0.02 * reported,
                "busy for %d ns, %d in the recording" % (busy, reported))
    launched = collections.Counter()
    for entry in report["gpu"]:
        for row in entry["by_launching_operation"]:
            launched[row["operation"]] += row["busy_ns"]
    found = {labels["operation"]: round(1e9 * number) for name, labels, number in page.samples
             if name == SECONDS and labels["resource"] == "gpu"}
    checks.that(found == launched and {"training", "inference"} <= set(found),
                "by launching operation: %s, in the recording %s" % (found, dict(launched)))


# Goes through as many pairs of operation and phase as there are sums for all jobs.
CROWDING = """
import sys
sys.path.insert(0, sys.argv[1])
import rlscope, truthsim
print("ready", flush=True)
sys.stdin.readline()
for phase in range(250):
    rlscope.set_phase("phase %d" % phase)
    for i in range(250):
        with rlscope.operation("name %d" % i):
            truthsim.noargs()
print("done", flush=True)
sys.stdin.readline()
"""
ALERT = """
rule_files: [%s]
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series:
      - {series: '%s', values: '0+%dx40'}
    promql_expr_test:
      - {expr: 'count(ALERTS{alertname="RlscopeLosingEvents",alertstate="firing",buffer="%s"})', eval_time: 30m,
         exp_samples: [{value: 1}]}
"""


def lost(page):
    return {labels["buffer"]: number for name, labels, number in page.samples
            if name == "rlscope_lost_events_total" and number}


def check_alert(checks, folder, page, buffer):
    """The rule that operators have fires for what the page says."""
    if buffer not in lost(page) or not promtool():
        checks.saw("alerts are not looked at: " + MISSING)
        return
    line = next(line for line in page.text.splitlines()
                if line.startswith("rlscope_lost_events_total") and '"%s"' % buffer in line)
    path = os.path.join(folder, "alert.yml")
    with open(path, "w") as file:
        file.write(ALERT % (os.path.join(SOURCE, "scripts/prometheus/rlscope-alerts.yml"), line.rsplit(" ", 1)[0],
                            lost(page)[buffer], buffer))
    done = subprocess.run([promtool(), "test", "rules", path], capture_output=True, text=True)
    checks.that(done.returncode == 0, "the alert fires for %s: %s" % (buffer, (done.stdout + done.stderr).strip()))


def check_names(checks, page):
    """What the rules and the dashboard ask for is on a real page: of a job with calls and GPU work."""
    asked = set()
    for path in ("scripts/prometheus/rlscope-alerts.yml", "scripts/grafana/rlscope-dashboard.json"):
        with open(os.path.join(SOURCE, path)) as file:
            asked |= set(re.findall(r"\brlscope_[a-z_]+", file.read()))
    missing = asked - {line.split()[2] for line in page.text.splitlines() if line.startswith("# TYPE ")}
    checks.that(len(asked) > 15 and missing == {"rlscope_overhead_budget_ratio"},
                "%d names asked for, missing but for want of a budget: %s" % (len(asked), missing))


def check_losses(checks):
    """What does not fit is counted, buffer by buffer, and spoils nothing else."""
    roles = [*ROLES, "--backend", "librlscope_cupti*:nothing"]  # so that its process counts as a job
    with gpu.GpuTarget() as target, Job("crowding", CROWDING) as crowding, Job("beside") as beside, \
            monitoring.Served(*harness.EXACT, "--interval", "0.5", roles=roles) as monitor, \
            tempfile.TemporaryDirectory(prefix="rls-") as folder:
        checks.that(not lost(monitor.page()), "at first: %s" % lost(monitor.page()))
        target.ask(do="work", launches=64)
        monitor.child.send_signal(signal.SIGSTOP)
        for _ in range(2500):
            target.ask(do="work", launches=64, kernel_ns=1)
        monitor.child.send_signal(signal.SIGCONT)
        beside.call()
        target.ask(do="empty")
        page = monitor.until(lambda page: "gpu" in lost(page))
        checks.that(set(lost(page)) == {"gpu"}, "batches: %s" % lost(page))
        check_alert(checks, folder, page, "gpu")
        crowding.call()
        beside.call()
        page = monitor.until(lambda page: calls_of(page, "beside") == [600, 600])
        checks.that(set(lost(page)) == {"gpu"}, "no sums, crowded as they are: %s" % lost(page))
        check_names(checks, page)
        for job, calls in (("beside", 600), ("crowding", 62500)):
            checks.that(calls_of(page, job) == [calls, calls], "%s: %s" % (job, calls_of(page, job)))


def check_page(checks):
    """A job's calls on the page that is served, while it goes on: wherever this kernel is, and
    however slow, so whatever takes time is waited for."""
    with monitoring.Served(*harness.EXACT, "--interval", "0.5", roles=ROLES) as monitor, \
            Job("page") as job:
        seen = monitor.until(lambda page: page.sum("rlscope_processes", job="page"))
        checks.that(seen.sum("rlscope_processes", job="page") == 1, "the job is found")
        job.call()
        monitor.until(lambda page: calls_of(page, "page") != [0, 0])
        first = calls_of(monitor.fresh(), "page")  # that page may be of the middle of the calls
        job.call()
        page = monitor.until(lambda page: min(calls_of(page, "page")) >= first[0] + 300)
        counts = calls_of(page, "page")
        # Those of before its library was probed are not seen.
        checks.that(counts == [first[0] + 300] * 2 and 0 < first[0] <= 300,
                    "its calls are counted: %s, %s" % (first, counts))
        seconds = page.sum(SECONDS, job="page")
        checks.that(seconds > 0, "and %.3f s of its time" % seconds)
        check_lossless(checks, page)
        monitor.child.send_signal(signal.SIGTERM)
        status = monitor.wait()
        checks.that(status == 0, "monitor ended with %d" % status)


def check_nobody(checks):
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([harness.copy_for_others(folder), "monitor", "--listen", "none"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
                              timeout=harness.PATIENCE_SECONDS, **harness.NOBODY)
    checks.that(done.returncode == 1 and done.stderr.count("\n") == 1 and "root" in done.stderr,
                "as nobody: status %d, %r" % (done.returncode, done.stderr))


def main():
    harness.need_root_and_profiler()
    checks = harness.Checks()
    every = [check_known_target, check_jobs, check_churn, check_made_up_names, check_ranges,
             check_waiting, check_idle, check_gpu, check_losses, check_page, check_nobody]
    for check in [globals()[name] for name in sys.argv[1:]] or every:
        checks.saw(check.__name__)
        check(checks)
    checks.finish()


if __name__ == "__main__":
    main()
