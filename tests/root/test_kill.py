#!/usr/bin/python3
"""kill -9 of the profiler leaves nothing; two profilers at once both count.

RLS_KILL_ROUNDS (10) sets how often the profiler is killed. "Nothing" is looked for where probes
are: in the target's code, byte by byte, and in the kernel's lists of links and programs.
"""

import glob
import json
import os
import random
import signal
import struct
import subprocess
import time

import harness

CALLS = 20000
SCRIPT = ("import sys, time\nsys.path.insert(0, %r)\nimport truthsim\nf = truthsim.noargs\n"
          "print('ready', flush=True)\n"
          "for line in sys.stdin:\n"
          "    count = int(line)\n    start = time.thread_time()\n"
          "    total = sum(f() for _ in range(count))\n"
          "    print('done', total, time.thread_time() - start, flush=True)\n")


def measure(target, count=CALLS):
    """(sum of the answers, seconds on a CPU) of so many calls."""
    target.say(str(count))
    line = target.out.wait("done", harness.PATIENCE_SECONDS)
    _, total, seconds = line.split()
    return int(total), float(seconds)


def bpftool(kind):
    """What the kernel has of this kind; None without bpftool."""
    try:
        done = subprocess.run(["bpftool", "--json", kind, "show"], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, universal_newlines=True)
        return json.loads(done.stdout)
    except (OSError, ValueError):
        return None


def held():
    """Ids of the links and programs that a living process has a descriptor of, here or there."""
    found = {"link": set(), "prog": set()}
    for path in glob.glob("/proc/[0-9]*/fdinfo/*"):
        try:
            with open(path) as stream:
                for line in stream:
                    key, _, value = line.partition(":")
                    if key in ("link_id", "prog_id"):
                        found[key[:4]].add(int(value))
        except OSError:
            pass  # it has ended
    return found


def orphans():
    """Probes and programs of a profiler that is no more; others may come and go meanwhile."""
    before = {kind: bpftool(kind) for kind in ("link", "prog")}
    if None in before.values():
        return None
    owned = held()
    left = [("link", link["id"]) for link in before["link"] if link["id"] not in owned["link"]]
    return left + [("program", program["name"]) for program in before["prog"]
                   if program.get("name", "").startswith("on_") and
                   program["id"] not in owned["prog"]]


def file_code(path):
    """[(offset, bytes)] of the file's executable segments."""
    with open(path, "rb") as stream:
        data = stream.read()
    first, (size, count) = struct.unpack_from("<Q", data, 32)[0], struct.unpack_from("<HH", data, 54)
    found = []
    for number in range(count):
        kind, flags, offset, _, _, length = struct.unpack_from("<IIQQQQ", data,
                                                               first + number * size)
        if kind == 1 and flags & 1:
            found.append((offset, data[offset:offset + length]))
    return found


def changed_code(pid, name):
    """(bytes of code looked at, of them other than in the file) of a library in a process."""
    looked, changed = 0, 0
    with open("/proc/%d/maps" % pid) as maps, open("/proc/%d/mem" % pid, "rb", 0) as memory:
        for line in maps:
            fields = line.split()
            if name not in line or "x" not in fields[1]:
                continue
            start, end = (int(part, 16) for part in fields[0].split("-"))
            mapped = int(fields[2], 16)
            for offset, code in file_code(fields[5]):
                if not mapped <= offset < mapped + end - start:
                    continue
                memory.seek(start + offset - mapped)
                there = memory.read(len(code))
                looked += len(there)
                changed += sum(a != b for a, b in zip(there, code))
    return looked, changed


def until_none(look):
    """What is left a while after a kill: closing what it held takes the kernel some time."""
    left = None

    def is_none():
        nonlocal left
        left = look()
        return not left
    harness.eventually(is_none)
    return left


