"""Fixed small workloads of each framework, whose launches are known: calls that the probes counted
against kernels that CUPTI recorded. Each check returns (held, what was seen), or raises NotPossible."""

from bench import kernels, lost

STEPS = 500
WAIT = "4"  # in which the recorder is to be there


def calls(report):
    return sum(row["launches"] for row in report.get("cuda_calls", []))


def intervals(events, kind):
    return sum(event["event"] == "gpu" and event["kind"] == kind for event in events)


def counted(bench, kind, name):
    """Every step launches the same kernels: as many in all as calls, and a multiple of the steps."""
    job = bench.start("--fixed", str(STEPS), "--wait", WAIT, kind=kind)
    report, _ = bench.record(job.pid, name=name)
    told = bench.ended(job)
    seen = {"calls": calls(report), "kernels": kernels(report), "steps": told["launches"],
            "lost": lost(report), "warnings": report["warnings"][:3]}
    if bench.fakes:
        seen["of"] = "stand-ins, not " + kind
    held = seen["calls"] == seen["kernels"] > 0 and seen["kernels"] % STEPS == 0 and not seen["lost"]
    return held, seen


def pytorch_counts(bench):
    return counted(bench, "torch", "pytorch")


def jax_counts(bench):
    return counted(bench, "jax", "jax")


def triton_counts(bench):
    return counted(bench, "triton", "triton")


def nvcc_counts(bench):
    """The runtime linked in: launches are seen at libcuda alone; captured ones run no kernel."""
    job = bench.start_command([bench.program("fixed"), str(STEPS), "50", WAIT])
    report, _ = bench.record(job.pid, name="nvcc")
    told = bench.ended(job)
    seen = {"calls": calls(report), "kernels": kernels(report), "told": told, "lost": lost(report)}
    return (seen["calls"], seen["kernels"]) == (told["calls"], told["kernels"]) and told["right"], seen


def graphs(bench, whole):
    more = {"RLSCOPE_CUPTI_WHOLE_GRAPHS": "1"} if whole else {}
    job = bench.start("--graphs", "100", "--wait", WAIT, **more)
    report, events = bench.record(job.pid, name="graphs_whole" if whole else "graphs")
    told = bench.ended(job)
    of_operation = sum(row["kernels"] for gpu in report["gpu"] for row in gpu["by_launching_operation"]
                       if row["operation"] == "graphs")
    return told, {"kernels": kernels(report), "kernels_of_operation": of_operation,
                  "graphs": intervals(events, "graph"), "told": told, "lost": lost(report)}


def graph_nodes(bench):
    """Every node is a kernel of the operation that launched the graph, not of the capture."""
    told, seen = graphs(bench, False)
    expected = told["graphs"] * told["nodes"]
    return seen["kernels"] == seen["kernels_of_operation"] == expected and not seen["graphs"], seen


def whole_graphs(bench):
    told, seen = graphs(bench, True)
    return seen["graphs"] == told["graphs"] and not seen["kernels"], seen


def from_the_first(bench):
    """Under `run` CUPTI is armed within cuInit: not even the first launch is missed."""
    report, _ = bench.run("--fixed", str(STEPS))
    seen = {"calls": calls(report), "kernels": kernels(report), "lost": lost(report),
            "warnings": report["warnings"][:3]}
    return seen["calls"] == seen["kernels"] > 0 and not seen["lost"], seen


def armed_twice(bench):
    """Times are right after CUPTI's clock has been the default again."""
    job = bench.start("--seconds", "14")
    bench.record(job.pid, "--duration", "1")
    report, events = bench.record(job.pid, "--duration", "2")
    bench.ended(job)
    begun = {event["correlation"]: event["time_ns"] for event in events if event["event"] == "launch"}
    delays = sorted(event["start_ns"] - begun[event["correlation"]] for event in events
                    if event["event"] == "gpu" and event.get("correlation") in begun)
    seen = {"kernels": kernels(report), "lost": lost(report),
            "launch_to_start_ns": {"least": delays[0], "median": delays[len(delays) // 2]} if delays else None}
    return bool(delays) and delays[0] > -10000 and not seen["lost"].get("gpu_impossible"), seen


def never_idle(bench):
    """How soon records come while there is always work: CUPTI keeps an unfinished buffer back."""
    job = bench.start("--seconds", "10", "--no-idle")
    report, _ = bench.record(job.pid, "--duration", "3")
    bench.ended(job)
    late = [warning for warning in report["warnings"] if "last records" in warning]
    seen = {"kernels": kernels(report), "late": late, "lost": lost(report)}
    return seen["kernels"] > 0 and not late, seen


def nesting(bench):
    """CUPTI's own record of a call lies within what the probes saw of it, by clock and by thread."""
    job = bench.start("--seconds", "6")
    _, events = bench.record(job.pid, "--duration", "3")
    bench.ended(job)
    probed = sorted((event["time_ns"] - event["duration_ns"], event["time_ns"], event["tid"])
                    for event in events if event["event"] == "cuda_call" and event.get("launches"))
    told = sorted((event["time_ns"], event["tid"]) for event in events if event["event"] == "launch")
    inside, offsets, at = 0, [], 0
    for time_ns, tid in told:
        while at + 1 < len(probed) and probed[at][1] < time_ns:
            at += 1
        if probed and probed[at][0] <= time_ns <= probed[at][1] and probed[at][2] == tid:
            inside += 1
            offsets.append(time_ns - probed[at][0])
    offsets.sort()
    seen = {"launches": len(told), "inside": inside,
            "from_entry_ns": [offsets[len(offsets) * part // 4] for part in range(4)] if offsets else []}
    return bool(told) and inside >= 0.99 * len(told), seen
