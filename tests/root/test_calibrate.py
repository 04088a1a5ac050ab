#!/usr/bin/env python3
"""`rlscope-bpf calibrate`: its figures, what is kept of them and what uses it. No figure is
compared with another here: what a hit costs is the machine's affair."""

import contextlib
import json
import os
import shutil
import stat
import subprocess
import tempfile
import time

import harness

STORE = "/run/rlscope-bpf/calibration.json"
PATHS = {"nop5.entry.silent", "nop5.entry.emitting", "emulated.entry.silent",
         "emulated.entry.emitting", "single-step.entry.silent", "single-step.entry.emitting",
         "return.silent", "return.emitting", "usdt", "annotation.edge"}
EDGES, COLD_EDGE_NS, LATER_EDGE_NS = 512000, 400, 10
# Both do their work once they are recorded.
OPERATIONS = """
import sys, rlscope, truthsim
print("ready", flush=True)
sys.stdin.readline()
for _ in range(%d):
    with rlscope.operation("x"):
        sum(range(100))
""" % (EDGES // 2)
WORK = """
import sys, truthsim
print("ready", flush=True)
sys.stdin.readline()
for _ in range(40000): truthsim.noargs()
"""


def calibrate(*arguments, **options):
    return subprocess.run([harness.BINARY, "calibrate", *arguments], capture_output=True, text=True,
                          timeout=harness.PATIENCE_SECONDS, check=False, **options)


def read_store():
    with open(STORE, encoding="utf-8") as file:
        return json.load(file)


def words_of(command):
    return json.dumps(command, separators=(",", ":"), ensure_ascii=False)


def write_store(store):
    with open(STORE, "w", encoding="utf-8") as file:
        json.dump(store, file)


def check_machine(checks):
    done = calibrate("--json")
    checks.that(done.returncode == 0, "calibrate --json ends with 0: " + done.stderr.strip())
    said = json.loads(done.stdout)
    checks.that(set(said["paths"]) == PATHS, "it measures every path")
    checks.that(all(path["hot_ns"] > 0 and path["error_ns"] >= 0 for path in said["paths"].values()
                    if path is not said["paths"]["annotation.edge"]), "each costs something")
    checks.that(said["hit"]["ns"] > 0 and said["hit"]["error_ns"] > 0, "the mean hit has an error")
    status = os.stat(STORE)
    checks.that(status.st_uid == 0 and stat.S_IMODE(status.st_mode) == 0o644, "it is kept, root's")
    text = calibrate()
    checks.that(text.returncode == 0 and "return probe" in text.stdout, "it prints text too")


def check_edges(checks):
    """Of operations that begin and end where nothing is probed, 64 edges are read at once, and all but the first
    few of them in a loop."""
    environment = dict(os.environ, PYTHONPATH=":".join([harness.modules(), os.environ.get("RLS_PYTHONPATH", "")]))
    kept, command = read_store(), [harness.interpreter(), "-c", OPERATIONS]
    edge = {"ns": COLD_EDGE_NS, "error_ns": 1, "hot_ns": LATER_EDGE_NS, "hot_error_ns": 1}
    # The command's own figures are used even where the machine's would be measured anew.
    own = {"command": words_of(command), "factor": 1.0, "error": 0.1, "inside_ns": kept["inside_ns"],
           "paths": dict(kept["paths"], **{"annotation.edge": edge})}
    write_store(dict(kept, workloads=[own]))
    overhead = overhead_of(command, environment)
    write_store(kept)
    edges = overhead["events"]
    expected_ns = edges / 64 * (kept["paths"]["nop5.entry"]["ns"] + 4 * COLD_EDGE_NS + 60 * LATER_EDGE_NS)
    checks.that(0.9 * EDGES < edges < 1.1 * EDGES, "each edge is an event: %d" % edges)
    checks.that(0.8 * expected_ns < overhead["estimated_ns"] < 1.5 * expected_ns,
                "edges read together are charged as such: %.1f ms, expected %.1f" % (
                    overhead["estimated_ns"] / 1e6, expected_ns / 1e6))


def check_bad_usage(checks):
    for arguments in (["--nonsense"], ["--pid=x"], ["--pid=1", "--duration=0"], ["--", "true"], ["--pid=1", "--", "true"]):
        checks.that(calibrate(*arguments).returncode == 2, "%s is bad usage" % arguments)
    checks.that(calibrate("--help").returncode == 0, "--help")


def check_distrust(checks):
    """What others could have written is left aside and written anew."""
    os.chmod(STORE, 0o666)
    done = calibrate()
    checks.that("others could have written it" in done.stderr, "a file of everybody's is left aside")
    checks.that(stat.S_IMODE(os.stat(STORE).st_mode) == 0o644, "and replaced")


def go_first():
    """On a busy machine, too, a recorder that goes first can see whether its figures hold."""
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))


