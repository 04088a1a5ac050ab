#!/usr/bin/python3
"""A target in pid and mount namespaces of its own, with libraries that only it can see; and the
profiler itself in such a place."""

import json
import os
import subprocess
import tempfile

import harness

COUNT = 500
# Libraries where the host has none; the simulator at a path where the host has another file.
ENTER = """\
set -e
mount -t tmpfs rls /mnt
cp -r "$1" /mnt/modules
cp -r "$2/python" "$2/librlscope_annotate.so" /mnt
mount --bind /mnt/modules "$1"
exec "$3" -c "$4" "$1"
"""
SCRIPT = """\
import json, os, sys, threading
sys.path[:0] = [sys.argv[1], "/mnt/python"]
import rlscope, truthsim
sys.path[0] = "/mnt/modules"
import truthback
def calls(name):
    with rlscope.operation(name):
        for _ in range(%d):
            truthsim.noargs()
            truthback.noargs()
def row():
    return {"pid": os.getpid(), "tid": threading.get_native_id()}
rows = []
def work():
    calls("step")
    rows.append(row())
rlscope.set_phase("inside")
print("ready", flush=True)
sys.stdin.readline()
thread = threading.Thread(target=work)
thread.start()
thread.join()
reader, writer = os.pipe()
if os.fork() == 0:
    calls("child")
    os.write(writer, json.dumps(row()).encode())
    os._exit(0)
rows.append(json.loads(os.read(reader, 1000)))
os.wait()
print(json.dumps(rows), flush=True)
sys.stdin.readline()
""" % COUNT


def unshared(*command):
    return ["unshare", "--pid", "--mount", "--fork", "--kill-child", "--mount-proc", *command]


def inside(*command):
    return unshared("sh", "-c", ENTER, "sh", harness.modules(),
                    os.path.dirname(os.environ["RLS_PYTHONPATH"]), harness.interpreter(),
                    SCRIPT, *command)


def child_of(pid):
    with open("/proc/%d/task/%d/children" % (pid, pid)) as stream:
        return int(stream.read().split()[0])


def host_numbers(trace):
    """{(ns_pid, ns_tid): (pid, tid)} of what the trace tells of threads."""
    pids, found = {}, {}
    for line in harness.run("dump", trace).stdout.splitlines():
        event = json.loads(line)
        if event["event"] == "process":
            pids[event["pid"]] = event.get("ns_pid", event["pid"])
        if event["event"] == "thread":
            inside_it = (pids.get(event["pid"]), event.get("ns_tid", event["tid"]))
            found[inside_it] = (event["pid"], event["tid"])
    return found


def counts(report, key):
    return {(entry["phase"], entry["operation"], entry["from"], entry["to"]): entry["count"]
            for entry in report["transitions"] if (entry["pid"], entry["tid"]) == key}


def truth(operation):
    return {("inside", operation, source, target): COUNT
            for library in ("simulator", "backend")
            for source, target in (("python", library), (library, "python"))}


def target_inside(checks):
    with harness.Process(inside()) as target:
        if target.out.wait("ready", harness.PATIENCE_SECONDS) is None:
            harness.skip("no namespaces: %s" % target.err.text())
        pid = child_of(target.pid)
        with harness.Recording([pid]) as recording:
            target.say("")
            rows = json.loads(target.out.wait("[", harness.PATIENCE_SECONDS))
            status = recording.stop()
            report, numbers = recording.report(), host_numbers(recording.trace)
        target.say("")
        checks.that(target.wait() == 0, "the target ends as it would")
    checks.that(status == 0, "profiler ended with %d" % status)
    processes = {process["pid"]: process for process in report["processes"]}
    checks.that(processes[pid].get("ns_pid") == 1, "it is %s inside, %d here" % (
        processes[pid].get("ns_pid"), pid))
    for row, operation in zip(rows, ("step", "child")):
        key = numbers.get((row["pid"], row["tid"]))
        found = counts(report, key)
        checks.that(found == truth(operation), "thread %d inside, %s here: exact by operation and "
                    "phase%s" % (row["tid"], key, "" if found == truth(operation) else ": %s" % found))
        checks.that(key and processes[key[0]].get("ns_pid", key[0]) == row["pid"],
                    "its process has both numbers")
    paths = {library["path"] for library in processes[pid]["libraries"]}
    for start, name in ((harness.modules(), "truthsim"), ("/mnt/modules", "truthback")):
        wanted = os.path.join(start, name)
        found = any(path.startswith(wanted) for path in paths)
        checks.that(found, "%s… is given as the target sees it%s" % (wanted, "" if found else ": %s" % sorted(paths)))
    harness.check_sums(checks, report)
    harness.check_lossless(checks, report)


