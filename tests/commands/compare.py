#!/usr/bin/python3
"""compare.py RLSCOPE_BPF: what `compare` says of two traces, and its exit status for CI."""
import json
import pathlib
import random
import subprocess
import sys
import tempfile


def make_trace(path, seed, simulator, complete=True):
    chance, at = random.Random(seed), 0
    lines = [{"event": "thread", "time_ns": 0, "pid": 1, "tid": 1, "name": "main"}]

    def then(mean_ns, **what):
        nonlocal at
        at += int(mean_ns * chance.uniform(0.9, 1.1))
        lines.append({"time_ns": at, "pid": 1, "tid": 1, **what})

    for _ in range(1500):
        then(1000, event="operation", stack=["simulation"])
        then(100_000, event="category", category="simulator")
        then(500_000 * simulator, event="category", category="python")
        then(1000, event="operation", stack=[])
    if complete:
        lines.append({"event": "end", "time_ns": at, "complete": True})
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def compare(*arguments):
    return subprocess.run([sys.argv[1], "compare", *map(str, arguments)], capture_output=True, text=True, timeout=60)


def main():
    scratch = tempfile.TemporaryDirectory(prefix="rlscope-compare-")
    folder = pathlib.Path(scratch.name)
    base, same, slow = (make_trace(folder / f"{n}.jsonl", n, factor) for n, factor in enumerate((1, 1, 1.1)))
    cut_short = make_trace(folder / "cut_short.jsonl", 3, 1, complete=False)

    answer = compare(base, same)
    assert answer.returncode == 0 and "No significant difference." in answer.stdout, answer
    answer = compare(base, slow)
    assert answer.returncode == 0 and " *\n" in answer.stdout and "No significant" not in answer.stdout, answer

    answer = compare("--format", "json", base, same, slow)
    model = json.loads(answer.stdout)
    assert [len(trace["warnings"]) for trace in model["traces"]] == [0, 0, 0]
    assert not any(row["significant"] for row in model["comparisons"][0]["rows"])
    first = model["comparisons"][1]["rows"][0]
    assert first["operation"] == "simulation" and first["category"] in ("simulator", "total") and first["significant"]
    assert abs(first["change_percent"] - (10 if first["category"] == "simulator" else 8.3)) < first["error_percent"] + 0.3, first

    rule = ["--fail-if", "simulation.simulator > +5%"]
    assert compare(*rule, base, same).returncode == 0
    answer = compare(*rule, base, slow)
    assert answer.returncode == 4 and "simulation.simulator changed by" in answer.stderr, answer
    assert compare("--fail-if", "*.simulator>20%", base, slow).returncode == 0
    assert compare("--fail-if", "nowhere.total > 5%", base, slow).returncode == 1
    for wrong in (["--fail-if", "simulation > 5%"], ["--metric", "x"], ["--noise", "x"], ["--format", "x"]):
        answer = compare(*wrong, base, slow)
        assert answer.returncode == 2 and not answer.stdout and len(answer.stderr.splitlines()) == 1, answer
    assert compare(base).returncode == 2
    assert compare(base, folder / "nothing").returncode == 1

    answer = compare(base, cut_short)
    assert answer.returncode == 3 and "INCOMPLETE" in answer.stdout and "warning: " in answer.stdout, answer
    assert compare("--help").returncode == 0


if __name__ == "__main__":
    main()
