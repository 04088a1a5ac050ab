#!/usr/bin/env python3
"""rivals.py PYTHON RIVALS ROUNDS NAME...: what profilers cost the same work.

RIVALS is the folder that compare-profilers has installed the others into. Ours watch forked
children (pairs.py); the others start the program, as they are made to. Every profiler is
compared with no profiler in the same way of running, turn about. A table on stderr, JSON on
stdout; what cannot be had is said and left out.
"""

import json
import os
import subprocess
import sys

import pairs

WORK = os.path.join(pairs.HERE, "work.py")


def once(command, folder):
    """The work in a process of its own: how long it says that it took."""
    environment = pairs.environment()
    environment["PYTHONPATH"] += ":" + folder
    done = subprocess.run(command, env=environment, capture_output=True, text=True,
                          timeout=pairs.PATIENCE_SECONDS, check=False)
    for line in done.stdout.splitlines():
        if line.startswith("{") and "wall_ns" in line:
            return json.loads(line)["wall_ns"]
    raise pairs.Failed((done.stderr.strip().splitlines() or ["it printed nothing"])[-1][:100])


def rivals(python, folder, name):
    """{profiler: command}"""
    work = [WORK, name, "--once"]
    spy = [os.path.join(folder, "bin", "py-spy"), "record", "-r", "100", "-o", "/dev/null"]
    return {
        "none": [python, *work],
        "cProfile": [python, "-m", "cProfile", "-o", "/dev/null", *work],
        "py-spy": [*spy, "--", python, *work],
        "py-spy --native": [*spy, "--native", "--", python, *work],
        "scalene --cpu-only": [python, "-m", "scalene", "run", "--cpu-only", "-o", "/tmp/rlscope-bench-scalene.json",
                               "---", *work],
        "torch.profiler": [python, *work, "--torch-profiler"],
    }


def measure_rivals(python, folder, name, rounds):
    commands = rivals(python, folder, name)
    walls = {}
    for number in range(rounds):
        for profiler, command in commands.items():
            if number and profiler not in walls:
                continue    # it has failed before
            try:
                walls.setdefault(profiler, []).append(once(command, folder))
            except (pairs.Failed, OSError, subprocess.TimeoutExpired) as error:
                walls.pop(profiler, None)
                print("   %-20s left out: %s" % (profiler, error), file=sys.stderr, flush=True)
    if "none" not in walls:
        raise pairs.Failed("the work itself does not run")
    return walls


def measure_own(python, name, rounds):
    profilers = {"none": pairs.Nothing(),
                 "ours, everything": pairs.Recorder("--overhead-budget", "none"),
                 "ours, default": pairs.Recorder(),
                 "ours, 1 %": pairs.Recorder("--overhead-budget", "1")}
    with pairs.Work(python, name) as work:
        return pairs.turn_about(work, profilers, rounds)


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


def measure(python, folder, name, rounds):
    own = measure_own(python, name, rounds)
    base = pairs.median([answer["wall_ns"] for answer in own["none"]])
    rows = [row(name, profiler, [answer["wall_ns"] for answer in answers], base,
                **(of_recorder(answers) if profiler != "none" else {}))
            for profiler, answers in own.items()]
    others = measure_rivals(python, folder, name, rounds)
    base = pairs.median(others["none"])
    return rows + [row(name, profiler, walls, base) for profiler, walls in others.items()
                   if profiler != "none"]


def main():
    if len(sys.argv) < 5:
        pairs.die("takes PYTHON RIVALS ROUNDS NAME...")
    python, folder, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
    rows = []
    print("%-20s %-20s %s" % ("work", "profiler", "inflation"), file=sys.stderr)
    for name in sys.argv[4:]:
        try:
            rows += measure(python, folder, name, rounds)
        except pairs.Failed as error:
            print("%-20s skipped: %s" % (name, error), file=sys.stderr)
    json.dump({"version": 1, "rows": rows}, sys.stdout, indent=1)
    print()
    sys.exit(0 if rows else 1)


if __name__ == "__main__":
    main()
