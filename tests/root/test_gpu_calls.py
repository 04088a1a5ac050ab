#!/usr/bin/python3
"""What CUPTI costs calls into CUDA: `calibrate --pid` finds it by arming and disarming the bridge
of a running job, recordings of the job use it where CUPTI is armed, and nowhere else. The
fakes' CUPTI costs what it is set to, so no GPU is needed.
"""

import contextlib
import json
import os
import subprocess

import harness
import test_gpu_bridge as bridge

COST_NS = 20000
CALL = "cudaLaunchKernel"
FIGURE = "cupti." + CALL


def calibrate(job):
    done = subprocess.run([harness.BINARY, "calibrate", "--pid", str(job.pid), "--duration", "17", "--json"],
                          capture_output=True, text=True, timeout=harness.PATIENCE_SECONDS, check=False)
    return json.loads(done.stdout) if not done.returncode else {"failed": done.stderr.strip()}


def recorded(job, launches=20000, armed=True):
    """The report of a recording of so many launches, and what the rows of CUDA were corrected by."""
    with bridge.record(job, armed=armed) as recording:
        job.launch(launches, "forward")
        recording.stop()
        report = recording.report()
    rows = [row for row in report["breakdown"] if row["category"] == "cuda_api"]
    return report, sum(row["wall_ns"] - row["corrected_ns"] for row in rows)


def go_first(job):
    """How long its calls take is its own affair only where no other is in its way."""
    with contextlib.suppress(OSError):
        os.sched_setscheduler(job.pid, os.SCHED_FIFO, os.sched_param(1))


def costs(checks):
    with bridge.Job(FAKE_CUPTI_CALL_NS=str(COST_NS)) as job:
        go_first(job)
        job.ask(do="begin")
        found = calibrate(job)
        job.ask(do="finish")
        names = {row["name"]: row for row in found.get("cuda", [])}
        checks.that(CALL in names and names[CALL]["ns"] > 0.8 * COST_NS,
                    "CUPTI, armed, makes a launch take longer: %s" % found)
        checks.that(all(row["error_ns"] < 0.5 * COST_NS for row in names.values()),
                    "and it is known how much: %s" % names)
        checks.that(all(abs(row["ns"] - COST_NS) < max(0.2 * COST_NS, row["error_ns"]) for row in names.values()),
                    "waits too cost what its accounting of them take, and no more: %s" % names)
        report, removed = recorded(job)
        figure = report["overhead"]["calibration"].get(FIGURE, {})
        checks.that(abs(figure.get("ns", 0) - names.get(CALL, {"ns": -9})["ns"]) < 1,
                    "it is in the trace: %s" % figure)
        checks.that(removed > 0.8 * COST_NS * 20000, "and taken from the calls: %d ms" % (removed / 1e6))
        checks.that(all(0 <= row["corrected_ns"] <= row["wall_ns"] for row in report["breakdown"]),
                    "never below nothing")
        harness.check_sums(checks, report)
    # The same command; CUPTI is another tool's.
    with bridge.Job(FAKE_CUPTI_SLOT_TAKEN="1") as job:
        report, removed = recorded(job, armed=False)
        checks.that(FIGURE in report["overhead"]["calibration"] and removed < 0.5 * COST_NS * 20000,
                    "nothing where CUPTI is not armed: %d ms" % (removed / 1e6))


def main():
    harness.need_root_and_profiler()
    if not os.path.isdir(os.path.join(bridge.FAKES, "13")) or not os.path.exists(bridge.BRIDGE):
        harness.skip("no fakes in %s or no bridge at %s" % (bridge.FAKES, bridge.BRIDGE))
    checks = harness.Checks()
    costs(checks)
    checks.finish()


if __name__ == "__main__":
    main()