OPTIONS = " ".join(["-v", *harness.EXACT, *("'%s'" % word for word in harness.ROLES)])
ATTACH = """\
"$2" -c "$3" "$4" "$7" &
"$1" attach --pid $! """ + OPTIONS + """ -o "$5" --format json --report "$6" 2> "$7"
"""
RUN = """\
"$1" run """ + OPTIONS + """ -o "$5" --format json --report "$6" -- "$2" -c "$3" "$4" "$7" 2> "$7"
"""
JOB = """\
import json, os, subprocess, sys, threading, time
sys.path[:0] = [sys.argv[1]]
import truthsim
def calls(count):
    for _ in range(count):
        truthsim.noargs()
    print(json.dumps({"pid": os.getpid(), "tid": threading.get_native_id(), "kind": "job",
        "truth": {"python->simulator": count, "simulator->python": count}}), flush=True)
def on_thread(count):
    thread = threading.Thread(target=calls, args=(count,))
    thread.start()
    thread.join()
if sys.argv[2] == "once":
    calls(50)
    sys.exit()
def is_counted():
    said = list(open(sys.argv[2]))
    return any(line.startswith("recording") for line in said) and any(
        "truthsim" in line and line.endswith(" is probed\\n") for line in said)
while not is_counted():
    time.sleep(0.02)
on_thread(300)
if os.fork() == 0:
    on_thread(200)
    os._exit(0)
os.wait()
subprocess.run([sys.executable, "-c", sys.orig_argv[2], sys.argv[1], "once"])
"""


def profiler_inside(checks, folder, command):
    """Profiler and target in a pid namespace of their own: all numbers are that one's."""
    trace, report, said = (os.path.join(folder, name) for name in ("trace", "report.json", "said"))
    open(said, "w").close()
    done = subprocess.run(
        unshared("sh", "-c", command, "sh", harness.BINARY, harness.interpreter(), JOB,
                 harness.modules(), trace, report, said),
        stdout=subprocess.PIPE, encoding="utf-8", timeout=harness.PATIENCE_SECONDS)
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if not checks.that(done.returncode == 0 and len(rows) == 3, "profiler inside: status %d, %s" % (
            done.returncode, open(said).read()[-300:])):
        return
    with open(report) as stream:
        found = json.load(stream)
    harness.check_truth(checks, found, rows)
    harness.check_sums(checks, found)
    harness.check_lossless(checks, found)
    checks.that({row["pid"] for row in rows} <= {process["pid"] for process in found["processes"]}
                and not any("ns_pid" in process for process in found["processes"]),
                "its processes by their numbers inside: %s" % sorted(
                    process["pid"] for process in found["processes"]))


def proc_of_another(checks):
    command = ["unshare", "--pid", "--fork", harness.BINARY, "attach", "--all", "--duration", "1",
               "-o", "/dev/null"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
                          timeout=harness.PATIENCE_SECONDS)
    checks.that(done.returncode == 1 and "pid namespace" in done.stderr
                and len(done.stderr.splitlines()) == 1, "/proc of another: status %d, %r" % (
                    done.returncode, done.stderr))


def main():
    harness.need_root_and_profiler()
    checks = harness.Checks()
    target_inside(checks)
    with tempfile.TemporaryDirectory(prefix="rls-") as folder:
        for command in (ATTACH, RUN):
            profiler_inside(checks, folder, command)
    proc_of_another(checks)
    checks.finish()


if __name__ == "__main__":
    main()
