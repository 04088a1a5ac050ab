#!/usr/bin/python3
"""attach --inject: the bridge into a job that runs without it; on fakes of CUDA, so no GPU is needed.

RLS_INJECT_TIMES (30; scripts/hazards: 1,000) is how often the busy job is injected into, and its
results compared with those of a run alone; RLS_INJECT_KILLS (15; the same) how often who injects is
killed meanwhile; RLS_INJECT_FRESH (3; the same) how many jobs load the bridge anew. With
RLS_TORCH_PYTHON the same in a job that trains with PyTorch.
"""

import os
import random
import subprocess
import sys
import tempfile
import time

import harness
from test_gpu_bridge import BRIDGE, Job, by_operation, environment, kernels

TIMES = int(os.environ.get("RLS_INJECT_TIMES", "30"))
KILLS = int(os.environ.get("RLS_INJECT_KILLS", "15"))
FRESH = int(os.environ.get("RLS_INJECT_FRESH", "3"))
AGAIN = os.environ.get("RLS_INJECT_AGAIN", "build/tests/inject/inject_again")
LIMIT_SECONDS = 60 + TIMES
STEPS = 20


class Busy(harness.Process):
    """A job whose results depend on every step of it."""

    def __init__(self, python, kind, steps):
        super().__init__([python, os.path.join(harness.HERE, "inject_job.py"), kind, str(steps)],
                         env=environment(bridge=False, OMP_NUM_THREADS="2"))
        if not self.out.wait("ready", harness.PATIENCE_SECONDS):
            raise RuntimeError("the job is not ready: %s" % self.err.text())

    def finish(self, steps=0):
        """(status, what it said) once it has done at least as many steps as were asked for."""
        self.say(str(steps))
        status = self.wait(300)
        return status, self.out.text()


def injected(job):
    """What a recorder said, and its report. On a busy machine there may be no good moment in time."""
    for _ in range(3):
        with harness.Recording([job.pid], "--inject", roles=[]) as recording:
            harness.eventually(lambda: job.flushes() or any("at no moment" in line for line in recording.err.seen))
            harness.let_workers_run(job.pid, 0.2)   # for launches, which they make all the time
            recording.stop()
            report = recording.report()
        messages = recording.err.text()
        if "was never seen in a state" not in messages:
            break
    return messages, report


def in_mid_life(checks, jobs=3):
    with Job(bridge=False) as job:
        job.launch(100, "unseen")
        job.ask(do="begin")
        messages, report = injected(job)
        launched = job.ask(do="finish")[0]
        if "was never seen in a state" in messages and jobs > 1:
            # What lies about on a job's stack may forbid every moment of its life.
            checks.saw("no good moment in a whole job, once more with another")
            return in_mid_life(checks, jobs - 1)
        checks.that("was loaded into process %d" % job.pid in messages, "it says so: %s" % messages[:600])
        checks.that(0 < kernels(report) < launched and set(by_operation(report)) == {"loop"},
                    "GPU work is seen: %s of %d launches" % (by_operation(report), launched))
        before = job.flushes()
        with harness.Recording([job.pid], "--inject", "--verbose", roles=[]) as recording:
            harness.eventually(lambda: job.flushes() > before)
            job.launch(300, "again")
            recording.stop()
            report = recording.report()
        checks.that("has the CUPTI bridge already" in recording.err.text() and
                    by_operation(report) == {"again": 300},
                    "the second time it is there already: %s" % by_operation(report))


class Contained(harness.Process):
    """A job that launches all the time and sees another file where the bridge is, as in a container."""
    SCRIPT = ("import sys, gpu_job; gpu_job.cudart.cudaDeviceSynchronize(); worker = gpu_job.Worker(); "
              "print('ready', flush=True); sys.stdin.readline(); print('launched', worker.finish())")

    def __init__(self):
        self.log = tempfile.NamedTemporaryFile()
        hidden = "mount --bind /dev/null %s && exec \"$@\"" % BRIDGE
        super().__init__(["unshare", "--mount", "--propagation", "private", "sh", "-c", hidden, "job",
                          harness.interpreter(), "-c", self.SCRIPT], cwd=harness.HERE,
                         env=environment(bridge=False, FAKE_CUPTI_LOG=self.log.name))
        if not self.out.wait("ready", harness.PATIENCE_SECONDS):
            raise RuntimeError("the job is not ready: %s" % self.err.text())

    flushes = Job.flushes


