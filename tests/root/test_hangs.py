#!/usr/bin/python3
"""Jobs that hang: test_hangs.py TAG. Each thread waited before the recording began, and does so
until it ends, or until it is let go. Its line has the whole of its wait, of the right kind, and the
thread has rows: nothing of the job is missing."""

import json
import os
import re
import signal
import sys

import harness

JOB = os.path.join(harness.HERE, "hang_job.py")
# What a shape waits for, as the report's columns say, and where it is not in its own line.
KINDS = {"lock": "lock", "rlock": "lock", "join": "lock", "get": "lock", "recv": "io", "accept": "io",
         "pipe": "io", "child": "child", "worker": "child", "selected": "io", "polled": "io",
         "futex": "lock", "paused": "sleep", "signalled": "sleep", "spawned": "other", "dead": "lock",
         "locked": "lock", "ending": "lock"}
INNER = {"join": "", "get": "wait", "child": "_wait", "worker": "poll", "accept": "accept", "ending": "wait"}
LENGTH_S = 1.0


def line_of(shape):
    with open(JOB) as stream:
        return next(i for i, line in enumerate(stream, 1) if line.rstrip().endswith("# " + shape))


class Job(harness.Process):
    """The job, once all its threads hang."""

    def __init__(self, tag, *shapes):
        super().__init__([harness.interpreter(tag), JOB, *shapes])
        answer = self.out.wait("{", harness.PATIENCE_SECONDS)
        if not answer:
            raise RuntimeError("the job is not ready: %s" % self.err.text())
        self.tids = json.loads(answer)
        pid = self.tids.pop("ready")
        for shape, tid in self.tids.items():
            of = tid if shape == "in worker" else pid
            if shape != "spinning" and not harness.eventually(lambda: sleeps(of, tid)):
                raise RuntimeError("%s does not wait" % shape)


def sleeps(pid, tid):
    """Whether it waits, and not only for a moment."""
    def switches():
        with open("/proc/%d/task/%d/status" % (pid, tid)) as stream:
            text = stream.read()
        return text.split("State:")[1].split()[0], text.split("ctxt_switches:")[1].split()[0]
    before = switches()
    harness.time.sleep(0.2)
    return before[0] in "SDT" and before == switches()


def record(job, *arguments, while_recording=None, roles=()):
    with harness.Recording([job.pid], *arguments, roles=list(roles)) as recording:
        if while_recording:
            while_recording(recording)
        else:
            harness.time.sleep(LENGTH_S)
        status = recording.stop()
        if status:
            raise RuntimeError("profiler ended with %d: %s" % (status, recording.err.text()))
        text = harness.run("report", recording.trace).stdout
        return recording.report(), text


def waits(report, pid, function, line=0):
    return [row for row in report["lines"] if row["pid"] == pid and row["function"].endswith(function) and
            (not line or row["line"] == line)]


def check_shape(checks, report, job, shape):
    duration, tid = report["duration_ns"], job.tids[shape]
    inner = INNER.get(shape)
    rows = waits(report, job.pid, inner or shape, 0 if inner else line_of(shape))
    own = [row for row in report["functions"] if row["pid"] == job.pid and row["function"] == shape]
    thread = [row for row in report["threads"] if row["tid"] == tid]
    breakdown = [row for row in report["breakdown"] if row["tid"] == tid]
    kind = KINDS[shape] + "_ns"
    checks.that(inner == "" or sum(row[kind] for row in rows) >= 0.99 * duration,
                "%s: its line has all of %.2f s, as %s: %s" % (shape, duration / 1e9, kind, [
                    (row["function"], row["line"], row[kind]) for row in rows]))
    checks.that(sum(row["total_ns"] for row in own) >= 0.99 * duration, "%s: its function too" % shape)
    checks.that(len(thread) == 1 and thread[0]["wall_ns"] >= 0.99 * duration, "%s: the thread is there" % shape)
    checks.that(breakdown and all(row["category"] == "python" for row in breakdown),
                "%s: it is in Python: %s" % (shape, sorted({row["category"] for row in breakdown})))
    checks.that(sum(row["on_cpu_ns"] for row in breakdown) <= 0.01 * duration, "%s: it has not run" % shape)


