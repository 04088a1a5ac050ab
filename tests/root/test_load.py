#!/usr/bin/python3
"""The highest transition rate that one core makes, then workers with threads: counts exact or
every drop accounted for, the recorder's memory flat. test_load.py [SECONDS WORKERS THREADS]"""

import json
import os
import sys
import time

import harness

FASTEST = ["load.fastest"]
MIX = ["methods.noargs", "methods.fastcall", "slots.static_len", "callbacks.call_object",
       "callbacks.nested_callback", "cross.simulator_to_backend", "recursion.depth_100"]
GROWTH_BYTES_MAX = 2 << 20
PACE = 100000               # transitions a second, for what the recorder takes then
TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid):
    with open("/proc/%d/stat" % pid) as stream:
        fields = stream.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def memory_bytes(pid):
    """What the process has allocated: the mapped ring buffers are the same all the time."""
    with open("/proc/%d/status" % pid) as stream:
        return [int(line.split()[1]) * 1024 for line in stream if line.startswith("RssAnon")][0]


class Load:
    """One load under a recording of its own, and what was seen of it."""

    def __init__(self, names, workers, threads, seconds, pace=0):
        command = dict(do="load", kinds=names, workers=workers, threads=threads, seconds=seconds,
                       pace=pace)
        self.memory = []
        with harness.Target("load.py", arguments=["--libraries", harness.TRUTH]) as target:
            with harness.Recording([target.pid]) as recording:
                self.run(target, recording, command)
                self.status = recording.stop()
                self.report = recording.report()
                self.bytes = os.path.getsize(recording.trace)

    def run(self, target, recording, command):
        start, cpu = time.monotonic(), cpu_seconds(recording.pid)
        target.say(json.dumps(command))
        end = start + command["seconds"]
        while time.monotonic() < end:
            time.sleep(min(command["seconds"] / 10, 1))
            self.memory.append(memory_bytes(recording.pid))
        self.rows = json.loads(target.out.wait("[", harness.PATIENCE_SECONDS))
        self.wall = time.monotonic() - start
        self.cpu = cpu_seconds(recording.pid) - cpu

    def growth(self):
        """From the first fifth, when all that is of fixed size has been made, to the end."""
        return self.memory[-1] - self.memory[len(self.memory) // 5]

    def figures(self):
        truth = sum(sum(row["truth"].values()) for row in self.rows)
        return {
            "transitions": truth,
            "seen": sum(entry["count"] for entry in self.report["transitions"]),
            "dropped": sum(loss["dropped"] for loss in self.report["losses"]
                           if loss["buffer"] == "transitions"),
            "transitions_per_second": truth / self.wall,
            "recorder_cpu_percent": 100 * self.cpu / self.wall,
            "recorder_us_per_transition": 1e6 * self.cpu / truth,
            "recorder_memory_mib": self.memory[-1] / 2**20,
            "recorder_growth_kib": self.growth() / 1024,
            "trace_bytes_per_transition": self.bytes / truth,
        }


def check(checks, name, load):
    figures = load.figures()
    for figure, value in figures.items():
        checks.saw("%-30s %s" % (figure, "%d" % value if isinstance(value, int) else "%.3f" % value))
    checks.that(load.status == 0, "%s: profiler ended with %d" % (name, load.status))
    if figures["dropped"]:
        # Of a stretch with a loss the transition into it is seen, but as one to unknown.
        missing = figures["transitions"] - figures["seen"]
        checks.that(0 <= missing - figures["dropped"] <= figures["dropped"],
                    "%s: %d dropped, %d missing" % (name, figures["dropped"], missing))
    else:
        harness.check_truth(checks, load.report, load.rows)
        harness.check_lossless(checks, load.report)
    harness.check_sums(checks, load.report)
    checks.that(load.growth() < GROWTH_BYTES_MAX, "%s: the recorder's memory grew by %d KiB" % (
        name, load.growth() // 1024))


def main():
    seconds, workers, threads = [int(n) for n in sys.argv[1:4]] or [5, 4, 2]
    harness.need_root_and_profiler()
    checks = harness.Checks()
    check(checks, "fastest", Load(FASTEST, 0, 1, seconds))
    if len(sys.argv) > 1:
        check(checks, "%d a second" % PACE, Load(FASTEST, 0, 1, seconds, PACE))
    check(checks, "%d workers x %d threads" % (workers, threads),
          Load(MIX, workers, threads, seconds))
    checks.finish()


if __name__ == "__main__":
    main()
