#!/usr/bin/python3
"""The target's output and status are its own, profiled or not: test_hazards.py [NAME…].

RLS_HAZARD_TIMES (20) says how often each hazard is to happen while a profiler attaches,
detaches and attaches again; scripts/hazards runs them all 1,000 times. RLS_HAZARD_TABLE names
a file to write what was seen to.
"""

import importlib.util
import os
import random
import subprocess
import sys
import tempfile
import time

import harness

sys.path.insert(0, harness.HAZARD_SOURCES)
import endings  # noqa: E402
import hazards  # noqa: E402

TIMES = int(os.environ.get("RLS_HAZARD_TIMES", "20"))
CYCLES = 3            # at least: attach, detach, attach ...
DURATION = "2" if TIMES >= 1000 else "0.5"
SIDE_BY_SIDE = 9 if TIMES >= 1000 else 14  # targets under one profiler
FINISH_SECONDS = RECORDING_SECONDS = harness.PATIENCE_SECONDS
IN_PERSON = {"exit_in_call", "system_exit_in_callback", "killed_in_callback"}  # not in a child
NEEDED = {"greenlets": "greenlet", "greenlets_late": "greenlet"}


def command(name, *arguments):
    return [harness.interpreter(), os.path.join(harness.HAZARD_SOURCES, "hazards.py"), name,
            "--modules", harness.modules(), "--libraries", harness.TRUTH, *arguments]


def start(name, *arguments):
    target = harness.Process(command(name, *arguments))
    if target.out.wait("ready", harness.PATIENCE_SECONDS) is None:
        raise RuntimeError("%s is not ready: %s" % (name, target.err.text()))
    return target


def finish(target):
    """(status, output); the status is "hangs" when it does not end."""
    try:
        status = target.wait(FINISH_SECONDS)
    except subprocess.TimeoutExpired:
        target.child.kill()
        return "hangs", target.out.text()
    return status, target.out.text()


def plain(name, *arguments):
    with start(name, *arguments) as target:
        target.say("go\nstop")
        return finish(target)


def short(result):
    status, output = result
    return "%s %r" % (status, output if len(output) < 60 else output[:40] + "...")


class Subject:
    """A hazard's target, and what became of it."""

    def __init__(self, name, folder, recorded=True):
        self.name, self.recorded = name, recorded
        self.log = os.path.join(folder, name + ".rounds")
        self.expected = plain(name)
        self.target = start(name, "--times", str(TIMES), "--log", self.log)
        self.cycles = 0  # in which it was seen
        self.times, self.result, self.unseen = [], None, []

    def done(self):
        """Rounds and recordings are enough, or it has ended before its time."""
        return self.target.child.poll() is not None or (
            "rounds done\n" in self.target.err.seen and
            (self.cycles >= CYCLES or not self.recorded))

    def idle(self):
        """Whether it did nothing at all, or not a whole round, in each recording that saw no transition of it:
        others may have had the CPUs."""
        return all(set(categories) <= {"unknown"} or not self.rounds_in([window])
                   for window, categories in self.unseen)

    def rounds_in(self, windows):
        """How many rounds were wholly in one of them."""
        return sum(any(begin <= start and end <= stop for begin, stop in windows)
                   for start, end in self.times)

    def saw(self, report, window):
        """Whether its tree was in the library in this recording."""
        family = {self.target.pid}
        for process in sorted(report["processes"], key=lambda process: process["start_ns"]):
            if process["ppid"] in family:
                family.add(process["pid"])
        # Calls of threads that are not Python's are no transitions, if no library with a role made them.
        if any(flow["pid"] in family for flow in report["transitions"]) or any(
                row["pid"] in family and row["category"] == "simulator" for row in report["breakdown"]):
            self.cycles += 1
        else:
            self.unseen.append((window, {row["category"]: row["wall_ns"] for row in report["breakdown"]
                                         if row["pid"] in family}))

    def end(self):
        if self.target.child.poll() is None:
            self.target.say("stop")
        self.result = finish(self.target)
        if os.path.exists(self.log):
            with open(self.log) as stream:
                self.times = harness.json.load(stream)

    def row(self, windows):
        """Rounds in all, wholly recorded, wholly not."""
        outside = sum(all(end < begin or stop < start for begin, stop in windows)
                      for start, end in self.times)
        return len(self.times), self.rounds_in(windows), outside


