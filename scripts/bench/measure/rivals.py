#!/usr/bin/env python3
"""rivals.py PYTHON RIVALS ROUNDS SECONDS NAME...: what profilers cost the same work.

RIVALS is the environment that compare-profilers has installed the others into. The work is done so often that it
takes SECONDS alone. Ours and
bpftrace watch forked children (pairs.py); the others start the program, as they are made to.
Every profiler is compared with no profiler in the same way of running, turn about. A table on
stderr, JSON on stdout; what cannot be had, or fails, is said and left out.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import bpftrace
import pairs

WORK = os.path.join(pairs.HERE, "work.py")


SLOWEST = 10    # times as long as alone


def once(command, seconds):
    """The work in a process of its own: how long it says that it took. Some leave files where they are started."""
    with tempfile.TemporaryDirectory(prefix="rlscope-bench-") as folder:
        done = subprocess.run(command, env=pairs.environment(), capture_output=True, text=True, cwd=folder,
                              timeout=pairs.PATIENCE_SECONDS + SLOWEST * seconds, check=False)
    for line in done.stdout.splitlines():
        if line.startswith("{") and "wall_ns" in line:
            return json.loads(line)["wall_ns"]
    raise pairs.Failed((done.stderr.strip().splitlines() or ["it printed nothing"])[-1][:100])


def times_of(python, name, seconds):
    """How often the work must be done to take so long alone."""
    with pairs.Work(python, name) as work:
        return max(1, round(seconds * 1e9 / work.run(pairs.Nothing())["wall_ns"]))


def rivals(python, folder, name, times):
    """{profiler: command}"""
    work = [WORK, name, "--times", str(times)]
    spy = [os.path.join(folder, "bin", "py-spy"), "record", "-r", "100", "-o", "/dev/null"]
    return {
        "none": [python, *work],
        "cProfile": [python, "-m", "cProfile", "-o", "/dev/null", *work],
        "py-spy": [*spy, "--", python, *work],
        "py-spy --native": [*spy, "--native", "--", python, *work],
        "scalene --cpu-only": [os.path.join(folder, "bin", "python"), "-m", "scalene", "run", "--cpu-only", "---", *work],
        "torch.profiler": [python, *work, "--torch-profiler"],
    }


def wanted(profilers):
    pattern = os.environ.get("BENCH_PROFILERS", "")
    return {name: profiler for name, profiler in profilers.items()
            if name == "none" or re.search(pattern, name)}


def measure_rivals(python, folder, name, rounds, seconds, times):
    commands = wanted(rivals(python, folder, name, times))
    walls = {}
    if len(commands) < 2:
        return walls
    for number in range(rounds):
        for profiler, command in commands.items():
            if number and profiler not in walls:
                continue    # it has failed before
            try:
                walls.setdefault(profiler, []).append(once(command, seconds))
            except (pairs.Failed, OSError, subprocess.TimeoutExpired) as error:
                walls.pop(profiler, None)
                print("   %-20s left out: %s" % (profiler, error), file=sys.stderr, flush=True)
    if "none" not in walls:
        raise pairs.Failed("the work itself does not run")
    return walls


def measure_own(python, name, rounds, times):
    profilers = wanted({"none": pairs.Nothing(),
                        "ours, everything": pairs.Recorder("--overhead-budget", "none"),
                        "ours, default": pairs.Recorder(),
                        "ours, 1 %": pairs.Recorder("--overhead-budget", "1")})
    if len(profilers) < 2:
        return {}
    with pairs.Work(python, name) as work:
        return pairs.turn_about(work, profilers, rounds, times)


def measure_bpftrace(python, name, rounds, times):
    """Alone with no profiler: its probes take long to go, and must not meet others'."""
    profilers = wanted({"none": pairs.Nothing(), "bpftrace": bpftrace.Bpftrace()})
    if len(profilers) < 2:
        return {}
    try:
        with pairs.Work(python, name) as work:
            return pairs.turn_about(work, profilers, rounds, times)
    except pairs.Failed as error:
        print("   %-20s left out: %s" % ("bpftrace", error), file=sys.stderr, flush=True)
        return {}


def of_recorder(answers):
    """What a recorder of ours took, medians."""
    seconds = pairs.median([answer["wall_ns"] for answer in answers]) / 1e9
    events = pairs.median([answer["report"]["overhead"]["events"] for answer in answers])
    return {"events_per_s": events / seconds,
            "trace_bytes_per_event": pairs.median([answer["trace_bytes"] for answer in answers]) /
                                     max(events, 1),
            "recorder_cpu_share": pairs.median([answer["recorder_cpu_s"] for answer in answers]) /
                                  seconds,
            "recorder_peak_mb": max(answer["recorder_peak_bytes"] for answer in answers) / 1e6}


def row(name, profiler, walls, base, **more):
    mean, half = pairs.interval([wall / base for wall in walls])
    print("%-20s %-20s %6.3f ± %.3f  %s" % (name, profiler, mean, half, "  ".join(
        "%s %.4g" % (key, value) for key, value in more.items())), file=sys.stderr, flush=True)
    return {"work": name, "profiler": profiler, "inflation": mean, "half_width": half, **more}


def against_none(name, answers):
    """Rows of profilers that watched forked children."""
    if not answers:
        return []
    base = pairs.median([answer["wall_ns"] for answer in answers["none"]])
    return [row(name, profiler, [answer["wall_ns"] for answer in several], base,
                **(of_recorder(several) if "report" in several[0] else several[0].get("more", {})))
            for profiler, several in answers.items()]


def measure(python, folder, name, rounds, seconds):
    times = times_of(python, name, seconds)
    rows = against_none(name, measure_own(python, name, rounds, times))
    rows += against_none(name, measure_bpftrace(python, name, rounds, times))[1:]
    others = measure_rivals(python, folder, name, rounds, seconds, times)
    return rows + [row(name, profiler, walls, pairs.median(others["none"]))
                   for profiler, walls in others.items() if profiler != "none"]


def main():
    if len(sys.argv) < 6:
        pairs.die("takes PYTHON RIVALS ROUNDS SECONDS NAME...")
    python, folder = os.path.abspath(shutil.which(sys.argv[1]) or sys.argv[1]), os.path.abspath(sys.argv[2])
    rounds, seconds = int(sys.argv[3]), float(sys.argv[4])
    rows = []
    print("%-20s %-20s %s" % ("work", "profiler", "inflation"), file=sys.stderr)
    for name in sys.argv[5:]:
        try:
            rows += measure(python, folder, name, rounds, seconds)
        except pairs.Failed as error:
            print("%-20s skipped: %s" % (name, error), file=sys.stderr)
    json.dump({"version": 1, "rows": rows}, sys.stdout, indent=1)
    print()
    sys.exit(0 if rows else 1)


if __name__ == "__main__":
    main()
