"""The profile in `go tool pprof`: the same totals, for every sample type."""
import json
import pathlib
import re
import shutil
import subprocess

import common


def pprof_command():
    if shutil.which("pprof"):
        return ["pprof"]
    if not shutil.which("go"):
        common.skip("there is no pprof; Debian has it in golang-go")
    return ["go", "tool", "pprof"]


def pprof(command, *arguments):
    run = subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=600)
    assert run.returncode == 0, run.stderr
    return run.stdout


def top(command, profile, sample_type, *arguments):
    """Function -> (flat, cumulative)."""
    text = pprof(command, "-top", "-unit=ns", "-nodecount=100000", "-nodefraction=0", f"-sample_index={sample_type}", *arguments,
                 str(profile))
    assert f"Type: {sample_type}" in text
    rows = re.findall(r"^ *([\d.]+)(?:ns)? +[\d.]+% +[\d.]+% +([\d.]+)(?:ns)? +[\d.]+%  (.*)$", text, re.M)
    return {name: (int(float(flat)), int(float(total))) for flat, total, name in rows}


def flat_sums(rows):
    return {name: flat for name, (flat, _) in rows.items() if flat}


def by_category(trace, value, **more):
    return {category: figure for (category,), figure in trace.sums(value, "category", **more).items()}


def check_samples(command, folder):
    """The sampled stacks: their own sums, kinds and places, and nothing of them in the traced ones."""
    events = pathlib.Path(__file__).parents[1] / "golden" / "samples" / "events.jsonl"
    model = json.loads(subprocess.check_output([common.BIN, "report", "--format", "json", events]))
    profile = pathlib.Path(folder, "samples.pprof")
    subprocess.run([common.BIN, "report", "--format", "pprof", "-o", profile, events], check=True)

    rows = model["samples"]
    assert sum(flat_sums(top(command, profile, "sampled")).values()) == sum(row["ns"] for row in rows) > 0
    assert sum(flat_sums(top(command, profile, "samples")).values()) == sum(row["samples"] for row in rows) > 0
    assert sum(flat_sums(top(command, profile, "wall")).values()) == sum(row["wall_ns"] for row in model["breakdown"])
    for kind in {row["kind"] for row in rows}:
        some = top(command, profile, "sampled", f"-tagfocus=kind=^{kind}$")
        assert sum(flat_sums(some).values()) == sum(row["ns"] for row in rows if row["kind"] == kind)
    lines = pprof(command, "-top", "-lines", "-sample_index=sampled", str(profile))
    assert "Agent.act /job/agent.py:12" in lines and "Agent.act /job/agent.py:14" in lines, lines


def main():
    command = pprof_command()
    trace = common.Trace()
    profile = trace.report("pprof")
    assert flat_sums(top(command, profile, "wall")) == by_category(trace, "wall_ns")
    assert flat_sums(top(command, profile, "on_cpu")) == by_category(trace, "on_cpu_ns")
    assert flat_sums(top(command, profile, "corrected")) == by_category(trace, "corrected_ns")

    busy = by_category(trace, "wall_ns", resources=["cpu+gpu"])
    alone = trace.sums("wall_ns", resources=["gpu"])
    assert alone and busy
    busy["GPU without a thread"] = alone[()]
    assert flat_sums(top(command, profile, "gpu")) == busy

    transitions = {}
    for row in trace.model["transitions"]:
        transitions[row["to"]] = transitions.get(row["to"], 0) + row["count"]
    assert flat_sums(top(command, profile, "transitions")) == transitions

    for operation in ("step", "inference"):
        rows = top(command, profile, "wall", f"-tagfocus=operation=^{operation}$")
        assert sum(flat_sums(rows).values()) == trace.sums("wall_ns", "operation")[operation,]
    rows = top(command, profile, "wall", "-tagfocus=phase=^train$", "-tagfocus=pid=100")
    assert sum(flat_sums(rows).values()) > 0

    check_samples(command, trace.folder.name)

    cut_short = common.Trace(complete=False)
    comments = pprof(command, "-comments", str(cut_short.report("pprof")))
    assert all(warning in comments for warning in cut_short.warnings())
    print("wall", sum(flat_sums(top(command, profile, "wall")).values()), "ns")


main()
