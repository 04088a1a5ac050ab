"""Checks of the bridge by itself: no BPF, no probes, its batches go into a file. They say what CUPTI and
the bridge do on a GPU also where no BPF program may run (a container, gVisor, a kernel without uprobes).
Each returns (held, what was seen), or raises NotPossible."""

import json
import os
import statistics
import subprocess
import time

import batches
from bench import NotPossible, quartiles

STEPS = 500
ROUNDS = 14
TRAINING_TIMES_MAX = 1.3    # with records of waits 1.2 to 1.85 (H200, cupti_bridge/README.md)


class Alone:
    """What a job did by itself, and what its bridge wrote."""

    def __init__(self, bench, *arguments, kind="torch", command=None, keep=None, watchers="1", **more):
        bench.need_alone()
        path = os.path.join(bench.scratch, "alone")
        files = {"RLS_SINK_FILE": path + ".batches", "RLS_TAP_FILE": path + ".raw"}
        for name in files.values():
            if os.path.exists(name):
                os.remove(name)
        more = dict(files, RLS_SINK_WATCHERS=watchers, RLS_ALONE=bench.alone, **more)
        more.setdefault("CUDA_INJECTION64_PATH", bench.alone)
        child = (bench.start_command(command, **more) if command else
                 bench.start(*arguments, kind=kind, **more))
        self.reported = bench.ended(child)
        self.status = child.returncode
        self.path = path
        self.batches, self.records = batches.read(files["RLS_SINK_FILE"])
        if keep:
            bench.keep_bytes(keep + ".batches", files["RLS_SINK_FILE"])
            bench.keep_bytes(keep + ".raw", files["RLS_TAP_FILE"])
        self.lost = batches.lost(self.batches)
        self.begun = {}
        for record in self.of(batches.API):
            earlier = self.begun.get(record.correlation, record.start_ns)
            self.begun[record.correlation] = min(record.start_ns, earlier)

    def of(self, *kinds):
        return [record for record in self.records if record.kind in kinds]

    def launched_between(self, begin_ns, end_ns):
        return [record for record in self.of(batches.KERNEL)
                if begin_ns <= self.begun.get(record.correlation, 0) <= end_ns]

    def flushed_ns(self, record):
        """When the flush began that brought a record: of a flush's batches only the last one says."""
        at = record.batch
        while at and at + 1 < len(self.batches) and self.batches[at].flushed_ns == self.batches[
                at - 1].flushed_ns:
            at += 1
        return self.batches[at].flushed_ns

    def delays(self):
        """From the beginning of each launch to that of its kernel, sorted."""
        return sorted(record.start_ns - self.begun[record.correlation]
                      for record in self.of(batches.KERNEL) if record.correlation in self.begun)

    def saw(self, **more):
        return dict(more, lost=self.lost, statuses=batches.statuses(self.records)[:4])


def counts(bench, kind):
    ran = Alone(bench, "--fixed", str(STEPS), kind=kind, keep="alone_" + kind)
    kernels = ran.launched_between(ran.reported["begin_ns"], ran.reported["end_ns"])
    unplaced = sum(record.correlation not in ran.begun for record in ran.of(batches.KERNEL))
    seen = ran.saw(kernels=len(kernels), steps=STEPS, without_launch=unplaced,
                   names=sorted({record.name[:60] for record in kernels})[:4])
    if bench.fakes:
        seen["of"] = "stand-ins, not " + kind
    return bool(kernels) and len(kernels) % STEPS == 0 and not unplaced and not ran.lost, seen


def alone_pytorch(bench):
    """Armed within cuInit; as many kernels as a multiple of the steps, each with its launch."""
    return counts(bench, "torch")


def alone_jax(bench):
    return counts(bench, "jax")


def alone_triton(bench):
    return counts(bench, "triton")


def alone_nvcc(bench):
    ran = Alone(bench, command=[bench.program("fixed"), str(STEPS), "50", "0"], keep="alone_nvcc")
    seen = ran.saw(kernels=len(ran.of(batches.KERNEL)), reported=ran.reported)
    return seen["kernels"] == ran.reported["kernels"] and ran.reported["right"] and not ran.lost, seen


def alone_decoding(bench):
    """CUPTI's own records, read here by its documentation, against what the bridge made of them."""
    ran = Alone(bench, "--fixed", str(STEPS))
    ours = [(record.start_ns, record.end_ns, record.device, record.stream, record.correlation, record.node,
             record.name) for record in ran.of(batches.KERNEL)]
    entries = [(batches.raw_kernel(record), name, len(record)) for record, name in batches.raw(
        ran.path + ".raw")]
    theirs = [(*kernel, name) for kernel, name, _ in entries if kernel]
    seen = ran.saw(kernels=len(ours), raw=len(theirs), lengths=sorted({
        length for kernel, _, length in entries if kernel}))
    return bool(theirs) and theirs == ours[:len(theirs)], seen