def all_shapes_hang(checks, tag, *arguments):
    for shapes in (["lock", "get", "recv", "pipe", "futex"], ["child", "worker", "selected", "polled"],
                   ["rlock", "join", "accept"], ["signalled", "paused", "dead", "locked"], ["spawned"]):
        with Job(tag, *shapes) as job:
            report, text = record(job, *arguments)
            for shape in shapes:
                check_shape(checks, report, job, shape)
                named = "%s:%d " % (os.path.basename(JOB), line_of(shape))
                checks.that(shape in INNER or named in text, "%s: the text names %s" % (shape, named))
            if "worker" in shapes:
                pid = job.tids["in worker"]
                rows = waits(report, pid, "worker") or waits(report, pid, "run")
                checks.that(sum(row["sleep_ns"] for row in rows) >= 0.99 * report["duration_ns"],
                            "the worker that is waited for sleeps in %s" % [row["function"] for row in rows])
            os.system("kill -9 $(ps -o pid= --ppid %d) 2>/dev/null" % job.pid)


def wait_ends_meanwhile(checks, tag):
    """Its part within the recording is its line's, and no more."""
    with Job(tag, "ending") as job:
        def let_go(_recording):
            harness.time.sleep(LENGTH_S)
            job.say("go")
            job.out.wait("gone", harness.PATIENCE_SECONDS)
            harness.eventually(lambda: sleeps(job.pid, job.pid))
        report, _ = record(job, while_recording=let_go)
        ended = sum(row["total_ns"] for row in report["functions"] if row["function"] == "ending")
        later = sum(row["sleep_ns"] for row in waits(report, job.pid, "after", line_of("after")))
        waited = sum(row["lock_ns"] for row in waits(report, job.pid, "wait"))
        checks.saw("of %d: waits until let go %d, after that %d" % (report["duration_ns"], waited, later))
        checks.that(waited >= LENGTH_S * 0.99e9, "the wait that ended counts")
        checks.that(later > 0 and waited + later <= report["duration_ns"] and
                    ended <= report["duration_ns"] * 1.01, "nothing counts twice")


def stopped_process(checks, tag):
    """Stopped by a signal while it slept, and while it ran."""
    for shape in ("paused", "spinning"):
        with Job(tag, shape) as job:
            if shape == "spinning":
                harness.let_run(job.pid, 0.1)
            os.kill(job.pid, signal.SIGSTOP)
            harness.eventually(lambda: sleeps(job.pid, job.pid))
            report, _ = record(job)
            rows = waits(report, job.pid, shape)
            checks.that(sum(row["other_ns"] for row in rows) >= 0.99 * report["duration_ns"],
                        "%s, stopped: its line waits for something else: %s" % (shape, rows))


def spinning_thread(checks, tag):
    with Job(tag, "spinning") as job:
        report, text = record(job, while_recording=lambda _: harness.let_run(job.pid, 0.5))
        rows = waits(report, job.pid, "spinning")
        checks.that(sum(row["python_ns"] for row in rows) >= 0.4e9, "a thread that spins is in its line")
        checks.that("%s:" % os.path.basename(JOB) in text, "the text names it")


MANY = """import threading
threading.stack_size(1 << 18)
lock = threading.Lock()
lock.acquire()
def down(frames):
    return down(frames - 1) if frames else lock.acquire()
for _ in range(%d):
    threading.Thread(target=down, args=(10,), daemon=True).start()
print("{}", flush=True)
down(10)
"""


def many_threads(checks, tag, count=2000):
    """All are read, or the report says how many are not."""
    with harness.Process([harness.interpreter(tag), "-c", MANY % (count - 1)]) as job:
        job.out.wait("{", harness.PATIENCE_SECONDS)
        harness.eventually(lambda: sleeps(job.pid, job.pid))
        report, _ = record(job)
        left_out = [int(found) for found in re.findall(r"frames of (\d+) were not read", " ".join(report["warnings"]))]
        waited = sum(row["lock_ns"] for row in waits(report, job.pid, "down"))
        checks.saw("%d threads have rows, left out %s" % (len(report["threads"]), left_out))
        checks.that(len(report["threads"]) + sum(left_out) == count, "of %d threads each is accounted for" % count)
        checks.that(waited >= 0.99 * report["duration_ns"] * len(report["threads"]), "all of their time has its line")


def main(tag):
    harness.need_root_and_profiler()
    checks = harness.Checks()
    all_shapes_hang(checks, tag)
    if tag == "system":
        all_shapes_hang(checks, tag, "--overhead-budget", "2")
        wait_ends_meanwhile(checks, tag)
        stopped_process(checks, tag)
        spinning_thread(checks, tag)
        many_threads(checks, tag)
    checks.finish()


main(sys.argv[1])
