#!/usr/bin/python3
"""Arming, and what becomes of batches, with a stand-in for the CUPTI bridge.

The stand-in has the bridge's site and semaphore and sends what the test makes up. So this
rests on no CUPTI and no GPU; it shows what the kernel side and the recorder do.
"""

import os
import signal
import struct
import sys
import time

import harness

STANDIN = os.environ.get("RLS_STANDIN", "build/tests/bridge_standin/lib/librlscope_cupti.so")
ARGUMENTS = ["--verbose"] if os.environ.get("RLS_TEST_VERBOSE") else []


class GpuTarget(harness.Process):
    def __init__(self, *arguments, **options):
        environment = dict(os.environ, PYTHONPATH=os.environ.get("RLS_PYTHONPATH", ""))
        super().__init__([harness.interpreter(), os.path.join(harness.HERE, "gpu_target.py"),
                          STANDIN, *arguments], env=environment, **options)
        if not self.out.wait('{"ready"', harness.PATIENCE_SECONDS):
            raise RuntimeError("the target is not ready: %s" % self.err.text())

    ask = harness.Target.ask

    def armed(self):
        return self.ask(do="armed")[0]

    def wait_armed(self, count, seconds=harness.PATIENCE_SECONDS):
        end = time.monotonic() + seconds
        while self.armed() != count and time.monotonic() < end:
            time.sleep(0.02)
        return self.armed() == count


def record(target, *arguments, **options):
    return harness.Recording([target.pid], *ARGUMENTS, *arguments, roles=[], **options)


def losses(report):
    return {loss["buffer"]: loss["dropped"] for loss in report["losses"]}


def kernels(report):
    return sum(entry["kernels"] for entry in report["gpu"])


def by_operation(report):
    found = {}
    for entry in report["gpu"]:
        for row in entry["by_launching_operation"]:
            found[row["operation"]] = found.get(row["operation"], 0) + row["kernels"]
    return found


def armed_while_recorded(checks):
    with GpuTarget() as target:
        before = target.armed()
        with record(target) as first:
            during = target.armed()
            with record(target) as second:
                both = target.armed()
                second.stop()
            checks.that(target.wait_armed(1), "of two recorders one is left: %d" % target.armed())
            first.stop()
        # The kernel raises it once for a site, however many probes are on it.
        checks.that((before, during, both) == (0, 1, 1),
                    "semaphore before, with one, with two recorders: %d %d %d" % (before, during, both))
        checks.that(target.wait_armed(0), "released at the end: %d" % target.armed())
        with record(target) as again:
            checks.that(target.armed() == 1, "armed again")
            again.child.send_signal(signal.SIGKILL)
            again.wait()
        checks.that(target.wait_armed(0), "released when the recorder was killed: %d" % target.armed())


def armed_alone(checks):
    """A bystander that maps the same library stays unarmed, a library loaded later is armed."""
    with GpuTarget() as bystander, GpuTarget("--later") as target:
        with record(target) as recording:
            target.ask(do="load")
            checks.that(target.wait_armed(1), "a bridge loaded later is armed: %d" % target.armed())
            checks.that(bystander.armed() == 0, "a bystander is not: %d" % bystander.armed())
            recording.stop()


def work_is_reported(checks, *arguments):
    with GpuTarget() as target:
        with record(target, *arguments) as recording:
            target.ask(do="serve", during=60)
            launched, busy_ns = target.ask(do="work", launches=1000, operation="inference")
            target.ask(do="threads", count=4, launches=500)
            start = time.monotonic()
            status = recording.stop()
            took = time.monotonic() - start
            report = recording.report()
    found = by_operation(report)
    expected = {"inference": launched, "op0": 500, "op1": 500, "op2": 500, "op3": 500}
    checks.that(status == 0 and kernels(report) == 3000, "3000 launches, %d intervals (status %d)" % (
        kernels(report), status))
    checks.that(found == expected, "on the right operations: %s" % found)
    mine = [row["busy_ns"] for entry in report["gpu"] for row in entry["by_launching_operation"]
            if row["operation"] == "inference"]
    checks.that(mine == [busy_ns], "busy for %d ns, reported %s" % (busy_ns, mine))
    harness.check_lossless(checks, report)
    harness.check_sums(checks, report)
    checks.saw("the report came %.2f s after the signal" % took)


def short_threads(checks):
    """Threads that launch and are gone, born while a recorder reads: each is known in time."""
    with GpuTarget() as target:
        with record(target) as recording:
            for _ in range(200):
                target.ask(do="work", launches=64, operation="short", kernel_ns=1)
            recording.stop()
            report = recording.report()
    checks.that(by_operation(report) == {"short": 64 * 200}, "200 threads that live for a moment: %s" %
                by_operation(report))


