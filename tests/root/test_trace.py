#!/usr/bin/python3
"""A recording's trace, read later: by another user, through dump, cut, foreign."""

import json
import os
import signal
import subprocess
import tempfile
import time

import harness

FIGURES = ["breakdown", "transitions", "threads", "processes", "losses", "duration_ns"]


def record(folder):
    with harness.Target("exact.py") as target:
        with harness.Recording([target.pid], folder=folder) as recording:
            rows = target.ask(do="kinds", count=200)
            status = recording.stop()
            return rows, status, recording


def figures(report):
    return {name: report[name] for name in FIGURES}


def read_by_others(checks, folder, recording):
    mode = os.stat(recording.trace).st_mode & 0o777
    checks.that(mode == 0o600, "the trace's mode is %o" % mode)
    binary = harness.copy_for_others(folder)
    os.chmod(recording.trace, 0o644)
    done = subprocess.run([binary, "report", recording.trace, "--format", "json"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          universal_newlines=True, timeout=harness.PATIENCE_SECONDS, **harness.NOBODY)
    same = done.returncode == 0 and figures(json.loads(done.stdout)) == figures(recording.report())
    checks.that(same, "as nobody: status %d, the same figures as at the end of recording" % (
        done.returncode))


def read_text_form(checks, folder, recording):
    text = os.path.join(folder, "trace.jsonl")
    done = harness.run("dump", recording.trace)
    with open(text, "w") as stream:
        stream.write(done.stdout)
    lines = done.stdout.splitlines()
    checks.that(done.returncode == 0 and all(json.loads(line)["event"] for line in lines),
                "dump: status %d, %d lines of JSON" % (done.returncode, len(lines)))
    again = harness.run("report", text, "--format", "json")
    checks.that(again.returncode == 0, "report of it: status %d %s" % (
        again.returncode, again.stderr[:200]))
    if again.returncode:
        return
    ours, theirs = recording.report(), json.loads(again.stdout)
    for name in ("breakdown", "transitions", "threads"):
        wanted, got = ours[name], theirs[name]
        if name == "threads" or name == "breakdown":
            # The text form has no on-CPU time, by which samples divide what was not traced.
            wanted = [{k: v for k, v in row.items() if k != "on_cpu_ns"} for row in wanted
                      if row.get("method", "traced") == "traced"]
            got = [{k: v for k, v in row.items() if k != "on_cpu_ns"} for row in got
                   if row.get("method", "traced") == "traced"]
        checks.that(wanted == got, "through dump: %d rows of %s the same" % (len(wanted), name))


def read_formats(checks, recording):
    for name in ("text", "csv"):
        done = harness.run("report", recording.trace, "--format", name)
        checks.that(done.returncode == 0 and "simulator" in done.stdout,
                    "--format %s: status %d, %d bytes" % (name, done.returncode, len(done.stdout)))


def totals(report):
    return sum(row["wall_ns"] for row in report["breakdown"])


def read_cut(checks, folder, recording):
    with open(recording.trace, "rb") as stream:
        data = stream.read()
    whole = totals(recording.report())
    for share in (0.25, 0.5, 0.9, 1 - 1 / len(data)):
        path = os.path.join(folder, "cut")
        with open(path, "wb") as stream:
            stream.write(data[:int(len(data) * share)])
        done = harness.run("report", path, "--format", "json")
        fine = done.returncode == 3 and done.stderr.strip()
        if fine:
            report = json.loads(done.stdout)
            fine = not report["complete"] and report["warnings"] and totals(report) <= whole
        checks.that(fine, "cut to %.3f: status %d, %r" % (share, done.returncode,
                                                          done.stderr[:100]))


def read_damaged(checks, folder, recording):
    with open(recording.trace, "rb") as stream:
        data = bytearray(stream.read())
    middle = len(data) // 2
    data[middle] ^= 0xff
    path = os.path.join(folder, "damaged")
    with open(path, "wb") as stream:
        stream.write(data)
    done = harness.run("report", path, "--format", "json")
    checks.that(done.returncode in (1, 3) and done.stderr.strip(), "a byte changed: status %d, %r" % (
        done.returncode, done.stderr[:100]))


def read_foreign(checks, folder):
    path = os.path.join(folder, "foreign")
    for name, content in (("empty", b""), ("text", b"hello world\n" * 100),
                          ("ELF", open("/bin/true", "rb").read()), ("zeroes", b"\0" * 5000),
                          ("one byte", b"R")):
        with open(path, "wb") as stream:
            stream.write(content)
        done = harness.run("report", path)
        checks.that(done.returncode == 1 and done.stderr.strip() and not done.stdout,
                    "%s file: status %d, %r" % (name, done.returncode, done.stderr[:100]))
    done = harness.run("report", os.path.join(folder, "not-there"))
    checks.that(done.returncode == 1 and "not-there" in done.stderr, "missing file: status %d, %r" % (
        done.returncode, done.stderr[:100]))


def asleep_at_both_ends(checks):
    """A thread that sleeps from the start of recording, and again until its end, is off the CPU."""
    with harness.Target("exact.py") as target:
        with harness.Recording([target.pid]) as recording:
            time.sleep(1)
            target.ask(do="kinds", count=1)
            time.sleep(1)
            recording.stop()
            threads = {thread["tid"]: thread for thread in recording.report()["threads"]}
    thread = threads.get(target.pid, {"wall_ns": 0, "on_cpu_ns": 0})
    checks.that(thread["wall_ns"] - thread["on_cpu_ns"] > 1.8e9, "asleep for 2 s: %s" % thread)


def attach_for(seconds, pid, folder, *arguments):
    return harness.Process([harness.BINARY, "attach", "--pid", str(pid), "--duration", seconds,
                            "--format", "json", *harness.ROLES, *arguments], cwd=folder)


def two_at_once(checks, folder):
    """Side by side in one folder, neither takes the other's trace, nor its figures."""
    with harness.Target("exact.py") as target, attach_for("600", target.pid, folder) as first:
        first.err.wait("recording", harness.RECORDING_SECONDS)
        with attach_for("0.5", target.pid, folder) as second:
            statuses = [second.wait()]
            lasted = {"second": json.loads(second.out.text())["duration_ns"]}
        refused = attach_for("0.5", target.pid, folder, "-o", "rlscope-%d.trace" % target.pid)
        with refused:
            in_the_way = (refused.wait(), refused.err.text())
        first.child.send_signal(signal.SIGINT)
        statuses.append(first.wait())
        lasted["first"] = json.loads(first.out.text())["duration_ns"]
    traces = sorted(name for name in os.listdir(folder) if name.startswith("rlscope-%d" % target.pid))
    checks.that(statuses == [0, 0] and traces == ["rlscope-%d-2.trace" % target.pid,
                                                  "rlscope-%d.trace" % target.pid],
                "two at once: status %s, traces %s" % (statuses, traces))
    # One began before the other and ended after it.
    checks.that(lasted["first"] > lasted["second"] > 0.4e9, "each reports its own: %s" % lasted)
    checks.that(in_the_way[0] == 1 and "another recording" in in_the_way[1],
                "a trace that is being written stays: status %d, %r" % in_the_way)


def main():
    harness.need_root_and_profiler()
    checks = harness.Checks()
    with tempfile.TemporaryDirectory(prefix="rls-") as folder:
        rows, status, recording = record(folder)
        checks.that(status == 0, "profiler ended with %d, trace of %d bytes" % (
            status, os.path.getsize(recording.trace)))
        harness.check_truth(checks, recording.report(), rows)
        read_by_others(checks, folder, recording)
        read_text_form(checks, folder, recording)
        read_formats(checks, recording)
        read_cut(checks, folder, recording)
        read_damaged(checks, folder, recording)
        read_foreign(checks, folder)
        two_at_once(checks, folder)
        asleep_at_both_ends(checks)
    checks.finish()


if __name__ == "__main__":
    main()
