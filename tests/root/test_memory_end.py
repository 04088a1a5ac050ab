#!/usr/bin/python3
"""A cgroup's memory ends: test_memory_end.py TAG. The report says so, names the line that has it, and a report from before
says when it will end."""

import contextlib
import os
import signal
import sys

import harness

JOB = os.path.join(harness.HERE, "memory_end_job.py")
LIMIT = 300 << 20
RATE = 8 << 20


def line_of(comment):
    with open(JOB) as stream:
        return next(i for i, line in enumerate(stream, 1) if line.rstrip().endswith("# " + comment))


def write(path, text):
    with open(path, "w") as stream:
        stream.write(text)


def hierarchies():
    """(Folder of a memory hierarchy, its file of the limit), where such are mounted."""
    with open("/proc/self/mountinfo") as stream:
        for line in stream:
            fields, _, rest = line.partition(" - ")
            folder, (kind, _, options) = fields.split()[4], rest.split()[:3]
            if kind == "cgroup2" and os.path.exists(os.path.join(folder, "cgroup.controllers")):
                with open(os.path.join(folder, "cgroup.controllers")) as controllers:
                    if "memory" in controllers.read().split():
                        yield folder, "memory.max"
            if kind == "cgroup" and "memory" in options.split(","):
                yield folder, "memory.limit_in_bytes"


@contextlib.contextmanager
def limited_group():
    """The folder of a cgroup with the limit and no swap."""
    reason = "no hierarchy of cgroups has memory here"
    for folder, name in hierarchies():
        group = os.path.join(folder, "rlscope-test-%d" % os.getpid())
        try:
            if name == "memory.max":
                write(os.path.join(folder, "cgroup.subtree_control"), "+memory")
            os.mkdir(group)
        except OSError as error:
            reason = "no cgroup can be made in %s: %s" % (folder, error)
            continue
        try:
            write(os.path.join(group, name), str(LIMIT))
        except OSError as error:
            os.rmdir(group)
            reason = "no limit can be set in %s: %s" % (folder, error)
            continue
        for swap, value in ("memory.swap.max", "0"), ("memory.memsw.limit_in_bytes", str(LIMIT)):
            with contextlib.suppress(OSError):
                if os.path.exists(os.path.join(group, swap)):
                    write(os.path.join(group, swap), value)
        try:
            yield group
        finally:
            harness.eventually(lambda: not open(os.path.join(group, "cgroup.procs")).read(), 30)
            with contextlib.suppress(OSError):
                os.rmdir(group)
        return
    harness.skip(reason)


class Job(harness.Process):
    def __init__(self, python, group, *arguments):
        super().__init__([python, JOB, *map(str, arguments)])
        if not self.out.wait("ready", harness.PATIENCE_SECONDS):
            raise RuntimeError("the job is not ready: %s" % self.err.text())
        write(os.path.join(group, "cgroup.procs"), str(self.pid))


def main_memory(report, pid):
    return next((row for row in report["memory"] if row["pid"] == pid and row["device"] < 0), None)


def check_end(checks, python, group):
    """The kernel ends it: the report has what lived then, by line."""
    with Job(python, group, 1 << 40) as job:
        with harness.Recording([job.pid], roles=[]) as recording:
            job.say("")
            status = job.wait(), recording.wait()
            report = recording.report()
            text = harness.run("report", "--memory", recording.trace).stdout
    checks.that(status == (-signal.SIGKILL, 0), "the job is killed, the recording ends: %s" % (status,))
    row = main_memory(report, job.pid)
    checks.that(row and row["out_of_memory"] is True, "the report says that it ran out of memory: %s" % row)
    checks.that(row and row["limit_bytes"] == LIMIT, "and of which limit")
    lines = sorted(report["memory_lines"], key=lambda line: -(line["live_bytes"] or 0))
    checks.that(lines and lines[0]["line"] == line_of("keep") and lines[0]["file"] == JOB and
                0.6 * LIMIT < lines[0]["live_bytes"] <= LIMIT, "the line that has it: %s" % lines[:1])
    checks.that(any(line["line"] == line_of("use") and not line["live_bytes"] for line in lines),
                "one that has nothing is there too, without live bytes")
    sentence = "process %d was ended by the kernel for lack of memory" % job.pid
    checks.that(sentence in report["warnings"] and any(sentence in line for line in recording.err.seen), sentence)
    checks.that("out of memory" in text, "the text says so too")


def check_prediction(checks, python, group):
    """Half of it is used: the time that is left is predicted."""
    with Job(python, group, RATE, LIMIT // 2) as job:
        with harness.Recording([job.pid], roles=[]) as recording:
            job.say("")
            grown = job.out.wait("grown", harness.PATIENCE_SECONDS)
            status = recording.stop()
            report = recording.report()
    row = main_memory(report, job.pid)
    checks.that(grown and not status and row and not row["out_of_memory"], "it goes on: %s" % row)
    left = (LIMIT - (row["rss_end_bytes"] if row else 0)) / RATE
    checks.that(row and row["limit_in_s"] and 0.7 * left < row["limit_in_s"] < 1.4 * left,
                "%.1f s are left, about: %s" % (left, row and row["limit_in_s"]))


def main():
    harness.need_root_and_profiler()
    checks = harness.Checks()
    python = harness.interpreter(sys.argv[1])
    with limited_group() as group:
        checks.saw("in %s" % group)
        check_end(checks, python, group)
        check_prediction(checks, python, group)
    checks.finish()


if __name__ == "__main__":
    main()
