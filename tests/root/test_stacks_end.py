#!/usr/bin/python3
"""Samples of processes that end at any moment, become another program, or fork: the
profiler goes on, and no sample is given to code of another process or program."""

import collections
import json
import os
import sys
import tempfile

import harness

HZ = 997
CHILDREN = 50

# Each child ends in a way and at a moment of its own, in the midst of running deep code: after so much of its
# own CPU time, since on a busy machine it may not have run at all before a moment has passed.
CROWD = """
import os, random, signal, subprocess, sys
child = '''
import os, signal, sys, threading, time
way, end_s = sys.argv[1], time.process_time() + float(sys.argv[2])
def end():
    while time.process_time() < end_s:
        time.sleep(0.001)
    os.kill(os.getpid(), signal.SIGKILL) if way == "kill" else os._exit(0)
def deep(n):
    return deep(n - 1) if n else spin()
def spin():
    while time.process_time() < (end_s if way == "return" else 60):
        exec(compile("sum(range(100))", "<made>", "exec"))
if way != "return":
    threading.Thread(target=end, daemon=True).start()
for _ in range(2):
    threading.Thread(target=deep, args=(200,), daemon=True).start()
deep(200)
'''
chance = random.Random(5)
running = []
for i in range(%d):
    running.append(subprocess.Popen([sys.executable, "-c", child, chance.choice(["kill", "exit", "return"]),
                                     str(chance.random() * 0.15)]))
    while len(running) > 3:
        running.pop(0).wait()
for one in running:
    one.wait()
print("all ended", flush=True)
""" % CHILDREN

# One that becomes another program twice, and forks; each function runs in one of them only.
CHANGING = """
import os, sys, time
def spin(seconds):
    end_s = time.thread_time() + seconds
    while time.thread_time() < end_s:
        pass
def report(name):
    print(name, os.getpid(), time.monotonic_ns(), flush=True)
stage = int(sys.argv[2])
exec("def of_stage_%d(): spin(0.5)" % stage)
report("stage%d" % stage)
globals()["of_stage_%d" % stage]()
if stage < 2:
    os.execv(sys.executable, [sys.executable, sys.argv[0], "-", str(stage + 1)])
def in_child(): spin(0.5)
def in_parent(): spin(0.5)
child = os.fork()
if not child:
    report("child")
    in_child()
    os._exit(0)
in_parent()
os.waitpid(child, 0)
report("end")
"""


# Children that run for a moment, and children of theirs: each is in Python all its life.
TREE = """
import os, time
def spin(seconds):
    end_s = time.thread_time() + seconds
    while time.thread_time() < end_s:
        pass
def branch(depth):
    for _ in range(3):
        child = os.fork()
        if not child:
            if depth:
                branch(depth - 1)
            in_child(depth)
            os._exit(0)
        os.waitpid(child, 0)
def in_child(depth):
    spin(0.03)
spin(0.5)
print("root", os.getpid(), flush=True)
branch(2)
"""


def run(folder, command):
    trace, path = os.path.join(folder, "trace"), os.path.join(folder, "report.json")
    done = harness.run("run", *harness.EXACT, "--sample-hz", str(HZ), "-o", trace, "--format", "json",
                       "--report", path, "--", *command, timeout=harness.PATIENCE_SECONDS)
    with open(path) as stream:
        report = json.load(stream)
    lines = harness.run("dump", trace).stdout.splitlines()
    return done, [json.loads(line) for line in lines], report


def check_sums(checks, report):
    lines = sum(row["python_ns"] + row["native_ns"] + row["system_ns"] + row["waiting_ns"]
                for row in report["lines"])
    kinds = sum(row["ns"] for row in report["samples"])
    checks.that(lines == kinds > 0, "lines and kinds add up to the same: %.3f s" % (kinds / 1e9))