def overhead_of(command, environment, said=None):
    """What a recording of the command says of what it cost; on stderr, into the list."""
    with harness.Process(command, env=environment) as job:
        if not job.out.wait("ready", harness.PATIENCE_SECONDS):
            raise RuntimeError("the job is not ready: " + job.err.text())
        with harness.Recording([job.pid], "--overhead-budget", "none", preexec_fn=go_first) as recording:
            job.say("go")
            if recording.wait() != 0:
                raise RuntimeError("no recording: " + recording.err.text())
            if said is not None:
                said.append(recording.err.text())
            return recording.report()["overhead"]


def recorded(command, environment, said=None):
    """The calibration that it has in its trace."""
    return overhead_of(command, environment, said)["calibration"]


def mean_hit(paths):
    entry, leave, event = (paths[name]["ns"] for name in ("emulated.entry", "return", "event"))
    return (entry + leave) / 2 + event


def times(paths, factor):
    """Figures amid other work so many times as high."""
    return {name: dict(path, ns=factor * path["ns"]) for name, path in paths.items()}


def check_command(checks):
    environment = dict(os.environ, PYTHONPATH=harness.modules())
    command = [harness.interpreter(), "-c", WORK]
    before = recorded(command, environment)
    checks.that("hit" in before and "workload.hit" not in before,
                "a recording uses the machine's figures: %s" % sorted(before))
    store = read_store()
    store["workloads"] = [{"command": words_of(command), "factor": 2.0, "error": 0.25}]
    write_store(store)
    after = recorded(command, environment)
    checks.that("workload.hit" in after, "and by those of its own command where there are any")
    checks.that("workload.hit.o" not in after, "without any of operations that it knows nothing of")
    if "workload.hit" in after:
        checks.that(abs(after["workload.hit"]["ns"] - 2 * after["hit"]["ns"]) < 0.01 *
                    after["hit"]["ns"], "its hits cost what was found")
    check_own_calibration(checks, command, environment)


def check_own_calibration(checks, command, environment):
    """What its factors are shares of stands, however far the machine is from it; but that is said, and stated."""
    store = read_store()
    kept = store["workloads"][0]
    kept["inside_ns"], kept["paths"] = store["inside_ns"], times(store["paths"], 10)
    hit_ns, said = mean_hit(kept["paths"]), []
    write_store(store)
    figures = recorded(command, environment, said)
    checks.that(abs(figures["hit"]["ns"] / hit_ns - 1) < 0.01, "a command's own calibration is used: %.0f ns of %.0f" %
                (figures["hit"]["ns"], hit_ns))
    checks.that(abs(figures["workload.hit"]["ns"] / hit_ns - 2) < 0.02, "whole: %.0f ns" % figures["workload.hit"]["ns"])
    checks.that("calibrate it again" in said[0], "that it seems not to hold is said: " + said[0].strip())
    checks.that(figures["workload.hit"]["error_ns"] > 0.5 * figures["workload.hit"]["ns"], "and stated")
    kept["paths"] = store["paths"]
    write_store(store)