class Cycles:
    """Attaches to the subjects and detaches again until each has done its rounds."""

    def __init__(self, subjects, folder):
        self.subjects, self.folder = subjects, folder
        self.count, self.windows, self.bad = 0, [], []

    def run(self):
        for subject in self.subjects:
            subject.target.say("go")
        deadline = time.monotonic() + harness.PATIENCE_SECONDS + TIMES
        while time.monotonic() < deadline and (
                self.count < CYCLES or not all(subject.done() for subject in self.subjects)):
            self.once()
            time.sleep(random.random() * 0.3)  # detached, any long
        for subject in self.subjects:
            subject.end()

    def once(self):
        recorded = [subject for subject in self.subjects
                    if subject.recorded and subject.target.child.poll() is None]
        if not recorded:
            self.count = CYCLES
            return
        with harness.Recording([subject.target.pid for subject in recorded], "--duration", DURATION,
                               folder=self.folder, live=False) as recording:
            try:
                status = recording.wait(RECORDING_SECONDS)
            except subprocess.TimeoutExpired:
                status = "hangs"
            if status == 0:
                self.take(recording.report(), recorded)
            else:
                recording.child.kill()
                self.bad.append("status %s %s" % (status, recording.err.text()[-200:]))
        self.count += 1

    def take(self, report, recorded):
        begin_ns = min(process["start_ns"] for process in report["processes"])
        self.windows.append((begin_ns, begin_ns + report["duration_ns"]))
        for subject in recorded:
            subject.saw(report, self.windows[-1])


def cycled(checks, names, bystanders=()):
    """Attach, detach, attach ... while the hazards happen side by side."""
    with tempfile.TemporaryDirectory() as folder:
        subjects = []
        try:
            subjects += [Subject(name, folder) for name in names]
            subjects += [Subject(name, folder, recorded=False) for name in bystanders]
            cycles = Cycles(subjects, folder)
            cycles.run()
        finally:
            for subject in subjects:
                subject.target.__exit__()
    checks.that(not cycles.bad, "%d recordings, every one ended well: %s" % (
        cycles.count, cycles.bad or "yes"))
    for subject in subjects:
        judge(checks, subject, cycles)


def judge(checks, subject, cycles):
    rounds, inside, outside = subject.row(cycles.windows)
    same = subject.result == subject.expected
    seen = subject.cycles >= CYCLES and subject.idle() if subject.recorded else not subject.cycles
    held = checks.that(
        same and seen and rounds >= TIMES and inside and outside,
        "%s%s: %s, %d rounds, %d recorded, %d not; seen in %d of %d recordings%s%s" % (
            subject.name, "" if subject.recorded else " (a bystander)", short(subject.result),
            rounds, inside, outside, subject.cycles, cycles.count,
            ", else %s" % [(subject.rounds_in([window]), categories) for window, categories in subject.unseen]
            if subject.recorded and subject.unseen else "",
            "" if same else "; alone " + short(subject.expected) + " " +
            subject.target.err.text()[-300:]))
    table = os.environ.get("RLS_HAZARD_TABLE")
    if table:
        with open(table, "a") as stream:
            stream.write("| `%s`%s | %d | %d | %d | %s |\n" % (
                subject.name, "" if subject.recorded else " beside the target", rounds, inside,
                cycles.count, "the same" if held else "FAILED"))


def profiled(checks, name):
    """A hazard that ends the very process that is recorded."""
    expected = plain(name, "--once")
    with start(name, "--once") as target:
        with harness.Recording([target.pid]) as recording:
            target.say("go")
            result = finish(target)
            try:
                status = recording.wait()
            except subprocess.TimeoutExpired:
                status = "hangs"
            checks.that(result == expected and status == 0, "%s: profiled %s, alone %s; the "
                        "profiler ends with it: %s" % (name, short(result), short(expected), status))
            if status == 0:
                harness.check_sums(checks, recording.report())


def exact(checks):
    """Exceptions thrown again and again from one place are counted one by one."""
    with start("throw_through", "--times", "500") as target:
        with harness.Recording([target.pid]) as recording:
            target.say("go\nstop")
            finish(target)
            recording.wait()
            report = recording.report()
    flows = harness.flows(report, of_process=True)[target.pid]
    into, out = flows["python->simulator"], flows["simulator->python"]
    checks.that(into == 10000 and into - out in (0, 1),
                "10,000 calls, 5,000 exceptions: %d in, %d out" % (into, out))  # the last: at the end
    harness.check_sums(checks, report)


def groups(names):
    """Some at a time; those that must be alone by themselves."""
    together = [name for name in names if name not in hazards.ALONE]
    count = max(1, -(-len(together) // SIDE_BY_SIDE))
    return ([together[first::count] for first in range(count) if together[first::count]] +
            [[name] for name in names if name in hazards.ALONE])


def can_run(name):
    module = NEEDED.get(name)
    if module and not importlib.util.find_spec(module):
        print("      left out: %s, there is no %s" % (name, module))
        return False
    if name == "throw_into_python" and not any(
            file.startswith("truthpb") for file in os.listdir(harness.modules())):
        print("      left out: %s, there is no pybind11" % name)
        return False
    return True


def main():
    harness.need_root_and_profiler()
    checks = harness.Checks()
    every = [*hazards.HAZARDS, *endings.ENDINGS, *endings.ROUNDS]
    names = [name for name in sys.argv[1:] or every if can_run(name)]
    for group in groups(names):
        cycled(checks, group)
    if "greenlets" in names:
        cycled(checks, ["jump_out"], bystanders=["greenlets"])
    if "throw_through" in names:
        exact(checks)
    for name in names:
        if name in endings.ENDINGS and (TIMES >= 1000 or name in IN_PERSON or sys.argv[1:]):
            profiled(checks, name)
    checks.finish()


if __name__ == "__main__":
    main()