def crowd(checks, folder, python):
    done, events, report = run(folder, [python, "-c", CROWD])
    sampled = {event["pid"] for event in events if event.get("event") == "sample"}
    checks.that(done.returncode == 0 and "all ended" in done.stdout,
                "%d processes that end at any moment: status %d, %r" % (
                    CHILDREN, done.returncode, done.stderr[-200:] if done.returncode else ""))
    checks.that(len(sampled) > CHILDREN // 2, "%d processes were sampled" % len(sampled))
    names = {row["function"] for row in report["functions"]}
    checks.that({"deep", "spin"} <= names, "what they ran is named")
    checks.saw("said: %s" % [w for w in report["warnings"] if w.startswith("samples")])
    check_sums(checks, report)


def functions_of(events):
    """(sample, names of its Python functions) of each."""
    frames = {event["id"]: event for event in events if event.get("event") == "frame"}
    for event in events:
        if event.get("event") != "sample":
            continue
        names, leaf = set(), event.get("frame", 0)
        while leaf:
            if not frames[leaf].get("native"):
                names.add(frames[leaf]["function"])
            leaf = frames[leaf].get("parent", 0)
        yield event, names


def changing(checks, folder, python):
    script = os.path.join(folder, "changing.py")
    with open(script, "w") as stream:
        stream.write(CHANGING)
    done, events, report = run(folder, [python, script, "-", "0"])
    stages = {line.split()[0]: (int(line.split()[1]), int(line.split()[2]))
            for line in done.stdout.splitlines() if len(line.split()) == 3}
    checks.that(done.returncode == 0 and len(stages) == 5, "execs and forks: status %d, %s" % (
        done.returncode, sorted(stages)))
    counts, wrong = collections.Counter(), []
    for event, names in functions_of(events):
        for name in names & {"of_stage_0", "of_stage_1", "of_stage_2", "in_child", "in_parent"}:
            counts[name] += 1
            stage = name.replace("of_stage_", "stage")
            begin = stages[stage][1] if stage in stages else 0
            pid = stages["child"][0] if name == "in_child" else stages["stage0"][0]
            following = "stage%s" % (int(name[-1]) + 1) if name[-1] in "01" else "end"
            if event["pid"] != pid or not begin <= event["time_ns"] <= stages[following][1] + 10**9 * (
                    following == "end"):
                wrong.append((name, event))
    checks.that(len(counts) == 5 and min(counts.values()) > 20,
                "every function was sampled in its time: %s" % dict(counts))
    checks.that(not wrong, "none in another's time or process: %d %s" % (len(wrong), wrong[:2]))
    check_sums(checks, report)


def tree(checks, folder, python):
    """Forked children are walked from their first sample on: the interpreter is their parent's."""
    done, events, report = run(folder, [python, "-c", TREE])
    root = int(done.stdout.split()[1]) if done.returncode == 0 else 0
    counts, bare = collections.Counter(), collections.Counter()
    for event, names in functions_of(events):
        if event["pid"] != root and event["kind"] in ("python", "runtime", "native", "system"):
            counts[event["pid"]] += 1
            bare[event["pid"]] += not names & {"branch", "in_child"}
    checks.that(done.returncode == 0 and len(counts) > 30,
                "a tree of children that run for 30 ms: %d of 39 were sampled, %d times" % (
                    len(counts), sum(counts.values())))
    # Just after a fork the interpreter makes its thread's state known anew.
    checks.that(sum(bare.values()) <= sum(counts.values()) // 10,
                "samples of them without their stack: %s" % dict(+bare))
    checks.saw("said: %s" % [w for w in report["warnings"] if w.startswith("samples")])


def main():
    harness.need_root_and_profiler()
    checks, python = harness.Checks(), harness.interpreter(sys.argv[1])
    with tempfile.TemporaryDirectory(prefix="rls-") as folder:
        crowd(checks, folder, python)
        changing(checks, folder, python)
        tree(checks, folder, python)
    checks.finish()


if __name__ == "__main__":
    main()
