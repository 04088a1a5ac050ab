"""What a report says of GPUs, computed anew from the trace's events: nanosecond by nanosecond, by none of
the profiler's ways. Then the same of the trace as `dump` gives it back."""
import collections
import json
import pathlib
import random
import subprocess
import tempfile

import common

LIFE_NS = 300_000
STRETCH = 7_000  # of the same trace, for nvidia-smi's windows of 1/6 s
PID, DEVICES, OPERATIONS = 100, 2, ["forward", "backward", "step"]
KINDS = ["kernel", "kernel", "kernel", "memcpy", "memset", "sync"]


def thread_of(chance, tid):
    """Operations one after another, with calls in them; some of them launch."""
    at, correlation = chance.randrange(5, 500), tid * 10000
    yield {"event": "thread", "time_ns": 0, "pid": PID, "tid": tid, "name": "worker"}
    yield {"event": "category", "time_ns": 0, "pid": PID, "tid": tid, "category": "python"}
    while at < LIFE_NS - 20000:
        who = {"pid": PID, "tid": tid}
        yield {"event": "operation", "time_ns": at, **who, "stack": [chance.choice(OPERATIONS)] * (chance.random() < 0.9)}
        for _ in range(chance.randrange(6)):
            at += chance.randrange(20, 1500)
            length, launches = chance.randrange(10, 20), chance.random() < 0.7
            yield {"event": "cuda_call", "time_ns": at + length, **who, "duration_ns": length, "launches": int(launches),
                   "name": "cudaLaunchKernel" if launches else "cudaStreamSynchronize"}
            begin, at = at, at + length
            if not launches:
                continue
            correlation += 1
            if chance.random() < 0.95:
                yield {"event": "launch", "time_ns": begin + 1, **who, "name": "cudaLaunchKernel", "correlation": correlation}
            start = begin + chance.randrange(3, 6000)
            yield {"event": "gpu", "pid": PID, "device": chance.randrange(DEVICES), "kind": chance.choice(KINDS), "name": "work",
                   "start_ns": start, "end_ns": start + chance.randrange(1, 4000), "correlation": correlation}
        at += chance.randrange(1, 3000)


def trace(seed, stretch):
    chance, starts = random.Random(seed), set()
    events = [{"event": "process", "time_ns": 0, "pid": PID, "ppid": 1, "name": "train"}]
    for tid in (PID, PID + 1, PID + 2):
        events += thread_of(chance, tid)
    for event in events:  # whose work it is that ends a rest must not be a matter of order
        while event["event"] == "gpu" and (event["device"], event["start_ns"]) in starts:
            event["start_ns"], event["end_ns"] = event["start_ns"] + 1, event["end_ns"] + 1
        starts.add((event.get("device"), event.get("start_ns")))
    chance.shuffle(events)
    events.append({"event": "end", "time_ns": LIFE_NS, "complete": True})
    for event in events:
        for key in ("time_ns", "start_ns", "end_ns", "duration_ns"):
            if key in event:
                event[key] *= stretch
    return events


def mark(intervals):
    """One byte a nanosecond: does any of them run?"""
    line = bytearray(LIFE_NS)
    for event in intervals:
        line[event["start_ns"]:event["end_ns"]] = b"\1" * (event["end_ns"] - event["start_ns"])
    return line


def operations_of(events, tid):
    """What a thread is in, for each nanosecond."""
    line, changes = [""] * LIFE_NS, [event for event in events if event["event"] == "operation" and event["tid"] == tid]
    changes.sort(key=lambda event: event["time_ns"])
    for change, following in zip(changes, changes[1:] + [{"time_ns": LIFE_NS}]):
        name = change["stack"][-1] if change["stack"] else ""
        line[change["time_ns"]:following["time_ns"]] = [name] * (following["time_ns"] - change["time_ns"])
    return line


def idle_of(work, launch_of):
    """For each nanosecond between the first and the last work in which nothing runs: whose work ends the rest, and why."""
    idle, line = collections.Counter(), mark(work)
    starts = {event["start_ns"]: event for event in work}
    ends_rest = None
    for at in range(max(event["end_ns"] for event in work) - 1, min(starts) - 1, -1):
        if at in starts:
            ends_rest = starts[at]
        if line[at]:
            continue
        launch = launch_of.get(ends_rest["correlation"])
        cause = "other" if not launch else "host_late" if at < launch[0] else "queue"
        idle[launch[1] if launch else "", cause] += 1
    return idle