def in_a_container(checks):
    """It is shown a copy, which is gone again when it has been loaded, and armed all the same."""
    with Contained() as job:
        messages, report = injected(job)
        with open("/proc/%d/maps" % job.pid) as maps:
            mapped = [line for line in maps if os.path.basename(BRIDGE) in line]
        job.say("")
        status = job.wait()
        said = job.out.text()
    checks.that(kernels(report) > 0, "in a container of its own: %s; %s" % (by_operation(report), messages[-200:]))
    checks.that(mapped and all("/rlscope-bpf-" in line and "(deleted)" in line for line in mapped),
                "by a copy that is gone: %s" % mapped[:1])
    checks.that(status == 0 and "launched" in said, "the job ends as ever: %s %s" % (status, said.strip()))


def what_cannot_be(checks):
    with harness.Process([harness.interpreter(), "-c", "print('ready', flush=True); input()"]) as job:
        job.out.wait("ready", harness.PATIENCE_SECONDS)
        done = harness.run("attach", "--pid", str(job.pid), "--inject", "--duration", "0.2", "-o",
                           "/dev/null")
        checks.that("has not loaded CUDA" in done.stderr, "without CUDA nothing is done, and that is said")
    done = harness.run("attach", "--all", "--inject")
    checks.that(done.returncode == 2 and "--inject is for" in done.stderr, "it wants --pid")


def again_and_again(checks, python, kind):
    """The bridge is loaded by the first, started anew by none: a thread is made each time. On a busy
    machine a good moment may not come in time."""
    with Busy(python, kind, STEPS) as job:
        start = time.monotonic()
        done, why = inject(job.pid, TIMES)
        took = time.monotonic() - start
        for _ in range(KILLS):
            with subprocess.Popen([AGAIN, str(job.pid), BRIDGE, "InitializeInjection", "1000"],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as child:
                time.sleep(random.uniform(0.001, 0.03))
                child.kill()
        status, results = job.finish()
    steps = results.split()[-1] if results else "0"
    with Busy(python, kind, STEPS) as job:
        alone = job.finish(int(steps))
    checks.that(done, "%s: %d times, %.0f ms each; %s" % (kind, TIMES, 1000 * took / TIMES, why))
    checks.that((status, results) == alone and status == 0,
                "%s: after %s steps the same as alone: %s" % (kind, steps, results.strip()[-200:] if (
                    status, results) == alone else "%s %s, alone %s" % (status, results, alone)))


def inject(pid, times):
    done = subprocess.run([AGAIN, str(pid), BRIDGE, "InitializeInjection", str(times)],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
                          timeout=LIMIT_SECONDS, check=False)
    missed = times - int(done.stdout)
    return missed == 0 or ("was never seen in a state" in done.stderr and missed <= times // 20), done.stderr.strip()


def first_result(ended):
    """(status, what there was after STEPS steps)."""
    status, text = ended
    return status, text.splitlines()[1]


def fresh(checks, python, kind, count):
    """Jobs that load the library, one after the other, at any moment of theirs."""
    with Busy(python, kind, STEPS) as job:
        expected = first_result(job.finish())
    loaded, same, reasons = 0, 0, set()
    for _ in range(count):
        with Busy(python, kind, STEPS) as job:
            has, why = inject(job.pid, 1)
            with open("/proc/%d/maps" % job.pid) as maps:
                loaded += has and os.path.basename(BRIDGE) in maps.read()
            reasons.add(why)
            same += first_result(job.finish()) == expected
    checks.that(same == count, "%s: %d of %d jobs came to the same as alone" % (kind, same, count))
    checks.that(loaded == count, "%s: the library was loaded into %d of %d; %s" % (
        kind, loaded, count, reasons))


def main():
    harness.need_root_and_profiler()
    if not os.path.exists(AGAIN) or not os.path.exists(BRIDGE):
        harness.skip("no %s or no %s" % (AGAIN, BRIDGE))
    checks = harness.Checks()
    if len(sys.argv) < 2:
        in_mid_life(checks)
        in_a_container(checks)
        what_cannot_be(checks)
    again_and_again(checks, harness.interpreter(), "threads")
    fresh(checks, harness.interpreter(), "threads", FRESH)
    torch = os.environ.get("RLS_TORCH_PYTHON", "")
    if os.access(torch, os.X_OK):
        again_and_again(checks, torch, "torch")
    else:
        checks.saw("left out: PyTorch, there is no %s" % (torch or "RLS_TORCH_PYTHON"))
    checks.finish()


if __name__ == "__main__":
    main()