def losses_are_counted(checks):
    with GpuTarget() as target:
        with record(target) as recording:
            target.ask(do="left_out", totals=[100, 20, 30, 4])
            target.ask(do="work", launches=64)
            target.ask(do="left_out", totals=[105, 22, 33, 4])
            target.ask(do="skip", batches=6)
            target.ask(do="work", launches=64)
            recording.stop()
            report = recording.report()
    found = losses(report)
    # A first batch with number 1 is the process's first of all: what it left out counts.
    checks.that((found.get("cupti"), found.get("gpu_impossible"), found.get("cupti_bridge"),
                 found.get("gpu")) == (105, 22, 33, 6), "each kind of loss is counted: %s" % found)
    checks.that(kernels(report) == 128, "what came is there: %d" % kernels(report))


def flood(checks):
    """More than the ring holds while the recorder is stopped: dropped, counted, nothing else."""
    with GpuTarget() as target:
        with record(target) as recording:
            target.ask(do="work", launches=64)
            recording.child.send_signal(signal.SIGSTOP)
            for _ in range(2500):
                target.ask(do="work", launches=64, kernel_ns=1)
            recording.child.send_signal(signal.SIGCONT)
            target.ask(do="empty")
            recording.stop()
            report = recording.report()
    lost = losses(report)["gpu"]
    # The empty batch is lost too, if it comes before the recorder has made room.
    checks.that(lost > 0 and kernels(report) + 64 * lost in (64 * 2501, 64 * 2502),
                "%d kernels came, %d batches of 64 were lost" % (kernels(report), lost))
    checks.that(losses(report)["control"] == 0 and losses(report)["transitions"] == 0,
                "nothing else was lost for it: %s" % losses(report))


HOSTILE = [
    b"", b"\0" * 95, b"\0" * 96, b"\xff" * 96, b"\xff" * 16384, b"\0" * 17000,
    struct.pack("<QHHHHII", 0x31545055434C5352, 1, 64, 65535, 0, 0, 0) + b"\0" * 72,
    struct.pack("<QHHHHII", 0x31545055434C5352, 1, 64, 0, 0, 2 ** 32 - 1, 0) + b"\0" * 72,
    struct.pack("<QHHHHII", 0x31545055434C5352, 1, 64, 1, 0, 0, 0) + b"\0" * 72 + b"\xff" * 64,
    struct.pack("<QHHHHII", 0x31545055434C5352, 9, 64, 0, 0, 0, 0) + b"\0" * 72,
]


def hostile_batches(checks):
    with GpuTarget() as target:
        with record(target) as recording:
            for data in HOSTILE:
                target.ask(do="raw", hex=data.hex())
            target.ask(do="work", launches=64)
            status = recording.stop()
            report = recording.report()
    checks.that(status == 0 and kernels(report) == 64,
                "status %d, %d good intervals among %d bad batches" % (
                    status, kernels(report), len(HOSTILE)))
    checks.that(losses(report)["gpu"] >= 8, "the bad ones are counted: %s" % losses(report))


def troubles_are_reported(checks):
    with GpuTarget() as target:
        with record(target) as recording:
            target.ask(do="status", status=5, said="held by\x1b[31m nsys")
            recording.stop()
            report = recording.report()
    warnings = [w for w in report["warnings"] if "another tool" in w]
    checks.that(len(warnings) == 1 and "nsys" in warnings[0] and "\x1b" not in warnings[0],
                "a taken slot is reported: %s" % warnings)


def children(checks):
    with GpuTarget() as target:
        with record(target) as recording:
            forked = target.ask(do="fork", how="fork")[0]
            executed = target.ask(do="fork", how="exec")[0]
            target.ask(do="work", launches=64)
            status = recording.stop()
            report = recording.report()
        checks.that(status == 0 and kernels(report) == 64, "semaphore of a forked child %d, of one "
                    "that became a program %d; the parent goes on" % (forked, executed))
        checks.that(target.wait_armed(0), "released at the end: %d" % target.armed())


def main():
    harness.need_root_and_profiler()
    if not os.path.exists(STANDIN):
        harness.skip("no stand-in at %s" % STANDIN)
    checks = harness.Checks()
    chosen = sys.argv[1:]
    for test in (armed_while_recorded, armed_alone, work_is_reported, short_threads, losses_are_counted, flood,
                 hostile_batches, troubles_are_reported, children):
        if not chosen or test.__name__ in chosen:
            print(test.__name__, flush=True)
            test(checks)
    if not chosen:
        print("work_is_reported, by perf events", flush=True)
        work_is_reported(checks, "--perf-events")
    checks.finish()


if __name__ == "__main__":
    main()
