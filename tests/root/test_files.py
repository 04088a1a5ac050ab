#!/usr/bin/python3
"""Library files that are not what they seem: one that is written anew in place while it is probed, and one that two
containers of an image have in file systems of their own."""

import os
import shutil
import subprocess
import tempfile

import harness

COUNT = 500
FIRST, SECOND = (os.environ.get("RLS_FILE_LIBRARY_%d" % version, "") for version in (1, 2))
JOB = os.path.join(harness.HERE, "file_job.py")
ROLES = ["--simulator", "libfile.so:sim_step"]
VALUE = 0x1122334455667788
ASK = ("import ctypes, sys; library = ctypes.CDLL(sys.argv[1]); "
       "library.sim_value.restype = ctypes.c_uint64; print(library.sim_value())")
# A container: its root is an overlay's, as far as the library goes.
ENTER = """\
set -e
mount -t tmpfs rls /mnt
mkdir /mnt/upper /mnt/work /mnt/seen
mount -t overlay rls -o "lowerdir=$1,upperdir=/mnt/upper,workdir=/mnt/work" /mnt/seen
exec "$2" "$3" /mnt/seen/libfile.so
"""


def work(job, count):
    job.say(str(count))
    if job.out.wait("done", harness.PATIENCE_SECONDS) is None:
        raise RuntimeError("the job did not go on: " + job.err.text())


def test_written(checks, folder):
    """As `cp` does; the next process would meet a breakpoint within an instruction."""
    library = os.path.join(folder, "libfile.so")
    shutil.copyfile(FIRST, library)
    inode = os.stat(library).st_ino
    with harness.Process([harness.interpreter(), JOB, library]) as job, \
            harness.Process([harness.interpreter(), "-c", "input()"]) as other:
        job.out.wait("ready", harness.PATIENCE_SECONDS)
        recording = harness.Recording([job.pid, other.pid], roles=ROLES)
        work(job, COUNT)
        job.child.kill()
        job.child.wait()
        shutil.copyfile(SECOND, library)
        checks.that(recording.err.wait("rlscope-bpf: warning: " + library, harness.PATIENCE_SECONDS), "writing is noticed")
        answer = subprocess.run([harness.interpreter(), "-c", ASK, library], capture_output=True, text=True)
        status = recording.stop()
    checks.that(os.stat(library).st_ino == inode, "the library was written anew in place")
    checks.that(answer.stdout.strip() == str(VALUE), "who maps what was written finds it unchanged: %s %s" % (
        answer.stdout.strip(), answer.stderr.strip()[-100:]))
    report = recording.report()
    checks.that(status == 0 and report["complete"], "recording goes on to its end")
    checks.that(calls(report, job.pid) == COUNT, "what was seen before is reported: %d" % calls(report, job.pid))
    checks.that(any("is written to" in warning for warning in report["warnings"]), "the report says so")


def calls(report, pid):
    return sum(row["count"] for row in report["transitions"] if row["pid"] == pid and row["to"] == "simulator")


def container(folder):
    return harness.Process(["unshare", "--mount", "sh", "-c", ENTER, "sh", folder, harness.interpreter(), JOB])


def test_containers(checks, folder):
    """Each has a device of its own for the file, and the kernel has one file for both."""
    shutil.copyfile(FIRST, os.path.join(folder, "libfile.so"))
    with container(folder) as first, container(folder) as second:
        for job in first, second:
            if job.out.wait("ready", harness.PATIENCE_SECONDS) is None:
                checks.saw("no overlay file system here: " + job.err.text().strip())
                return
        recording = harness.Recording([first.pid, second.pid], roles=ROLES)
        work(first, COUNT)
        work(second, 2 * COUNT)
        status = recording.stop()
    report = recording.report()
    checks.that(status == 0, "recorded in two containers of one image")
    for job, count in (first, COUNT), (second, 2 * COUNT):
        counted = calls(report, job.pid)
        checks.that(counted == count, "each call is counted once: %d of %d" % (counted, count))
    checks.that(report["overhead"]["hits"] <= 2 * 3 * COUNT, "and costs once: %d hits" % report["overhead"]["hits"])


def main():
    harness.need_root_and_profiler()
    checks = harness.Checks()
    for test in test_written, test_containers:
        with tempfile.TemporaryDirectory(prefix="rls-files-") as folder:
            test(checks, folder)
    checks.finish()


main()
