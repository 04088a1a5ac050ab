#!/usr/bin/python3
"""compare.py RLSCOPE_BPF: what `compare` says of two traces, and its exit status for CI.

RLS_UPDATE_GOLDEN=1 writes expected/compare.* instead of reading them; read the difference.
"""
import json
import math
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile


EXPECTED = pathlib.Path(__file__).resolve().parent / "expected"
HTML = pathlib.Path(__file__).resolve().parents[2] / "analysis/writers/html"


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


def make_loop(path, seed, slow=1, simulator=1, evil=False):
    """A loop of four operations in two phases: all of it takes `slow` times as long."""
    chance, at = random.Random(seed), 0
    lines = [{"event": "thread", "time_ns": 0, "pid": 1, "tid": 1, "name": "main"}]
    operations = ["inference", "simulation", "replay", "</script><script>alert(1)</script>" if evil else "backpropagation"]

    def then(mean_ns, **what):
        nonlocal at
        at += int(slow * mean_ns * chance.uniform(0.9, 1.1))
        lines.append({"time_ns": at, "pid": 1, "tid": 1, **what})

    for step in range(600):
        if step in (0, 200):
            lines.append({"event": "phase", "time_ns": at, "pid": 1, "phase": "training" if step else "warmup"})
        for operation in operations:
            simulates = operation == "simulation"
            then(1000, event="operation", stack=["loop", operation])
            then(100_000, event="category", category="simulator" if simulates else "backend")
            then(300_000 * (simulator if simulates else 1) * (1 if step < 200 else 2), event="category", category="python")
            then(1000, event="operation", stack=["loop"])
    lines.append({"event": "end", "time_ns": at, "complete": True})
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def compare(*arguments, cwd=None):
    return subprocess.run([os.path.abspath(sys.argv[1]), "compare", *map(str, arguments)], capture_output=True, text=True, timeout=600, cwd=cwd)


def is_alike(left, right):
    """Equal but for the last digits of numbers, in which mathematical libraries differ."""
    if isinstance(left, dict):
        return isinstance(right, dict) and left.keys() == right.keys() and all(is_alike(left[k], right[k]) for k in left)
    if isinstance(left, list):
        return isinstance(right, list) and len(left) == len(right) and all(map(is_alike, left, right))
    if isinstance(left, float) or isinstance(right, float):
        return None not in (left, right) and math.isclose(left, right, rel_tol=1e-6, abs_tol=1e-9)
    return left == right


def check_golden(folder):
    for name, seed, slow, simulator in (("a1", 1, 1, 1), ("a2", 2, 1, 1), ("b1", 3, 1.15, 1.1), ("b2", 4, 1.15, 1.1)):
        make_loop(folder / f"{name}.jsonl", seed, slow, simulator)
    cases = {"two": ["a1.jsonl", "b1.jsonl"],
             "runs": ["a1.jsonl", "a2.jsonl", "--against", "b1.jsonl", "b2.jsonl"]}
    for name, traces in cases.items():
        for form, ending in (("text", "txt"), ("json", "json")):
            answer = compare("--format", form, *traces, cwd=folder)
            assert answer.returncode == 0 and not answer.stderr, answer
            path = EXPECTED / f"compare.{name}.{ending}"
            if os.environ.get("RLS_UPDATE_GOLDEN"):
                path.write_text(answer.stdout)
            expected = path.read_text()
            same = answer.stdout == expected if form == "text" else is_alike(json.loads(answer.stdout), json.loads(expected))
            assert same, f"{path.name} is otherwise now:\n{answer.stdout}"
        check_golden_page(name, traces, folder)


def check_golden_page(name, traces, folder):
    """The page is the JSON form, the sources of html/ as they are, and a frame around them."""
    page = compare("--format", "html", *traces, cwd=folder).stdout
    model = compare("--format", "json", *traces, cwd=folder).stdout
    block = re.search('<script type="application/json" id="model">(.*?)</script>', page, re.S)
    assert json.loads(block[1]) == json.loads(model)
    frame = page.replace(block[1], "the JSON form")
    for source in ("style.css", "dom.js", "bars.js", "compare.js"):
        text = (HTML / source).read_text()
        assert frame.count(text) == 1, source
        frame = frame.replace(text, source)
    path = EXPECTED / "compare.html"
    if os.environ.get("RLS_UPDATE_GOLDEN"):
        path.write_text(frame)
    assert frame == path.read_text(), f"{path.name} is otherwise now:\n{frame}"


def significant(model):
    return {(row["operation"], row["category"]) for row in model["comparisons"][0]["rows"] if row["significant"]}


def check_common_factor(folder):
    """One run each cannot tell a slow machine; it can tell what differs from all the rest."""
    base, slow = make_loop(folder / "base.jsonl", 5), make_loop(folder / "slow.jsonl", 6, slow=1.15)
    model = json.loads(compare("--format", "json", base, slow).stdout)
    assert not significant(model) and abs(model["comparisons"][0]["speed"] - 1.15) < 0.01, model["comparisons"][0]["speed"]
    model = json.loads(compare("--format", "json", "--normalise", "none", base, slow).stdout)
    assert ("backpropagation", "total") in significant(model) and ("simulation", "simulator") in significant(model)
    assert model["comparisons"][0]["judged"] == "change"
    for row in model["comparisons"][0]["rows"]:
        assert not row["significant"] or abs(row["change_percent"] - 15) < 3, row


def check_page(folder):
    """The page holds the JSON form, and no markup of the target's."""
    traces = make_loop(folder / "evil1.jsonl", 7, evil=True), make_loop(folder / "evil2.jsonl", 8, evil=True)
    page, model = compare("--format", "html", *traces).stdout, compare("--format", "json", *traces).stdout
    assert "<script>alert" not in page and page.rstrip().endswith("</html>")
    block = page.split('<script type="application/json" id="model">')[1].split("</script>")[0]
    assert json.loads(block) == json.loads(model)
    assert any("alert(1)" in row["operation"] for row in json.loads(block)["comparisons"][0]["rows"])


def check_sides(folder):
    runs = [make_loop(folder / f"run{i}.jsonl", 10 + i, 1, 1 if i < 3 else 1.1) for i in range(6)]
    answer = compare("--format", "json", *runs[:3], "--against", *runs[3:])
    model = json.loads(answer.stdout)
    assert [trace["side"] for trace in model["traces"]] == [0, 0, 0, 1, 1, 1]
    assert ("simulation", "simulator") in significant(model), significant(model)
    assert all(operation in ("simulation",) for operation, _ in significant(model)), significant(model)
    rule = ["--fail-if", "simulation.simulator > +5%"]
    assert compare(*runs[:3], "--against", *runs[3:], *rule).returncode == 4
    for wrong in (["--against", runs[0], runs[1]], [runs[0], "--against"], [runs[0], "--against", "--against", runs[1]],
                  ["--normalise", "x", runs[0], runs[1]]):
        answer = compare(*wrong)
        assert answer.returncode == 2 and not answer.stdout and len(answer.stderr.splitlines()) == 1, answer


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

    check_golden(folder)
    check_common_factor(folder)
    check_page(folder)
    check_sides(folder)


if __name__ == "__main__":
    main()
