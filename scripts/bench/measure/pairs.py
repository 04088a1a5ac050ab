"""Runs pieces of work (work.py) with and without a profiler, turn about, and compares.

From the environment: RLS_BIN (rlscope-bpf), RLS_PYTHONPATH (the rlscope package).
"""

import json
import math
import os
import queue
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
BINARY = os.environ.get("RLS_BIN", "build/rlscope-bpf")
PYTHONPATH = os.environ.get("RLS_PYTHONPATH", "build/python")
PATIENCE_SECONDS = 180
WAITING = "waiting"     # the operation in which one of twins waits for the other (work.py)


class Failed(Exception):
    pass


class Lines:
    """A stream read by a thread, so that waiting for a line can time out."""

    def __init__(self, stream):
        self.queue = queue.Queue()
        self.seen = []
        threading.Thread(target=self.read, args=(stream,), daemon=True).start()

    def read(self, stream):
        for line in stream:
            self.seen.append(line)
            self.queue.put(line)
        self.queue.put(None)

    def wait(self, prefix, seconds=PATIENCE_SECONDS):
        end = time.monotonic() + seconds
        while True:
            try:
                line = self.queue.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                raise Failed("no %r within %d s" % (prefix, seconds)) from None
            if line is None:
                raise Failed("ended early: " + "".join(self.seen[-3:]).strip())
            if line.startswith(prefix):
                return line


def start(command, **options):
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, encoding="utf-8", errors="replace", **options)


def environment():
    return dict(os.environ, PYTHONPATH=PYTHONPATH, PYTHONDONTWRITEBYTECODE="1",
                OMP_NUM_THREADS="1", PYTHONHASHSEED="0")


class Work:
    """work.py of one piece, ready to fork."""

    def __init__(self, python, name):
        self.name = name
        self.process = start([python, os.path.join(HERE, "work.py"), name], env=environment())
        self.out, self.err = Lines(self.process.stdout), Lines(self.process.stderr)
        try:
            ready = self.read_answer("ready")
            self.pid, self.twins = ready["ready"], ready["twins"]
        except Failed as error:
            self.close()
            raise Failed("%s: %s %s" % (name, error, "".join(self.err.seen[-1:]).strip())) from None

    def read_answer(self, key):
        answer = json.loads(self.out.wait("{"))
        if key not in answer:
            raise Failed("%s: %s" % (self.name, answer))
        return answer

    def say(self, word):
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()

    def run(self, profiler, times=1):
        """One child's work, so many times, watched by the profiler: what the profiler has to say of it, and how long
        it took."""
        self.say("run")
        pid = self.read_answer("child")["child"]
        profiler.begin(pid)
        wall_ns = 0
        for _ in range(times):
            self.say("go")
            wall_ns += self.read_answer("wall_ns")["wall_ns"]
        answer = dict(profiler.end(), wall_ns=wall_ns)
        self.say("end")
        answer["pid"] = pid
        return answer

    def close(self):
        self.process.kill()
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()


class Nothing:
    """No profiler at all."""

    def begin(self, pid):
        pass

    def end(self):
        return {}


def cpu_seconds(pid):
    with open("/proc/%d/stat" % pid) as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def peak_bytes(pid):
    with open("/proc/%d/status" % pid) as file:
        for line in file:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return 0


class Recorder:
    """rlscope-bpf attach, with these options."""

    def __init__(self, *options):
        self.options = options
        self.folder = tempfile.mkdtemp(prefix="rlscope-bench-")
        self.trace = os.path.join(self.folder, "trace")
        self.report = os.path.join(self.folder, "report.json")

    def begin(self, pid):
        self.process = start([BINARY, "attach", "--pid", str(pid), "-o", self.trace,
                              "--format", "json", "--report", self.report, *self.options])
        self.out, self.err = Lines(self.process.stdout), Lines(self.process.stderr)
        self.err.wait("recording")
        self.cpu_before = cpu_seconds(self.process.pid)

    def end(self):
        cpu = cpu_seconds(self.process.pid) - self.cpu_before
        peak = peak_bytes(self.process.pid)
        self.process.send_signal(signal.SIGINT)
        if self.process.wait(PATIENCE_SECONDS):
            raise Failed("rlscope-bpf failed: " + "".join(self.err.seen[-3:]).strip())
        with open(self.report) as file:
            report = json.load(file)
        return {"report": report, "recorder_cpu_s": cpu, "recorder_peak_bytes": peak,
                "trace_bytes": os.stat(self.trace).st_size}


# --- figures ---

ROUNDS_MIN = 3          # for an interval
# Two-sided 95 % points of Student's t, by degrees of freedom.
T95 = [0, 12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14, 2.13]


def interval(values):
    """(mean, half width of its 95 % interval)"""
    count = len(values)
    mean = sum(values) / count
    if count < 2:
        return mean, math.inf
    variance = sum((value - mean) ** 2 for value in values) / (count - 1)
    return mean, (T95[count - 1] if count <= len(T95) else 1.98) * math.sqrt(variance / count)


TRIMMED = 0.2           # of the values, on either side; one at least where there are three


def trimmed(values):
    """The mean of those in the middle."""
    ordered = sorted(values)
    cut = max(int(TRIMMED * len(ordered)), len(ordered) > 2)
    middle = ordered[cut:len(ordered) - cut]
    return sum(middle) / len(middle)


def robust(values):
    """(trimmed mean, half width of its 95 % interval by bootstrap): a spoilt value does not spoil it, and where none
    is it is known better than the median."""
    draw = random.Random(len(values))
    means = sorted(trimmed(draw.choices(values, k=len(values))) for _ in range(2000))
    middle = trimmed(values)
    return middle, max(means[1950] - middle, middle - means[49])


def median(values):
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def main_rows(answer):
    """The report's rows of the work in the child's first thread."""
    return [row for row in answer["report"]["breakdown"]
            if row["pid"] == answer["pid"] and row["tid"] == answer["pid"] and row["operation"] != WAITING]


def removed_ns(answer):
    """What the correction takes from that thread."""
    return sum(row["wall_ns"] - row["corrected_ns"] for row in main_rows(answer))


def turn_about(work, profilers, rounds, times=1):
    """{name: [answer…]}: every profiler once a round, for so many times the work, in an order that turns each round."""
    answers = {name: [] for name in profilers}
    names = list(profilers)
    for number in range(rounds):
        for name in names if number % 2 == 0 else reversed(names):
            answers[name].append(work.run(profilers[name], times))
    return answers


def die(sentence):
    sys.exit("%s: %s" % (os.path.basename(sys.argv[0]), sentence))
