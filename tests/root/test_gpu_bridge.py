#!/usr/bin/python3
"""The whole way of GPU records: job, bridge, kernel side, recorder, report.

The bridge is the real one; libcuda, libcudart and libcupti are our own fakes, so no GPU is
needed and nothing here says what one does. Intervals are known exactly: a kernel lasts as long
as the fake was asked for.
"""

import json
import os
import subprocess
import sys
import tempfile
import time

import harness

FAKES = os.environ.get("RLS_FAKES", "build/tests/cupti_bridge/fakes")
BRIDGE = os.environ.get("RLS_BRIDGE", "build/librlscope_cupti.so")
MILLION = 1000000


def environment(cuda="13", bridge=True, **more):
    cudart = {"11.8": "libcudart.so.11.0", "12": "libcudart.so.12", "13": "libcudart.so.13"}[cuda]
    added = {"PYTHONPATH": os.environ.get("RLS_PYTHONPATH", ""), "FAKE_CUDART": cudart,
             "LD_LIBRARY_PATH": os.path.join(FAKES, cuda), **more}
    if bridge:
        added["CUDA_INJECTION64_PATH"] = BRIDGE
    return dict(os.environ, **added)


class Job(harness.Process):
    def __init__(self, **options):
        self.bridged = options.get("bridge", True)
        self.log = tempfile.NamedTemporaryFile()
        super().__init__([harness.interpreter(), os.path.join(harness.HERE, "gpu_job.py")],
                         env=environment(FAKE_CUPTI_LOG=self.log.name, **options))
        if not self.out.wait('{"ready"', harness.PATIENCE_SECONDS):
            raise RuntimeError("the job is not ready: %s" % self.err.text())

    def flushes(self):
        """How often the bridge has asked CUPTI for its records, as it does while it is armed."""
        with open(self.log.name, encoding="utf-8") as log:
            return sum(line.split() == [str(self.pid), "cuptiActivityFlushAll"] for line in log)

    ask = harness.Target.ask

    def launch(self, count, operation, **more):
        return self.ask(do="launch", count=count, operation=operation, **more)[0]


def record(job, *arguments, armed=True):
    """A recording of a job whose bridge is armed, or has said why it is not."""
    recording = harness.Recording([job.pid], *arguments, roles=[])
    before = job.flushes()
    if job.bridged and armed:
        if not harness.eventually(lambda: job.flushes() > before):
            raise RuntimeError("the bridge is not armed: %s" % recording.err.text())
    elif job.bridged:
        if not harness.eventually(lambda: any("CUPTI" in line for line in recording.err.seen)):
            raise RuntimeError("the bridge tells of no trouble: %s" % recording.err.text())
    return recording


def losses(report):
    return {loss["buffer"]: loss["dropped"] for loss in report["losses"]}


def kernels(report, pid=None):
    return sum(gpu["kernels"] for gpu in report["gpu"] if pid in (None, gpu["pid"]))


def by_operation(report, figure="kernels"):
    found = {}
    for gpu in report["gpu"]:
        for row in gpu["by_launching_operation"]:
            found[row["operation"]] = found.get(row["operation"], 0) + row[figure]
    return {name: figure for name, figure in found.items() if figure}


def launches_called(report):
    return sum(row["launches"] for row in report.get("cuda_calls", []))


