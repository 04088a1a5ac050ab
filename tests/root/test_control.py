#!/usr/bin/python3
"""How a recording ends, several targets at once, and libraries that come late."""

import os
import signal
import tempfile
import time

import harness


def ends_by(checks, name, number):
    with harness.Target("exact.py") as target, harness.Recording([target.pid]) as recording:
        rows = target.ask(do="kinds", count=20, names=["methods.noargs"])
        status = recording.stop(number)
        checks.that(status == 0, "%s: status %d after %.2f s" % (name, status,
                                                                recording.stop_seconds))
        harness.check_truth(checks, recording.report(), rows)
        again = target.ask(do="kinds", count=20, names=["methods.noargs"])
        checks.that(len(again) == 1, "%s: the target works on" % name)


def ends_by_duration(checks):
    with harness.Target("exact.py") as target:
        with harness.Recording([target.pid], "--duration", "1") as recording:
            live = time.monotonic()
            status = recording.wait()
            seconds = time.monotonic() - live
            report = recording.report()
    # A busy machine may end it late, but not before its time, nor may it be reported longer than it was.
    checks.that(status == 0 and seconds > 0.8, "--duration 1: status %d %.2f s after live" % (status, seconds))
    checks.that(0.9 < report["duration_ns"] / 1e9 < recording.recording_seconds + seconds,
                "--duration 1: duration_ns %d" % report["duration_ns"])


def ends_with_target(checks):
    for name, end in (("quit", lambda target: target.say('{"do": "quit"}')),
                      ("SIGKILL", lambda target: target.child.kill())):
        with harness.Target("exact.py") as target:
            with harness.Recording([target.pid]) as recording:
                rows = target.ask(do="kinds", count=20, names=["methods.noargs"])
                end(target)
                status = recording.wait()
                checks.that(status == 0, "target's end by %s: status %d" % (name, status))
                report = recording.report()
        harness.check_truth(checks, report, rows)
        harness.check_sums(checks, report)


def two_targets(checks):
    with harness.Target("exact.py") as first, harness.Target("exact.py") as second:
        with harness.Recording([first.pid, second.pid]) as recording:
            rows = first.ask(do="kinds", count=30, names=["methods.o", "slots.static_len"])
            rows += second.ask(do="kinds", count=40, names=["methods.o", "callbacks.call_object"])
            first.say('{"do": "quit"}')
            first.wait()
            rows += second.ask(do="kinds", count=50, names=["methods.fastcall"])
            status = recording.stop()
            report = recording.report()
    checks.that(status == 0, "two targets: status %d, one ended meanwhile" % status)
    checks.that({p["pid"] for p in report["processes"]} == {first.pid, second.pid},
                "two targets: both in the report")
    harness.check_truth(checks, report, rows)


INSIDE = ("import ctypes, sys, time\n"
          "library = ctypes.CDLL(%r)\n"
          "callback = ctypes.CFUNCTYPE(ctypes.c_long, ctypes.c_long)(\n"
          "    lambda depth: print('inside', flush=True) or len(sys.stdin.readline()))\n"
          "library.truthc_nest(callback, ctypes.c_long(3))\n"
          "time.sleep(0.5)\n"
          "for _ in range(100): library.truthc_outer(ctypes.c_long(5))\n")


def attached_inside(checks):
    """A thread that is in a library's function at the start is out of it when that returns,
    though nothing but its return was seen."""
    command = [harness.interpreter(), "-c", INSIDE % os.path.join(harness.TRUTH, "libtruthc.so")]
    with harness.Process(command) as target:
        target.out.wait("inside", harness.PATIENCE_SECONDS)
        with harness.Recording([target.pid]) as recording:
            target.say("go")
            status = recording.wait()
            report = recording.report()
    found = harness.flows(report, of_process=True)[target.pid]
    python_ns = sum(row["wall_ns"] for row in report["breakdown"] if row["category"] == "python")
    checks.that(status == 0 and found["python->simulator"] == 100 and python_ns > 0.4e9,
                "attached inside a call: %s, then %.2f s of python" % (dict(found), python_ns / 1e9))


def late_library(checks):
    with harness.Target("exact.py", arguments=["--late"]) as target:
        with harness.Recording([target.pid], "-v") as recording:
            checks.that("warning" in "".join(recording.err.seen).lower(),
                        "no library of a role yet: a warning, and recording goes on")
            target.ask(do="import", modules=harness.modules())
            for name in ("truthsim", "truthback"):
                recording.wait_probed(target.pid, name)
            recording.wait_tables(target.pid)
            rows = target.ask(do="kinds", count=200)
            status = recording.stop()
            report = recording.report()
    checks.that(status == 0, "late import: status %d" % status)
    harness.check_truth(checks, report, rows)
    paths = [os.path.basename(library["path"]) for library in report["processes"][0]["libraries"]
             if library["sites"]]
    checks.that(any(path.startswith("truthsim") for path in paths), "late import: probed %s" % paths)


def streams(checks):
    """The report goes to stdout and nothing else does."""
    with harness.Target("exact.py") as target, tempfile.TemporaryDirectory() as folder:
        done = harness.run("attach", "--pid", str(target.pid), "--duration", "0.5", *harness.EXACT,
                           *harness.ROLES, "-o", os.path.join(folder, "trace"), "--format", "json")
    checks.that(done.returncode == 0 and done.stdout.lstrip().startswith("{"),
                "without --report it is on stdout: status %d, %d bytes" % (
                    done.returncode, len(done.stdout)))


def main():
    harness.need_root_and_profiler()
    checks = harness.Checks()
    ends_by(checks, "SIGINT", signal.SIGINT)
    ends_by(checks, "SIGTERM", signal.SIGTERM)
    ends_by(checks, "SIGHUP", signal.SIGHUP)
    ends_by_duration(checks)
    ends_with_target(checks)
    two_targets(checks)
    attached_inside(checks)
    late_library(checks)
    streams(checks)
    checks.finish()


if __name__ == "__main__":
    main()
