#!/usr/bin/python3
"""An interpreter whose stacks nobody can walk, a free-threaded CPython 3.14, is refused in one
sentence, and none are made up: 3.14's own program, changed to say of itself that it is one."""

import os
import shutil
import struct
import tempfile

import harness

SPIN = """
import time
print("ready", flush=True)
def spin(end):
    while time.monotonic() < end: pass
spin(time.monotonic() + 3600)
"""

# _Py_DebugOffsets: a cookie, the version, and whether it is free-threaded.
COOKIE = b"xdebugpy"
AT = len(COOKIE) + 8


def free_threaded(python, folder):
    """A tree like the interpreter's whose program calls itself free-threaded."""
    usr = os.path.dirname(os.path.dirname(python))
    programs = os.path.join(folder, "usr", "bin")
    os.makedirs(programs)
    os.symlink(os.path.join(usr, "lib"), os.path.join(folder, "usr", "lib"))
    for name in ("python3", "python3.14"):
        shutil.copy(os.path.join(usr, "bin", name), programs)
    with open(os.path.join(programs, "python3.14"), "r+b") as program:
        bytes_of = program.read()
        found = [at for at in range(0, len(bytes_of) - AT, 8) if bytes_of.startswith(COOKIE, at)]
        for at in found:
            program.seek(at + AT)
            program.write(struct.pack("<Q", 1))
    return os.path.join(programs, "python3"), len(found)


def record(python):
    with harness.Process([python, "-c", SPIN]) as target:
        if target.out.wait("ready", harness.PATIENCE_SECONDS) is None:
            raise RuntimeError("not ready: %s" % target.err.text())
        with harness.Recording([target.child.pid], roles=[]) as recording:
            harness.let_run(target.pid, 1.5)
            status = recording.stop()
            return status, recording.err.text(), recording.report(), target.child.poll() is None


def main():
    harness.need_root_and_profiler()
    python = harness.interpreter("3.14")
    checks = harness.Checks()
    with tempfile.TemporaryDirectory(prefix="rls-") as folder:
        changed, places = free_threaded(python, folder)
        checks.that(places == 1, "the program says in %d places whether it is free-threaded" % places)
        status, said, report, alive = record(changed)
    sentence = [line for line in said.split("\n") if "the stacks of process" in line]
    checks.that(status == 0 and alive, "status %d, the target lives: %s" % (status, alive))
    checks.that(len(sentence) == 1 and "cannot be walked" in sentence[0] and "3.14" in sentence[0] and
                "free-threaded" in sentence[0], "refused in one sentence: %s" % sentence)
    checks.that(any("cannot be walked" in warning for warning in report["warnings"]),
                "the report says so: %s" % report["warnings"])
    named = [function["function"] for function in report.get("functions", [])]
    checks.that("spin" not in named and "<module>" not in named, "no function is made up: %s" % named[:5])
    status, said, report, _ = record(python)
    named = [function["function"] for function in report.get("functions", [])]
    checks.that("spin" in named and "cannot be walked" not in said, "unchanged it is walked: %s" % named[:5])
    checks.finish()


if __name__ == "__main__":
    main()
