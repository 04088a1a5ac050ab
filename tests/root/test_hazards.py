#!/usr/bin/python3
"""The target's output and status are its own, profiled or not: test_hazards.py [NAME…]."""

import os
import subprocess
import sys
import tempfile

import harness

sys.path.insert(0, harness.HAZARD_SOURCES)
import hazards  # noqa: E402

ATTACHES = 3


def command(name, *arguments):
    return [harness.interpreter(), os.path.join(harness.HAZARD_SOURCES, "hazards.py"), name,
            "--modules", harness.modules(), "--libraries", harness.TRUTH, *arguments]


def start(name, *arguments):
    target = harness.Process(command(name, *arguments))
    if target.out.wait("ready", 30) is None:
        raise RuntimeError("%s is not ready: %s" % (name, target.err.text()))
    return target


def finish(target, seconds=100):
    """(status, output); the status is "hangs" when it does not end."""
    try:
        status = target.wait(seconds)
    except subprocess.TimeoutExpired:
        target.child.kill()
        return "hangs", target.out.text()
    return status, target.out.text()


def plain(name):
    with start(name) as target:
        target.say("go")
        return finish(target)


def profiled(checks, name, expected):
    with start(name) as target:
        with harness.Recording([target.pid]) as recording:
            target.say("go")
            result = finish(target)
            checks.that(result == expected, "%s: profiled %s, alone %s%s" % (
                name, short(result), short(expected),
                "" if result == expected else " stderr " + target.err.text()[-300:]))
            try:
                status = recording.wait(30)
            except subprocess.TimeoutExpired:
                checks.that(False, "%s: the profiler does not end with its target" % name)
                return
            checks.that(status == 0, "%s: profiler's status %d %s" % (
                name, status, "" if status == 0 else recording.err.text()[-300:]))
            if status == 0:
                harness.check_sums(checks, recording.report())


def short(result):
    status, output = result
    return "%s %r" % (status, output if len(output) < 60 else output[:40] + "...")


def cycled(checks, name, expected):
    """Attach, detach, attach ... while the hazard goes on."""
    statuses = []
    with start(name, "--loop") as target, tempfile.TemporaryDirectory() as folder:
        target.say("go")
        for _ in range(ATTACHES):
            done = harness.run("attach", "--pid", str(target.pid), "--duration", "0.1",
                               *harness.EXACT, *harness.ROLES, "-o", os.path.join(folder, "trace"),
                               "--report", os.path.join(folder, "report"))
            statuses.append(done.returncode)
        if target.child.poll() is None:
            target.say("stop")
        result = finish(target)
        checks.that(result == expected and statuses == [0] * ATTACHES,
                    "%s: attached %d times, statuses %s: %s%s" % (
                        name, ATTACHES, statuses, short(result),
                        "" if result == expected else " stderr " + target.err.text()[-300:]))


def check(checks, name):
    expected = plain(name)
    profiled(checks, name, expected)
    if name not in hazards.FATAL and name != "sandboxed":  # its filter cannot be put on twice
        cycled(checks, name, expected)


def main():
    harness.need_root_and_profiler()
    checks = harness.Checks()
    for name in sys.argv[1:] or hazards.HAZARDS:
        check(checks, name)
    checks.finish()


if __name__ == "__main__":
    main()