def killed_again_and_again(checks):
    rounds = int(os.environ.get("RLS_KILL_ROUNDS", "10"))
    with harness.Process([harness.interpreter(), "-c", SCRIPT % harness.modules()]) as target:
        target.out.wait("ready", harness.PATIENCE_SECONDS)
        measure(target)
        before = min(measure(target)[1] for _ in range(5))
        right, live, probed, left = 0, 0, 0, []
        for number in range(rounds):
            with harness.Recording([target.pid], live=False) as recording:
                if number % 2:
                    live += recording.err.wait("recording", harness.PATIENCE_SECONDS) is not None
                probed += bool(number % 2 and changed_code(target.pid, "truthsim")[1])
                target.say(str(CALLS // 4))
                time.sleep(random.random() * 0.3)  # any moment: attaching, attached, draining
                os.kill(recording.pid, signal.SIGKILL)
                recording.wait()
                right += int(target.out.wait("done", harness.PATIENCE_SECONDS).split()[1]) == CALLS // 4
            left.append(until_none(lambda: changed_code(target.pid, "truthsim")[1]))
        looked, _ = changed_code(target.pid, "truthsim")
        after = min(measure(target)[1] for _ in range(5))
    checks.that(right == rounds and live == rounds // 2,
                "%d of %d answers right, %d kills while recording" % (right, rounds, live))
    checks.that(probed == live and looked and not any(left),
                "code changed in %d of %d recordings; %d bytes of it are the file's again after every "
                "kill, but for %s" % (probed, live, looked, [number for number in left if number] or
                                      "none"))
    over = until_none(orphans)
    checks.that(not over, "links and programs that nobody holds: %s" % (
        "(no bpftool)" if over is None else over or "none"))
    checks.saw("20000 calls: %.4f s before, %.4f s after" % (before, after))
    checks.that(after < before * 1.5 + 0.001, "the target has its unprofiled speed again")


def trace_of_the_killed(checks):
    """A trace whose recorder was killed is read up to its last chunk, and says so."""
    with harness.Target("exact.py") as target:
        with harness.Recording([target.pid]) as recording:
            target.ask(do="kinds", count=300)
            harness.eventually(lambda: "simulator" in harness.run("report", recording.trace).stdout)
            recording.child.kill()
            recording.wait()
            done = harness.run("report", recording.trace, "--format", "json")
            size = os.path.getsize(recording.trace)
    checks.that(done.returncode == 3 and "simulator" in done.stdout,
                "killed recorder's trace of %d bytes: status %d, %r" % (
                    size, done.returncode, done.stderr[:150]))


def budget_of_the_killed(checks):
    """What is scaled is known to be so, although the recorder never came to its end."""
    command = dict(do="load", kinds=["load.fastest"], workers=0, threads=1, seconds=60, cpu=True)
    with harness.Target("load.py", arguments=["--libraries", harness.TRUTH]) as target:
        with harness.Recording([target.pid], "--overhead-budget", "2%") as recording:
            target.say(json.dumps(command))

            def is_windowed():
                events = harness.run("dump", recording.trace).stdout.splitlines()
                return any(json.loads(line).get("windowed_sites") for line in events if '"budget"' in line)
            checks.that(harness.eventually(is_windowed), "sites went into windows")
            recording.child.kill()
            recording.wait()
            report = json.loads(harness.run("report", recording.trace, "--format", "json").stdout)
            text = harness.run("report", recording.trace).stdout
    budget = report["overhead"].get("budget", {})
    checks.that(budget.get("percent") == 2 and budget.get("windowed_sites"),
                "killed within a budget: the report says %s" % budget)
    checks.that("budget 2%" in text and "INCOMPLETE" in text, "and so does the text form")
    scaled = [row for row in report["transitions"] if row["method"] == "scaled"]
    checks.that(scaled and all(row["count"] is None or row["count_error"] for row in scaled),
                "%d scaled counts, each with an error or not known" % len(scaled))


def two_at_once(checks):
    with harness.Target("exact.py") as target:
        with harness.Recording([target.pid]) as first, harness.Recording([target.pid]) as second:
            rows = target.ask(do="kinds", count=100)
            statuses = [first.stop(), second.stop()]
            reports = [first.report(), second.report()]
    checks.that(statuses == [0, 0], "two profilers: statuses %s" % statuses)
    for report in reports:
        harness.check_truth(checks, report, rows)
        harness.check_sums(checks, report)


def main():
    harness.need_root_and_profiler()
    checks = harness.Checks()
    killed_again_and_again(checks)
    trace_of_the_killed(checks)
    budget_of_the_killed(checks)
    two_at_once(checks)
    checks.finish()


if __name__ == "__main__":
    main()
