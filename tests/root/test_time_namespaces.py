#!/usr/bin/python3
"""Time namespaces: of the target, of the profiler, and of both. What the target stamps itself, its operations, is on a
clock that is ahead of the host's or behind it."""

import json
import os

import harness

COUNT = 300
# Its operation's length, from within and from without. "fork": it unshares, which is for its children, and forks one.
SCRIPT = """
import ctypes, json, os, sys, time
sys.path[:0] = [sys.argv[1]]
import rlscope, truthsim
def work():
    before = time.monotonic_ns()
    with rlscope.operation("step"):
        inner = time.monotonic_ns()
        for _ in range(%d):
            truthsim.noargs()
        time.sleep(0.05)
        inner = time.monotonic_ns() - inner
    return [os.getpid(), inner, time.monotonic_ns() - before]
print("ready", flush=True)
for line in sys.stdin:
    rows = []
    if line.strip() == "fork":
        if ctypes.CDLL(None, use_errno=True).unshare(0x80):
            raise OSError(ctypes.get_errno(), "unshare")
        with open("/proc/self/timens_offsets", "w") as offsets:
            offsets.write("monotonic 500 0")
        reader, writer = os.pipe()
        if not os.fork():
            os.write(writer, json.dumps(work()).encode())
            os._exit(0)
        rows.append(json.loads(os.read(reader, 100)))
        os.wait()
    rows.append(work())
    print(json.dumps(rows), flush=True)
""" % COUNT


def shifted(seconds):
    return [] if seconds is None else ["unshare", "--time", "--monotonic", str(seconds), "--boottime", str(seconds)]


def supported():
    return os.path.exists("/proc/self/timens_offsets") and not os.spawnvp(
        os.P_WAIT, "unshare", [*shifted(1), "true"])


def recorded(checks, target, profiler, command="work", *arguments):
    """What ran is in its operation, for as long as it took, and nothing is of another time."""
    script = [*shifted(target), harness.interpreter(), "-c", SCRIPT, harness.modules()]
    name = "target %s, profiler %s, %s" % (target, profiler, " ".join([command, *arguments]))
    with harness.Process(script, env=dict(os.environ, PYTHONPATH=os.environ["RLS_PYTHONPATH"])) as job:
        if job.out.wait("ready", harness.PATIENCE_SECONDS) is None:
            raise RuntimeError(job.err.text())
        with harness.Recording([job.pid], *arguments, prefix=shifted(profiler)) as recording:
            begin = harness.time.monotonic()
            job.say(command)
            rows = json.loads(job.out.wait("[", harness.PATIENCE_SECONDS))
            status = recording.stop()
            took = harness.time.monotonic() - begin
            report = recording.report()
    checks.that(status == 0 and report["complete"], "%s: profiler ended with %d" % (name, status))
    # What is begun before "recording" is read is no more than the waiting for that.
    checks.that(report["duration_ns"] <= (took + recording.recording_seconds) * 1e9,
                "%.3f s recorded, in %.3f" % (report["duration_ns"] / 1e9, took))
    wrong = []
    for pid, inner, outer in rows:
        found = sum(row["wall_ns"] for row in report["breakdown"] if row["pid"] == pid and row["operation"] == "step")
        calls = sum(row["count"] for row in report["transitions"] if row["pid"] == pid and row["operation"] == "step"
                    and row["to"] == "simulator")
        if not inner <= found <= outer or calls != COUNT:
            wrong.append((pid, inner, found, outer, calls))
    checks.that(not wrong, "%d operations as long as they were, with their calls: %s" % (len(rows), wrong))
    entries = sum(row["entries"] for row in report["operations"] if row["operation"] == "step")
    checks.that(entries == len(rows), "%d entries of %d" % (entries, len(rows)))
    left_out = [warning for warning in report["warnings"] if "left out" in warning]
    checks.that(not left_out, "no event is of a wrong time: %s" % left_out)


def main():
    harness.need_root_and_profiler()
    if not supported():
        harness.skip("no time namespaces here")
    checks = harness.Checks()
    for target, profiler in ((1000, None), (-100, None), (None, 1000), (None, -100), (1000, -50), (-100, -100)):
        recorded(checks, target, profiler)
    recorded(checks, None, None, "fork")
    recorded(checks, 1000, None, "fork")
    checks.finish()


main()
