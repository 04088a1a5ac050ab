#!/usr/bin/python3
"""Library files that are not what they seem: one that is written anew in place while it is probed, one that is seen in
two file systems, one that is not the one of its path any more, and one with two names."""

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
# The layer below is a file system of the container's own.
HIDDEN = """\
set -e
mount -t tmpfs rls /mnt
mkdir /mnt/lower /mnt/upper /mnt/work /mnt/seen
mount -t tmpfs rls /mnt/lower
cp "$1/libfile.so" /mnt/lower
mount -t overlay rls -o "lowerdir=/mnt/lower,upperdir=/mnt/upper,workdir=/mnt/work" /mnt/seen
exec "$2" "$3" /mnt/seen/libfile.so
"""
# Another root, as chroot and pivot_root make it; the library lies in an overlay below that.
ROOT = """\
set -e
mount -t tmpfs rls /mnt
mkdir /mnt/root /mnt/upper /mnt/work
mount --rbind / /mnt/root
mount -t tmpfs rls /mnt/root/srv
mkdir /mnt/root/srv/seen
mount -t overlay rls -o "lowerdir=$1,upperdir=/mnt/upper,workdir=/mnt/work" /mnt/root/srv/seen
exec chroot /mnt/root "$2" "$3" /srv/seen/libfile.so
"""
BOUND = """\
set -e
mount --bind "$1" /mnt
exec "$2" "$3" /mnt/libfile.so
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


def container(folder, script=ENTER):
    return harness.Process(["unshare", "--mount", "sh", "-c", script, "sh", folder, harness.interpreter(), JOB])


def plain(library):
    return harness.Process([harness.interpreter(), JOB, library])


def are_ready(checks, *jobs):
    for job in jobs:
        if job.out.wait("ready", harness.PATIENCE_SECONDS) is None:
            checks.saw("no overlay file system here: " + job.err.text().strip())
            return False
    return True


def check_once(checks, name, recording, *jobs):
    """Each job's calls are counted, each once: COUNT, 2 COUNT and so on."""
    for i, job in enumerate(jobs):
        work(job, (i + 1) * COUNT)
    status = recording.stop()
    checks.that(status == 0, "%s: recorded" % name)
    report = recording.report()
    for i, job in enumerate(jobs):
        counted = calls(report, job.pid)
        checks.that(counted == (i + 1) * COUNT, "%s: %d calls of %d" % (name, counted, (i + 1) * COUNT))
    return report


def test_containers(checks, folder):
    """Each has a device of its own for the file, and the kernel has one file for both."""
    shutil.copyfile(FIRST, os.path.join(folder, "libfile.so"))
    with container(folder) as first, container(folder) as second:
        for job in first, second:
            if job.out.wait("ready", harness.PATIENCE_SECONDS) is None:
                checks.saw("no overlay file system here: " + job.err.text().strip())
                return
        recording = harness.Recording([first.pid, second.pid], "--memory", "off", roles=ROLES)
        work(first, COUNT)
        work(second, 2 * COUNT)
        status = recording.stop()
    report = recording.report()
    checks.that(status == 0, "recorded in two containers of one image")
    for job, count in (first, COUNT), (second, 2 * COUNT):
        counted = calls(report, job.pid)
        checks.that(counted == count, "each call is counted once: %d of %d" % (counted, count))
    checks.that(report["overhead"]["hits"] <= 2 * 3 * COUNT, "and costs once: %d hits" % report["overhead"]["hits"])


def test_overlay_and_lower(checks, folder):
    """Beside the overlay, the layer below it, a bind mount of that and a chroot with an overlay of its own."""
    library = os.path.join(folder, "libfile.so")
    shutil.copyfile(FIRST, library)
    with container(folder) as over, plain(library) as below, container(folder, BOUND) as bound, \
            container(folder, ROOT) as other:
        if not are_ready(checks, over, below, bound, other):
            return
        jobs = over, below, bound, other
        check_once(checks, "overlay and lower", harness.Recording([job.pid for job in jobs], roles=ROLES), *jobs)
    with container(folder) as over, plain(library) as below:
        if are_ready(checks, over, below):
            recording = harness.Recording([below.pid, over.pid], roles=ROLES)
            check_once(checks, "lower and overlay", recording, below, over)


def test_copied_up(checks, folder):
    shutil.copyfile(FIRST, os.path.join(folder, "libfile.so"))
    for name, script, where in (("copied up", ENTER, "/mnt/seen"), ("copied up in a chroot", ROOT, "/mnt/root/srv/seen"),
                                ("copied up, layers of its own", HIDDEN, "/mnt/seen")):
        with container(folder, script) as job, container(folder, script) as after:
            if not are_ready(checks, job, after):
                return
            for copied in job, after:
                subprocess.run(["nsenter", "--mount", "--target", str(copied.pid), "chmod", "700",
                                where + "/libfile.so"], check=True)
            check_once(checks, name, harness.Recording([job.pid, after.pid], roles=ROLES), job, after)


def test_out_of_reach(checks, folder):
    """Nobody has a path to what is mapped: the warning names the library."""
    shutil.copyfile(FIRST, os.path.join(folder, "libfile.so"))
    with container(folder, HIDDEN) as job, plain(os.path.join(folder, "libfile.so")) as other:
        if not are_ready(checks, job, other):
            return
        for command in ["chmod", "700", "/mnt/seen/libfile.so"], ["umount", "-l", "/mnt/lower"]:
            subprocess.run(["nsenter", "--mount", "--target", str(job.pid), *command], check=True)
        recording = harness.Recording([other.pid, job.pid], roles=ROLES)
        work(job, COUNT)
        work(other, COUNT)
        status = recording.stop()
    report = recording.report()
    said = [warning for warning in report["warnings"] if "/mnt/seen/libfile.so" in warning and "copied up" in warning]
    checks.that(status == 0 and len(said) == 1, "what cannot be reached is named: %s" % report["warnings"])
    checks.that(calls(report, job.pid) == 0 and calls(report, other.pid) == COUNT, "the other is counted")


def test_names(checks, folder):
    """Hard links: one file, which is probed once; its role is the first name's, and a second role is reported."""
    for name in "a", "b":
        os.mkdir(os.path.join(folder, name))
    first, second = (os.path.join(folder, name, "libfile.so") for name in "ab")
    shutil.copyfile(FIRST, first)
    os.link(first, second)
    with plain(first) as one, plain(second) as two:
        are_ready(checks, one, two)
        report = check_once(checks, "hard links", harness.Recording([one.pid, two.pid], roles=ROLES), one, two)
        checks.that(not any("one file" in warning for warning in report["warnings"]), "one role needs no warning")
    with plain(first) as one, plain(second) as two:
        are_ready(checks, one, two)
        roles = ["--simulator", "*/a/libfile.so:sim_step", "--backend", "*/b/libfile.so:sim_step"]
        report = check_once(checks, "two roles", harness.Recording([one.pid, two.pid], roles=roles), one, two)
        said = [warning for warning in report["warnings"] if "one file" in warning]
        checks.that(len(said) == 1 and first in said[0] and second in said[0] and "backend" in said[0],
                    "two roles of one file are reported: %s" % report["warnings"])


def main():
    harness.need_root_and_profiler()
    checks = harness.Checks()
    for test in (test_written, test_containers, test_overlay_and_lower, test_copied_up, test_out_of_reach,
                 test_names):
        with tempfile.TemporaryDirectory(prefix="rls-files-") as folder:
            test(checks, folder)
    checks.finish()


main()