def alone_clock(bench):
    """CUPTI's clock against ours while armed, and from launch to start."""
    ran = Alone(bench, "--seconds", "5")
    read = [batch for batch in ran.batches if batch.clock_ns]
    gaps = sorted(batch.cupti_ns - batch.clock_ns for batch in read)
    delays = ran.delays()
    seen = ran.saw(readings=len(read), gap_ns=quartiles(gaps), launch_to_start_ns=quartiles(delays),
                   cupti=ran.batches[-1].cupti if ran.batches else 0)
    return bool(delays) and delays[0] >= 0 and "refused" not in ran.lost, seen


def alone_busy(bench):
    """The union of intervals against the job's own CUDA events round the same work."""
    ran = Alone(bench, "--seconds", "4", "--dense")
    reported = ran.reported
    if not reported["events_ns"]:
        raise NotPossible("the job has no CUDA events")
    work = [(record.start_ns, record.end_ns) for record in ran.of(*batches.WORK)
            if reported["begin_ns"] <= record.start_ns <= reported["end_ns"]]
    seen = ran.saw(busy_ns=batches.union_ns(work), events_ns=reported["events_ns"])
    return abs(seen["busy_ns"] - seen["events_ns"]) <= 0.01 * seen["events_ns"], seen


def alone_cost(bench):
    """Time of a launch without the bridge, with the real one idle, and with it armed."""
    bench.need_alone()
    wanted = ("--seconds", "3", "--empty")
    seen = {"without": bench.ended(bench.start(*wanted, bridge=False)),
            "idle": bench.ended(bench.start(*wanted)),
            "armed": Alone(bench, *wanted).reported,
            "without_again": bench.ended(bench.start(*wanted, bridge=False))}
    seen = {name: {"best_ns": reported["launch_ns"], "median_ns": reported["median_ns"]}
            for name, reported in seen.items()}
    least = min(seen["without"]["best_ns"], seen["without_again"]["best_ns"])
    return seen["idle"]["best_ns"] < 1.05 * least + 50, seen


def turn_of(job):
    job.stdin.write("go\n")
    job.stdin.flush()
    return json.loads(job.stdout.readline())


def alone_training(bench):
    """What CUPTI costs a training step and an inference: two processes with the bridge armed, and two without, by turns."""
    bench.need_alone()
    if bench.fakes:
        raise NotPossible("stand-ins do not train")
    command = [bench.python(), os.path.join(os.path.dirname(os.path.abspath(__file__)), "training.py")]
    armed = {"CUDA_INJECTION64_PATH": bench.alone, "RLS_SINK_WATCHERS": "1"}
    jobs = {kind: [bench.start_command(command, **more) for _ in range(2)]
            for kind, more in (("without", {"bridge": False}), ("armed", armed))}
    rounds = [{kind: [turn_of(job) for job in some] for kind, some in jobs.items()} for _ in range(ROUNDS)]
    seen = {}
    for part in rounds[0]["without"][0]:
        means = [{kind: sum(turn[part] for turn in turns) / len(turns) for kind, turns in one.items()} for one in rounds]
        seen[part] = {"without_ns": round(statistics.median(one["without"] for one in means)),
                      "times": [round(times, 3) for times in quartiles(sorted(
                          one["armed"] / one["without"] for one in means))]}
    return all(part["times"][2] < TRAINING_TIMES_MAX for part in seen.values()), seen


def alone_in_mid_life(bench):
    """A job that has run for a while: armed, it shows work within a second."""
    ran = Alone(bench, "--seconds", "6", "--turns", "3,2", watchers="0")
    armed_ns = ran.reported["turns"][0][0]
    first = min((record.start_ns for record in ran.of(*batches.WORK)), default=0)
    came = min((ran.flushed_ns(record) for record in ran.of(*batches.WORK)), default=0)
    seen = ran.saw(first_work_ms=(first - armed_ns) / 1e6 if first else None,
                   reported_ms=(came - armed_ns) / 1e6 if came else None)
    return bool(first) and first - armed_ns < 1e9 and came - armed_ns < 1e9, seen


