#!/usr/bin/python3
"""Processes whose first thread has left: /proc/PID has no memory, mappings, root or command line any more, and the
process lives on until its last thread ends."""

import json
import os
import signal
import subprocess

import harness

COUNT = 300
# The thread works on; the first one leaves by itself, which is not the end of the process. "late": when it is asked to.
ROUNDS = 6
SCRIPT = """
import ctypes, json, os, sys, threading
sys.path[:0] = [sys.argv[1]]
import rlscope, truthsim
leave = threading.Event()
def calls(module):
    with rlscope.operation("step"):
        for _ in range(%d):
            module.noargs()
    return {"pid": os.getpid(), "tid": threading.get_native_id()}
def serve():
    while sys.argv[2] == "now" and "State:\\tZ" not in open("/proc/%%d/status" %% os.getpid()).read():
        pass
    print("ready", flush=True)
    for line in sys.stdin:
        word, row = line.strip(), None
        if word == "leave":
            leave.set()
            while "State:\\tZ" not in open("/proc/%%d/status" %% os.getpid()).read():
                pass
        elif word == "import":
            import truthback
        elif word == "back":
            row = calls(truthback)
        elif word == "fork":
            reader, writer = os.pipe()
            if not os.fork():
                os.write(writer, json.dumps(calls(truthsim)).encode())
                os._exit(0)
            row = json.loads(os.read(reader, 100))
            os.wait()
        else:
            row = calls(truthsim)
        print(json.dumps([row]), flush=True)
    os._exit(7)
threading.Thread(target=serve).start()
if sys.argv[2] == "late":
    leave.wait()
ctypes.CDLL(None).syscall(60, 0)
""" % COUNT


def job(when="now"):
    environment = dict(os.environ, PYTHONPATH=os.environ["RLS_PYTHONPATH"])
    process = harness.Process([harness.interpreter(), "-c", SCRIPT, harness.modules(), when], env=environment)
    if process.out.wait("ready", harness.PATIENCE_SECONDS) is None:
        raise RuntimeError(process.err.text())
    return process


def ask(process, word):
    process.say(word)
    return json.loads(process.out.wait("[", harness.PATIENCE_SECONDS))[0]


def counted(report, row, category="simulator"):
    return sum(entry["count"] for entry in report["transitions"] if (entry["pid"], entry["tid"]) == (
        row["pid"], row["tid"]) and entry["operation"] == "step" and entry["to"] == category)


def exact(checks, report, rows, category="simulator"):
    wrong = [(row, counted(report, row, category)) for row in rows if counted(report, row, category) != COUNT]
    checks.that(not wrong, "%d threads in their operation, exactly %d calls each: %s" % (len(rows), COUNT, wrong))


def attached(checks):
    """It is found as any process is, by all ways; what it loads and forks later too."""
    for select in ("--pid", "--name", "--all"):
        with job() as target:
            selector = {"--pid": [], "--name": ["--name", "python3*"], "--all": ["--all"]}[select]
            with harness.Recording([target.pid] if select == "--pid" else [], *selector, "-v") as recording:
                rows = [ask(target, "work"), ask(target, "fork")]
                if select == "--pid":
                    ask(target, "import")
                    recording.wait_probed(target.pid, "truthback")
                    recording.wait_tables(target.pid)
                    rows_back = [ask(target, "back")]
                status, report = recording.stop(), recording.report()
            target.child.stdin.close()
            checks.that(target.wait() == 7, "the target ends as it would")
        checks.that(status == 0 and report["complete"], "%s: profiler ended with %d" % (select, status))
        exact(checks, report, rows)
        if select == "--pid":
            exact(checks, report, rows_back, "backend")
        process = next((p for p in report["processes"] if p["pid"] == target.pid), {})
        checks.that(process.get("python") and "now" in process.get("cmdline", []),
                    "it has its version and its words: %s %s" % (process.get("python"), len(process.get("cmdline", []))))


def left_meanwhile(checks):
    """Its first thread leaves during the recording, which goes on until the last one ends."""
    with job("late") as target:
        with harness.Recording([target.pid]) as recording:
            row = ask(target, "work")
            ask(target, "leave")
            ask(target, "work")
            # Ends are looked at twice a second: longer than that.
            harness.time.sleep(1.5)
            running = recording.child.poll() is None
            ask(target, "work")
            target.child.stdin.close()
            status = recording.wait()
            report = recording.report()
    checks.that(running, "the recording goes on")
    checks.that(status == 0 and report["complete"], "it ends with the last thread: %d" % status)
    count = counted(report, row)
    checks.that(count == 3 * COUNT, "%d calls of %d" % (count, 3 * COUNT))


def started(checks):
    with harness.tempfile.TemporaryDirectory(prefix="rls-") as folder:
        path, trace = os.path.join(folder, "report"), os.path.join(folder, "trace")
        words = [harness.interpreter(), "-c", SCRIPT, harness.modules(), "now"]
        with harness.Process([harness.BINARY, "run", "-v", *harness.EXACT, *harness.ROLES, "-o", trace, "--format", "json",
                              "--report", path, "--", *words],
                             env=dict(os.environ, PYTHONPATH=os.environ["RLS_PYTHONPATH"])) as command:
            probed = harness.eventually(lambda: any("truthsim" in line and line.endswith(" is probed\n")
                                                    for line in command.err.seen))
            # Operations are found a moment after the first library.
            for _ in range(ROUNDS):
                row = ask(command, "work")
                harness.time.sleep(0.2)
            command.child.stdin.close()
            status = command.wait()
        with open(path) as stream:
            report = json.load(stream)
    checks.that(probed and status == 7, "run: ended with %d" % status)
    calls = sum(entry["count"] for entry in report["transitions"]
                if entry["tid"] == row["tid"] and entry["to"] == "simulator")
    checks.that(calls == ROUNDS * COUNT and counted(report, row) >= COUNT, "%d of %d calls, %d of them in their operation" % (
        calls, ROUNDS * COUNT, counted(report, row)))


def looked_at(checks):
    with job() as target:
        listed = harness.run("probes", "--pid", str(target.pid), *harness.ROLES)
        checks.that(listed.returncode == 0 and "truthsim" in listed.stdout, "probes lists its library: %d %s" % (
            listed.returncode, listed.stderr))
    gone = harness.run("attach", "--pid", str(target.pid))
    checks.that(gone.returncode == 1 and "no process with pid %d" % target.pid in gone.stderr,
                "what has ended is no process: %s" % gone.stderr.strip())
    zombie = subprocess.Popen(["true"])
    harness.eventually(lambda: "State:\tZ" in open("/proc/%d/status" % zombie.pid).read())
    gone = harness.run("attach", "--pid", str(zombie.pid))
    zombie.send_signal(signal.SIGCONT)
    zombie.wait()
    checks.that(gone.returncode == 1 and "no process with pid %d" % zombie.pid in gone.stderr,
                "nor is a zombie: %s" % gone.stderr.strip())


def main():
    harness.need_root_and_profiler()
    checks = harness.Checks()
    attached(checks)
    left_meanwhile(checks)
    started(checks)
    looked_at(checks)
    checks.finish()


main()