def check_other_hour(checks):
    """Figures amid other work that no longer hold are not used, though hot hits cost what they did."""
    environment = dict(os.environ, PYTHONPATH=harness.modules())
    kept = read_store()
    paths = times(kept["paths"], 10)
    for _ in range(5):      # where others go first as well it cannot tell
        write_store(dict(kept, paths=paths, workloads=[]))
        hit_ns = recorded([harness.interpreter(), "-c", WORK], environment)["hit"]["ns"]
        if hit_ns < mean_hit(paths) / 2:
            break
    else:
        checks.that(False, "a hit is taken to cost what it costs now: %.0f ns" % hit_ns)
    write_store(kept)


def check_passing(checks):
    """What a busy moment gave is used until its time is over, and no longer, though it seems to hold."""
    environment = dict(os.environ, PYTHONPATH=harness.modules())
    kept = read_store()

    def now_s():
        return time.clock_gettime(time.CLOCK_BOOTTIME)

    def uses_it(until_s):
        store = read_store()    # where the machine has changed, it is what was found then
        hit_ns = mean_hit(store["paths"])
        write_store(dict(store, until_s=until_s, workloads=[]))
        found = recorded([harness.interpreter(), "-c", WORK], environment)["hit"]["ns"]
        return abs(found / hit_ns - 1) < 1e-6
    checks.that(any(uses_it(now_s() + 600) for _ in range(20)), "what a busy moment gave is used")
    checks.that(not uses_it(now_s()), "until its time is over")
    until_s = read_store()["until_s"]
    checks.that(until_s == 0 or 0 < until_s - now_s() <= 600, "then what is found is kept, for a while or for good: %.0f" % until_s)
    write_store(kept)


JOB = """
import rlscope, truthsim
print("ready", flush=True)
while True:
    truthsim.spin(3000)
    with rlscope.operation("many"):
        for _ in range(30):
            truthsim.spin(3000)
    with rlscope.operation("few"):
        for _ in range(8):
            truthsim.spin(12000)
"""


# Much of its time, on either side of each edge.
WAITING = JOB.replace("import rlscope", "import time, rlscope").replace("truthsim.spin(", "time.sleep(0.0002), truthsim.spin(")

# In "long" one piece takes as long with probes as without: it ends by the clock.
BY_THE_CLOCK = """
import time
import rlscope, truthsim
print("ready", flush=True)
beat = 0
while True:
    with rlscope.operation("many"):
        for _ in range(600):
            truthsim.spin(3000)
    with rlscope.operation("long"):
        end = time.monotonic() + 0.1
        while (now := time.monotonic()) < end:
            truthsim.spin(3000)
            if now > beat + 0.004:
                with rlscope.operation("beat"):
                    beat = now
"""


def attached(pid, environment, seconds=1):
    """The calibration that a recording of the process has."""
    with tempfile.NamedTemporaryFile() as trace:
        done = subprocess.run([harness.BINARY, "attach", "--pid", str(pid), "--duration", str(seconds), "-o", trace.name,
                               "--overhead-budget", "none", "--format", "json"], capture_output=True,
                              text=True, env=environment, timeout=harness.PATIENCE_SECONDS, check=False)
    return json.loads(done.stdout or "{}").get("overhead", {}).get("calibration", {})


@contextlib.contextmanager
def running(program):
    """(the job, its words, its environment): truthsim is a simulator to it and to whoever looks on."""
    folder = tempfile.mkdtemp(prefix="rls-calibrate-")
    os.makedirs(os.path.join(folder, ".config", "rlscope-bpf"))
    with open(os.path.join(folder, ".config", "rlscope-bpf", "roles.conf"), "w") as file:
        file.write("simulator truthsim*\n")
    environment = dict(os.environ, HOME=folder, PYTHONPATH=":".join(
        [harness.modules(), os.environ.get("RLS_PYTHONPATH", "")]))
    environment.pop("SUDO_UID", None)
    words = [harness.interpreter(), "-c", program]
    # Who shares a CPU has no two pieces that took as long.
    with subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, text=True,
                          preexec_fn=lambda: os.nice(-20)) as job:
        try:
            job.stdout.readline()
            yield job, words, environment
        finally:
            job.kill()
            shutil.rmtree(folder)


