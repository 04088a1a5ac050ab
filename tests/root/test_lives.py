#!/usr/bin/python3
"""Short lives: children that begin and end while the profiler sets up, and workers that meet no probe."""

import json
import os
import time

import harness

# Children that mostly sleep, one after the other, so that some end before recording begins and one is there then. Each
# tells when it ended, by CLOCK_MONOTONIC, and how long it ran.
FORKS = """
import os, sys, time
sys.path[:0] = [sys.argv[1]]
import truthsim
print("ready", flush=True)
while True:
    pid = os.fork()
    if not pid:
        end = time.monotonic() + float(sys.argv[2])
        while time.monotonic() < end:
            truthsim.noargs()
            time.sleep(0.01)
        os.write(1, b"%d %d %d\\n" % (os.getpid(), time.monotonic_ns(), time.process_time_ns()))
        os._exit(0)
    os.waitpid(pid, 0)
"""
# Workers that do nothing but Python, in an operation: by now, how long it was, from within and from without.
WORKERS = """
import json, os, sys, time
import rlscope
print("ready", flush=True)
for line in sys.stdin:
    rows = []
    for i in range(int(line)):
        reader, writer = os.pipe()
        if not os.fork():
            before = time.monotonic_ns()
            with rlscope.operation("worker"):
                inner = time.monotonic_ns()
                while time.monotonic_ns() < inner + 20000000:
                    pass
                inner = time.monotonic_ns() - inner
            os.write(writer, json.dumps([os.getpid(), inner, time.monotonic_ns() - before]).encode())
            os._exit(0)
        rows.append(json.loads(os.read(reader, 100)))
        os.wait()
        os.close(reader)
        os.close(writer)
    print(json.dumps(rows), flush=True)
"""
WORKERS_COUNT = 20


def events(trace):
    return [json.loads(line) for line in harness.run("dump", trace).stdout.splitlines()]


def at_setup(checks, seconds):
    command = [harness.interpreter(), "-c", FORKS, harness.modules(), str(seconds)]
    with harness.Process(command) as job:
        job.out.wait("ready", harness.PATIENCE_SECONDS)
        with harness.Recording([job.pid]) as recording:
            seen = len(job.out.seen)
            harness.eventually(lambda: len(job.out.seen) > seen + 5)
            stop_ns = time.monotonic_ns()
            status = recording.stop()
            report, found = recording.report(), events(recording.trace)
            text = harness.run("report", recording.trace).stdout
        job.child.kill()
        ended = {int(pid): (int(end), int(ran)) for pid, end, ran in
                 (line.split() for line in job.out.seen[1:] if line.count(" ") == 2)}
    checks.that(status == 0, "children of %s s: profiler ended with %d" % (seconds, status))
    begin_ns = next(event["time_ns"] for event in found if event["event"] == "host")
    early = [event for event in found if event["event"] in ("process", "thread", "thread_end", "process_end", "category")
             and event["time_ns"] < begin_ns]
    checks.that(not early, "nothing is reported of before the beginning: %s" % early[:3])
    checks.that(report["duration_ns"] <= stop_ns - begin_ns + 10**9 * recording.stop_seconds,
                "recorded for no longer than it took: %d ms" % (report["duration_ns"] // 10**6))
    pids = [process["pid"] for process in report["processes"]]
    checks.that(len(set(pids)) == len(pids) and len(pids) > 3, "%d processes, each once" % len(pids))
    twice = [pid for pid in pids if text.count("\npython3 (pid %d)" % pid) + text.count("└ python3 (pid %d)" % pid) > 2]
    checks.that(not twice, "each once in the text: %s" % twice)
    gone = [pid for pid in pids if pid in ended and ended[pid][0] < begin_ns - 10**9]
    checks.that(not gone, "none that had ended: %s" % gone)
    missing = [pid for pid, (end, _) in ended.items() if begin_ns <= end <= stop_ns and pid not in pids]
    checks.that(not missing, "all that were there: %s" % missing)
    if seconds >= 0.1:
        too_much = [(thread["pid"], thread["on_cpu_ns"], thread["wall_ns"]) for thread in report["threads"]
                    if thread["pid"] in ended and thread["wall_ns"] > 50000000
                    and thread["on_cpu_ns"] > ended[thread["pid"]][1] + thread["wall_ns"] // 2]
        checks.that(not too_much, "none was on a CPU for longer than it ran: %s" % too_much)
        unknown = sum(row["wall_ns"] for row in report["breakdown"] if row["category"] == "unknown")
        checks.saw("unknown: %d ms of %d" % (unknown // 10**6, sum(t["wall_ns"] for t in report["threads"]) // 10**6))


def unprobed(checks):
    """Their operations are read as they end, which Linux before 6.16 does too late."""
    command = [harness.interpreter(), "-c", WORKERS]
    with harness.Process(command, env=dict(os.environ, PYTHONPATH=os.environ["RLS_PYTHONPATH"])) as job:
        job.out.wait("ready", harness.PATIENCE_SECONDS)
        with harness.Recording([job.pid]) as recording:
            job.say(str(WORKERS_COUNT))
            rows = json.loads(job.out.wait("[", harness.PATIENCE_SECONDS))
            status = recording.stop()
            report = recording.report()
    checks.that(status == 0, "profiler ended with %d" % status)
    release = [int(number) for number in os.uname().release.split(".")[:2]]
    if release < [6, 16]:
        checks.saw("not to be had on this kernel")
        return
    entries = sum(row["entries"] for row in report["operations"] if row["operation"] == "worker")
    checks.that(entries == WORKERS_COUNT, "%d workers, %d entries of their operation" % (WORKERS_COUNT, entries))
    wrong = []
    for pid, inner, outer in rows:
        found = sum(row["wall_ns"] for row in report["breakdown"]
                   if row["pid"] == pid and row["operation"] == "worker")
        if not inner <= found <= outer:
            wrong.append((pid, inner, found, outer))
    checks.that(not wrong, "each is as long as it was: %s" % wrong)


def main():
    harness.need_root_and_profiler()
    checks = harness.Checks()
    for seconds in (0.005, 0.2):
        at_setup(checks, seconds)
    unprobed(checks)
    checks.finish()


main()