def a_million(checks):
    with Job() as job, record(job) as recording:
        start = time.monotonic()
        for name in ("forward", "backward"):
            job.launch(MILLION // 2, name)
        took = time.monotonic() - start
        status = recording.stop()
        report = recording.report()
    half = MILLION // 2
    checks.that(status == 0 and kernels(report) == MILLION,
                "%d launches, %d intervals" % (MILLION, kernels(report)))
    checks.that(by_operation(report) == {"forward": half, "backward": half},
                "on the right operations: %s" % by_operation(report))
    checks.that(by_operation(report, "kernel_ns") == {"forward": 1000 * half, "backward": 1000 * half},
                "each as long as it was: %s" % by_operation(report, "kernel_ns"))
    checks.that(launches_called(report) == MILLION,
                "%d calls that launch were seen by the probes" % launches_called(report))
    names = {row["name"] for row in report["cuda_calls"]}
    checks.that("cudaLaunchKernel" in names and not any(name.startswith("cu") and
                not name.startswith("cuda") for name in names), "nested driver calls are none: %s" % names)
    harness.check_lossless(checks, report)
    harness.check_sums(checks, report)
    checks.saw("%.1f s, %.0f launches a second; %s" % (took, MILLION / took, report["overhead"]["hits"]))


def every_cuda(checks):
    for cuda in ("11.8", "12"):
        with Job(cuda=cuda) as job, record(job) as recording:
            job.launch(2000, "forward")
            recording.stop()
            report = recording.report()
        checks.that(by_operation(report) == {"forward": 2000}, "CUDA %s: %s" % (
            cuda, by_operation(report)))


def in_mid_life(checks):
    with Job() as job:
        job.ask(do="begin")
        with record(job) as recording:
            harness.let_workers_run(job.pid, 0.2)
            recording.stop()
            dump = harness.run("dump", recording.trace).stdout
        job.ask(do="finish")
    events = [json.loads(line) for line in dump.splitlines()]
    start = min(event["time_ns"] for event in events if event["event"] == "host")
    first = min((event["start_ns"] for event in events if event["event"] == "gpu"), default=0)
    checks.that(first >= start, "GPU work is seen %.0f ms after recording began" % ((first - start) / 1e6))


def again_and_again(checks):
    """Two recorders at once, and one after the other."""
    with Job() as job:
        for turn in range(3):
            with record(job) as recording:
                if turn == 1:
                    with record(job) as second:
                        job.launch(1000, "both")
                        second.stop()
                        checks.that(kernels(second.report()) == 1000, "a second recorder beside it: %d" %
                                    kernels(second.report()))
                else:
                    job.launch(1000, "alone")
                recording.stop()
                report = recording.report()
            checks.that(kernels(report) == 1000, "recording %d: %d of 1000" % (turn, kernels(report)))
            harness.check_lossless(checks, report)
            job.launch(500, "unseen")


def graphs_streams_devices(checks):
    with Job(FAKE_CUDA_DEVICES="2") as job, record(job) as recording:
        job.launch(300, "first", device=0)
        job.launch(200, "second", device=1)
        nodes = job.ask(do="graph", count=50, nodes=4, operation="graph")[0]
        recording.stop()
        report = recording.report()
    devices = {gpu["device"]: gpu["kernels"] for gpu in report["gpu"]}
    checks.that(by_operation(report) == {"first": 300, "second": 200, "graph": nodes},
                "kernels of two devices and of graphs: %s" % by_operation(report))
    checks.that(sum(devices.values()) == 500 + nodes and len(devices) == 2, "by device: %s" % devices)
    checks.that(launches_called(report) == 550, "a graph is one launch: %d" % launches_called(report))


def whole_graphs(checks):
    """A record a launch of a graph, whose time is that of the operation that launched it; only from the
    job's start on, since CUPTI crashes jobs in which they are switched on later."""
    report = run_script("--graphs", RLSCOPE_CUPTI_WHOLE_GRAPHS="1")[0]
    busy = by_operation(report, "busy_ns")
    checks.that(busy.get("graph", 0) >= 50 * 4000 and kernels(report) == 1000,
                "whole graphs: busy by operation %s, %d kernels" % (busy, kernels(report)))
    with Job(RLSCOPE_CUPTI_WHOLE_GRAPHS="1") as job, record(job) as recording:
        nodes = job.ask(do="graph", count=50, nodes=4, operation="graph")[0]
        recording.stop()
        report = recording.report()
    checks.that(by_operation(report) == {"graph": nodes}, "by node when it is attached to: %s" %
                by_operation(report))


def forced_losses(checks):
    with Job(FAKE_CUPTI_DROP="10") as job, record(job) as recording:
        job.launch(5000, "forward")
        recording.stop()
        report = recording.report()
    dropped = losses(report).get("cupti", 0)
    checks.that(dropped > 0 and kernels(report) < 5000 <= kernels(report) + dropped,
                "CUPTI dropped: %d reported, %d of 5000 kernels came" % (dropped, kernels(report)))
    checks.that(any("lost or refused" in w for w in report["warnings"]), "and it is said")
    for fault in ("ZERO", "BACKWARD", "EARLY", "FUTURE"):
        with Job(**{"FAKE_CUPTI_" + fault: "10"}) as job, record(job) as recording:
            job.launch(2000, "forward")
            recording.stop()
            report = recording.report()
        refused = losses(report).get("gpu_impossible", 0)
        checks.that(refused >= 200 and kernels(report) + refused >= 2000 > kernels(report),
                    "%s: %d refused, %d of 2000 kernels came" % (fault, refused, kernels(report)))


def out_of_order(checks):
    with Job(FAKE_CUPTI_REVERSE="1") as job, record(job) as recording:
        job.launch(20000, "forward")
        recording.stop()
        report = recording.report()
    checks.that(by_operation(report) == {"forward": 20000}, "buffers the last first: %s" %
                by_operation(report))


def troubles(checks):
    for fault, word in (({"FAKE_CUPTI_SLOT_TAKEN": "1"}, "another tool"),
                        ({"FAKE_CUPTI_ENABLE": "15"}, "CUPTI")):
        with Job(**fault) as job, record(job, armed=False) as recording:
            job.launch(500, "forward")
            with record(job, armed=False) as late:  # for which the semaphore does not change
                late.stop()
                late_warnings = [warning for warning in late.report()["warnings"] if word in warning]
            status = recording.stop()
            report = recording.report()
        reported = [warning for warning in report["warnings"] if word in warning]
        checks.that(status == 0 and reported and kernels(report) == 0, "%s: %s" % (fault, reported))
        checks.that(len(late_warnings) == 1, "a process that comes late is reported too: %s" % late_warnings)
        checks.that(launches_called(report) == 500, "calls are recorded all the same: %d" %
                    launches_called(report))
    with Job(bridge=False) as job, record(job) as recording:
        job.launch(500, "forward")
        recording.stop()
        report = recording.report()
    reported = [warning for warning in report["warnings"] if "without the CUPTI bridge" in warning]
    checks.that(len(reported) == 1, "without a bridge: %s" % reported)


def children(checks):
    with Job() as job, record(job) as recording:
        job.ask(do="fork")
        spawned = job.ask(do="spawn")[0]
        job.launch(100, "parent")
        recording.stop()
        report = recording.report()
    of_children = kernels(report) - kernels(report, job.pid)
    checks.that(kernels(report, job.pid) == 100, "the parent's: %d" % kernels(report, job.pid))
    checks.that(spawned == 0 and of_children == 1000, "a spawned child's: %d of 1000" % of_children)


def run_script(*arguments, **more):
    """(report, stderr) of the job as a script under `run`."""
    with harness.tempfile.TemporaryDirectory() as folder:
        command = [harness.BINARY, "run", *harness.EXACT, "-o", os.path.join(folder, "trace"), "--format",
                   "json", "--", harness.interpreter(), os.path.join(harness.HERE, "gpu_job.py"),
                   "--script", *arguments]
        more.setdefault("FAKE_CUPTI_LOG", os.path.join(folder, "log"))
        ended = subprocess.run(command, env=environment(bridge=False, **more), encoding="utf-8", check=False,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=harness.PATIENCE_SECONDS)
    return json.loads(ended.stdout), ended.stderr


def run_offers_the_bridge(checks):
    report, _ = run_script("--at-once")
    checks.that(by_operation(report) == {"": 10, "forward": 1000},
                "run sets the bridge up, and misses not even the first launches: %s" % by_operation(report))
    report, reported = run_script("--at-once", CUDA_INJECTION64_PATH="/nowhere/injection.so")
    checks.that(kernels(report) == 0 and "is set to /nowhere/injection.so" in reported,
                "the user's own injection is kept, and said")


def main():
    harness.need_root_and_profiler()
    if not os.path.isdir(os.path.join(FAKES, "13")) or not os.path.exists(BRIDGE):
        harness.skip("no fakes in %s or no bridge at %s" % (FAKES, BRIDGE))
    checks = harness.Checks()
    for test in (a_million, every_cuda, in_mid_life, again_and_again, graphs_streams_devices, whole_graphs,
                 forced_losses, out_of_order, troubles, children, run_offers_the_bridge):
        if len(sys.argv) < 2 or test.__name__ in sys.argv:
            print(test.__name__, flush=True)
            test(checks)
    checks.finish()


if __name__ == "__main__":
    main()