def calibrate_long_enough(pid, environment):
    """On a busy machine the job does less in the same time."""
    for seconds in ("14", "40", "80", "160"):
        done = calibrate("--pid", str(pid), "--duration", seconds, "--json", env=environment)
        if "longer --duration" not in done.stderr:
            break
    return done


def check_job(checks):
    """In a running job: found, kept for its command line, and used by recordings."""
    with running(JOB) as (job, words, environment):
        done = calibrate_long_enough(job.pid, environment)
        checks.that(done.returncode == 0, "calibrate --pid ends with 0: " + done.stderr.strip())
        found = json.loads(done.stdout or "{}")
        checks.that(found.get("factor", 0) > 0 and found.get("inflation", 0) > 1,
                    "its probes cost something: %s" % found)
        kept = read_store()["workloads"][0]
        checks.that(json.loads(kept["command"]) == words and kept["factor"] == found["factor"],
                    "it is kept for this command")
        checks.that(kept["error"] >= found["error"] > 0, "with an error no smaller than the mean's")
        parts = {part["operation"]: part for part in found.get("operations", [])}
        checks.that({"many", "few"} <= set(parts), "hits in each operation have a figure: %s" %
                    sorted(parts))
        checks.that(all(part["factor"] > 0 and part["error"] > 0 for part in parts.values()),
                    "each more than nothing, with an error")
        checks.that(kept["operations"] == found["operations"], "they are kept too")
        reported = attached(job.pid, environment)
        checks.that({"workload.hit." + name for name in parts} <= set(reported),
                    "and recordings of it have them: %s" % sorted(reported))
        short = calibrate("--pid", str(job.pid), "--duration", "2.5", env=environment)
        checks.that(short.returncode == 1 and "longer --duration" in short.stderr,
                    "too short a calibration is reported: " + short.stderr.strip())
    gone = calibrate("--pid", str(job.pid))
    checks.that(gone.returncode == 1 and "no process" in gone.stderr, "and a process that is gone")


def check_by_the_clock(checks):
    """Pieces of one kind that are not the same work: nothing is kept, and why is said."""
    with running(BY_THE_CLOCK) as (job, words, environment):
        done = calibrate_long_enough(job.pid, environment)
    checks.that(done.returncode == 0 and "nothing is kept" in done.stderr,
                "pieces that end by the clock are not the same work: " + (done.stderr + done.stdout).strip())
    kept = [json.loads(known["command"]) for known in read_store()["workloads"]]
    checks.that(words not in kept, "and nothing is kept of them")


def check_waiting(checks):
    """Its waits are reported while probes are off, so that its pieces can be compared."""
    with running(WAITING) as (job, _, environment):
        done = calibrate_long_enough(job.pid, environment)
    checks.that(done.returncode == 0, "calibrate --pid of a job that waits ends with 0: " + done.stderr.strip()[-200:])
    parts = {part["operation"]: part for part in json.loads(done.stdout or "{}").get("operations", [])}
    checks.that({"many", "few"} <= set(parts), "hits in each have a figure: %s" % sorted(parts))


def main():
    harness.need_root_and_profiler()
    checks = harness.Checks()
    kept = read_store() if os.path.exists(STORE) else None
    try:
        check_machine(checks)
        check_edges(checks)
        check_bad_usage(checks)
        check_distrust(checks)
        check_command(checks)
        check_other_hour(checks)
        check_passing(checks)
        check_job(checks)
        check_by_the_clock(checks)
        check_waiting(checks)
    finally:
        if kept is not None:
            write_store(kept)
    checks.finish()


if __name__ == "__main__":
    main()