def expected(events):
    lines = {tid: operations_of(events, tid) for tid in (PID, PID + 1, PID + 2)}
    launch_of = {event["correlation"]: (event["time_ns"], lines[event["tid"]][event["time_ns"]])
                 for event in events if event["event"] == "launch"}
    work = [event for event in events if event["event"] == "gpu" and event["kind"] != "sync"]
    figures = {"devices": {}, "launched": {}, "idle": collections.Counter(), "calls": collections.Counter(),
               "with_gpu": collections.Counter(), "kernel_ns": collections.Counter()}
    for device in range(DEVICES):
        mine = [event for event in work if event["device"] == device]
        kernels = [event for event in mine if event["kind"] == "kernel"]
        figures["devices"][device] = (sum(mark(mine)), len(kernels), sum(e["end_ns"] - e["start_ns"] for e in kernels))
        for operation in ["", *OPERATIONS]:
            own = [event for event in mine if launch_of.get(event["correlation"], (0, ""))[1] == operation]
            if own:
                figures["launched"][device, operation] = (sum(mark(own)), sum(event["kind"] == "kernel" for event in own))
            figures["kernel_ns"][operation] += sum(e["end_ns"] - e["start_ns"] for e in own if e["kind"] == "kernel")
        for (operation, cause), ns in idle_of(mine, launch_of).items():
            figures["idle"][device, operation, cause] += ns
    busy = mark(work)
    for tid, line in lines.items():
        for at in range(LIFE_NS):
            figures["with_gpu"][tid, line[at], busy[at]] += 1
    for event in events:
        if event["event"] == "cuda_call":
            figures["calls"][lines[event["tid"]][event["time_ns"] - event["duration_ns"]]] += event["duration_ns"]
    return figures


def figures_of(report):
    figures = {"devices": {}, "launched": {}, "idle": collections.Counter(), "with_gpu": collections.Counter()}
    for gpu in report["gpu"]:
        figures["devices"][gpu["device"]] = (gpu["busy_ns"], gpu["kernels"], gpu["kernel_ns"])
        for cause in ("host_late", "queue", "other"):
            assert gpu[f"idle_{cause}_ns"] == sum(row[f"idle_{cause}_ns"] for row in gpu["by_launching_operation"])
        for row in gpu["by_launching_operation"]:
            figures["launched"][gpu["device"], row["operation"]] = (row["busy_ns"], row["kernels"])
            for cause in ("host_late", "queue", "other"):
                figures["idle"][gpu["device"], row["operation"], cause] += row[f"idle_{cause}_ns"]
    for row in report["breakdown"]:
        if row["resource"] != "gpu":
            figures["with_gpu"][row["tid"], row["operation"], int(row["resource"] == "cpu+gpu")] += row["wall_ns"]
    rows = report["cuda_operations"]
    figures["calls"] = collections.Counter({row["operation"]: row["api_ns"] for row in rows})
    figures["kernel_ns"] = collections.Counter({row["operation"]: row["kernel_ns"] for row in rows})
    for row in rows:
        assert row["api_to_kernel"] == 0 or abs(row["api_to_kernel"] - row["api_ns"] / row["kernel_ns"]) < 1e-6
    return figures


def windows_percent(events, device):
    """Windows of 1/6 s of the life in which any kernel ran."""
    def windows(start, end):
        return range(6 * start // 10**9, -(-6 * end // 10**9))
    busy = {window for event in events if event["event"] == "gpu" and event["device"] == device and event["kind"] == "kernel"
            for window in windows(event["start_ns"], event["end_ns"])}
    life = windows(0, LIFE_NS * STRETCH)
    return 100 * len(busy & set(life)) / len(life)


def report_of(events, folder):
    path = pathlib.Path(folder, "events.jsonl")
    path.write_text("".join(json.dumps(event) + "\n" for event in events))
    output = subprocess.run([common.BIN, "report", "--format", "json", path], capture_output=True, text=True, check=True).stdout
    dumped = subprocess.run([common.BIN, "dump", path], capture_output=True, text=True, check=True).stdout
    return json.loads(output), [json.loads(line) for line in dumped.splitlines()]


def check(seed, folder):
    events = trace(seed, 1)
    report, dumped = report_of(events, folder)
    for name, figure in figures_of(report).items():
        for given in (events, dumped):
            right = expected(given)[name]
            if isinstance(right, collections.Counter):
                figure, right = +figure, +right
            assert figure == right, f"seed {seed}, {name}: {figure} is not {right}"
    stretched = trace(seed, STRETCH)
    report, _ = report_of(stretched, folder)
    for gpu in report["gpu"]:
        right = windows_percent(stretched, gpu["device"])
        assert abs(gpu["smi_style_percent"] - right) < 1e-6, f"{gpu['smi_style_percent']} is not {right}"


def main():
    with tempfile.TemporaryDirectory(prefix="rlscope-gpu-figures-") as folder:
        for seed in range(4):
            check(seed, folder)
    print("every figure of 4 traces is as computed anew")


main()