def alone_again(bench):
    """Armed five times in one life: times are right each time."""
    ran = Alone(bench, "--seconds", "9", "--turns", ",".join(["0.5,1"] * 5), watchers="0")
    turns = []
    for on_ns, off_ns in ran.reported["turns"]:
        mine = [record for record in ran.of(batches.KERNEL) if on_ns <= record.start_ns <= off_ns + 5e8]
        delays = sorted(record.start_ns - ran.begun[record.correlation] for record in mine
                        if record.correlation in ran.begun)
        turns.append({"kernels": len(mine), "without_launch": len(mine) - len(delays),
                      "launch_to_start_ns": quartiles(delays)})
    seen = ran.saw(turns=turns)
    right = all(turn["launch_to_start_ns"] and turn["launch_to_start_ns"][0] >= 0 and
                not turn["without_launch"] for turn in turns)
    return right and len(turns) == 5 and ran.status == 0, seen


def alone_graphs(bench):
    """A kernel record a node, with the number of the launch; whole graphs when they are asked for."""
    nodes = Alone(bench, "--graphs", "100", keep="alone_graphs")
    whole = Alone(bench, "--graphs", "100", keep="alone_whole_graphs", RLSCOPE_CUPTI_WHOLE_GRAPHS="1")
    mine = [record for record in nodes.of(batches.KERNEL) if record.graph]
    seen = {"nodes": nodes.saw(kernels=len(mine), distinct=len({record.node for record in mine}),
                               launches=len({record.correlation for record in mine})),
            "whole": whole.saw(graphs=len(whole.of(batches.GRAPH)),
                               kernels=sum(record.graph != 0 for record in whole.of(batches.KERNEL)))}
    reported = nodes.reported
    # One more launch than reported has been made before the job was ready, if it is PyTorch's.
    held = (len(mine) >= reported["graphs"] * reported["nodes"] and len(mine) % reported["nodes"] == 0 and
            len(mine) == reported["nodes"] * seen["nodes"]["launches"] and
            seen["whole"]["graphs"] == seen["nodes"]["launches"])
    return held, seen


def alone_never_idle(bench):
    """How late records come while there is always work: CUPTI keeps an unfinished buffer back."""
    ran = Alone(bench, "--seconds", "6", "--no-idle")
    late = sorted(ran.flushed_ns(record) - record.end_ns for record in ran.of(batches.KERNEL))
    seen = ran.saw(kernels=len(late), from_end_to_flush_ms=[value / 1e6 for value in quartiles(late)])
    return bool(late) and late[-1] < 1e9, seen


def profiler(bench, *arguments, watchers):
    ran = Alone(bench, "--seconds", "6", *arguments, watchers=watchers)
    if "profiler" not in ran.reported:
        raise NotPossible("the job has no torch.profiler")
    return ran.status == 0, ran.saw(kernels=len(ran.of(batches.KERNEL)), profiler=ran.reported["profiler"])


def alone_profiler_before(bench):
    """The bridge is armed when torch.profiler has been there already."""
    return profiler(bench, "--profiler", "before", "--turns", "1,2", watchers="0")


def alone_profiler_after(bench):
    """torch.profiler comes while the bridge is armed."""
    return profiler(bench, "--profiler", "after", watchers="1")


def alone_injected(bench):
    """The bridge by ptrace into a job that launches without it."""
    bench.need_alone()
    again = os.path.join(bench.tree, "inject_again")
    if not os.path.exists(again):
        again = os.path.join(bench.tree, "tests", "inject", "inject_again")
    path = os.path.join(bench.scratch, "injected.batches")
    job = bench.start("--seconds", "8", bridge=False, RLS_SINK_FILE=path, RLS_SINK_WATCHERS="1")
    time.sleep(1)
    start = time.monotonic()
    done = subprocess.run([again, str(job.pid), bench.alone, "InitializeInjection", "1"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", timeout=60,
                          check=False)
    took = time.monotonic() - start
    reported = bench.ended(job)
    work = batches.read(path)[1] if os.path.exists(path) else []
    seen = {"injected": done.returncode == 0, "why": done.stderr.strip(), "seconds": round(took, 3),
            "kernels": sum(record.kind == batches.KERNEL for record in work),
            "statuses": batches.statuses(work)[:4], "launches": reported["launches"]}
    return done.returncode == 0 and seen["kernels"] > 0 and job.returncode == 0, seen


CHECKS = [alone_pytorch, alone_decoding, alone_clock, alone_cost, alone_training, alone_busy, alone_in_mid_life, alone_graphs,
          alone_again, alone_nvcc, alone_triton, alone_jax, alone_never_idle, alone_profiler_after,
          alone_profiler_before, alone_injected]
