"""Fixed small workloads of each framework, whose launches are known: calls that the probes counted
against kernels that CUPTI recorded. Each check returns (held, what was seen), or raises NotPossible."""

import time

from bench import kernels, launch_delays, lost, quartiles

STEPS = 500
GRAPHS = 100
UNPROBED_NS = 20000  # of a runtime's call, before its driver's begins


def calls(report):
    return sum(row["launches"] for row in report.get("cuda_calls", []))


def intervals(events, kind):
    return sum(event["event"] == "gpu" and event["kind"] == kind for event in events)


def counted(bench, kind, name):
    """Every step launches the same kernels: as many in all as calls, and a multiple of the steps."""
    job = bench.start("--fixed", str(STEPS), "--await-go", kind=kind)
    report, _ = bench.record(job, name=name, go=True)
    reported = bench.ended(job)
    seen = {"calls": calls(report), "kernels": kernels(report), "steps": reported["launches"],
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
    job = bench.start_command([bench.program("fixed"), str(STEPS), "50", "1"])
    report, _ = bench.record(job, name="nvcc", go=True)
    reported = bench.ended(job)
    seen = {"calls": calls(report), "kernels": kernels(report), "reported": reported, "lost": lost(report)}
    return (seen["calls"], seen["kernels"]) == (reported["calls"], reported["kernels"]) and reported["right"], seen


def of_graphs(report, events):
    rows = [row for gpu in report["gpu"] for row in gpu["by_launching_operation"]
            if row["operation"] == "graphs"]
    return {"kernels_of_operation": sum(row["kernels"] for row in rows),
            "busy_ns_of_operation": sum(row["busy_ns"] for row in rows),
            "graphs": intervals(events, "graph"), "lost": lost(report)}


def graph_nodes(bench):
    """Every node is a kernel of the operation that launched the graph, not of the capture."""
    job = bench.start("--graphs", str(GRAPHS), "--await-go")
    report, events = bench.record(job, name="graphs", go=True)
    reported = bench.ended(job)
    seen = dict(of_graphs(report, events), kernels=kernels(report), reported=reported)
    expected = reported["graphs"] * reported["nodes"]
    return seen["kernels"] == seen["kernels_of_operation"] == expected and not seen["graphs"], seen


def whole_graphs(bench):
    """One interval a launch, from the job's first on: later CUPTI cannot be asked for them."""
    report, events = bench.run("--graphs", str(GRAPHS), RLSCOPE_CUPTI_WHOLE_GRAPHS="1")
    seen = of_graphs(report, events)
    # PyTorch's has been launched once before.
    held = seen["graphs"] in (GRAPHS, GRAPHS + 1) and seen["busy_ns_of_operation"] > 0
    return held and not seen["kernels_of_operation"], seen


def from_the_first(bench):
    """Under `run` CUPTI is armed within cuInit: not even the first launch is missed."""
    report, _ = bench.run("--fixed", str(STEPS))
    seen = {"calls": calls(report), "kernels": kernels(report), "lost": lost(report),
            "warnings": report["warnings"][:3]}
    return seen["calls"] == seen["kernels"] > 0 and not seen["lost"], seen


def armed_twice(bench):
    """Times are right after CUPTI's clock has been the default again."""
    job = bench.start("--until-input-ends")
    bench.record(job, "--duration", "1")
    report, events = bench.record(job, "--duration", "2")
    bench.stopped(job)
    delays = launch_delays(events)
    seen = {"kernels": kernels(report), "lost": lost(report),
            "launch_to_start_ns": {"least": delays[0], "median": delays[len(delays) // 2]} if delays else None}
    return bool(delays) and delays[0] > -10000 and not seen["lost"].get("gpu_impossible"), seen


def never_idle(bench):
    """How soon records come while there is always work: CUPTI keeps an unfinished buffer back."""
    job = bench.start("--until-input-ends", "--no-idle")
    report, _ = bench.record(job, "--duration", "3")
    bench.stopped(job)
    late = [warning for warning in report["warnings"] if "last records" in warning]
    seen = {"kernels": kernels(report), "late": late, "lost": lost(report)}
    return seen["kernels"] > 0 and not late, seen


def nesting(bench):
    """CUPTI's own record of a call and what the probes saw of it are one call, by clock and by thread: a
    runtime that is linked into a library is not probed, so that CUPTI's may begin some ns earlier."""
    job = bench.start("--until-input-ends")
    _, events = bench.record(job, "--duration", "3")
    bench.stopped(job)
    probed = sorted((event["time_ns"] - event["duration_ns"], event["time_ns"], event["tid"])
                    for event in events if event["event"] == "cuda_call" and event.get("launches"))
    reported = sorted((event["time_ns"], event["tid"]) for event in events if event["event"] == "launch")
    offsets, at = [], 0
    for time_ns, tid in reported:
        while at + 1 < len(probed) and probed[at][1] < time_ns:
            at += 1
        if probed and -UNPROBED_NS <= time_ns - probed[at][0] <= probed[at][1] - probed[at][0] and \
                probed[at][2] == tid:
            offsets.append(time_ns - probed[at][0])
    offsets.sort()
    seen = {"launches": len(reported), "matched": len(offsets), "from_entry_ns": quartiles(offsets)}
    return bool(reported) and len(offsets) >= 0.99 * len(reported), seen


def later_session(bench):
    """A long recording after an earlier one and a rest, of the smallest kernels: none is lost, and how far
    before its launch CUPTI places any."""
    job = bench.start("--until-input-ends", "--empty")
    bench.record(job, "--duration", "1")
    time.sleep(3)
    report, events = bench.record(job, "--duration", "10")
    bench.stopped(job)
    delays = launch_delays(events)
    seen = {"kernels": kernels(report), "lost": lost(report), "before_launch": sum(at < 0 for at in delays),
            "launch_to_start_ns": quartiles(delays),
            "warnings": [warning for warning in report["warnings"] if "GPU" in warning]}
    return bool(delays) and not seen["lost"], seen
