#!/usr/bin/python3
"""Memory by line: test_memory.py TAG [CHECK...]. What the job allocates is known, and every byte is in
the trace, on its line, in its operation."""

import collections
import json
import os
import sys

import harness

JOB = os.path.join(harness.HERE, "memory_job.py")
STANDIN = os.environ.get("RLS_STANDIN_C10", "")
WINDOWED = "they are counted in windows"
KEY = ["pid", "file", "line", "function", "source", "device", "operation", "phase"]


def line_of(comment):
    with open(JOB) as stream:
        return next(i for i, line in enumerate(stream, 1) if line.rstrip().endswith("# " + comment))


class Job(harness.Process):
    def __init__(self, python, *arguments):
        super().__init__([python, JOB, STANDIN, *arguments],
                         env=dict(os.environ, PYTHONPATH=os.environ.get("RLS_PYTHONPATH", "")))
        ready = self.out.wait("ready", harness.PATIENCE_SECONDS)
        if not ready:
            raise RuntimeError("the job is not ready: %s" % self.err.text())
        self.has = ready.split()[1:]

    def do(self, *names):
        for name in names:
            self.say(name)
            if not self.out.wait("did " + name, harness.PATIENCE_SECONDS):
                raise RuntimeError("%s failed: %s" % (name, self.err.text()))


def events(trace):
    """Of the trace: all that is about memory, and its warnings and losses."""
    text = harness.run("dump", trace).stdout
    kinds = '{"event":"memory_', '{"event":"copy_line', '{"event":"warning', '{"event":"loss', '{"event":"process_end'
    return [json.loads(line) for line in text.splitlines() if line.startswith(kinds)]


def rows(found):
    """Each row's last event."""
    last = {}
    for event in found:
        if event["event"] == "memory_line":
            last[tuple(event.get(key) for key in KEY)] = event
    return list(last.values())


def record(job, *names, arguments=("--memory", "all"), then=None):
    with harness.Recording([job.pid], *arguments, roles=[]) as recording:
        job.do(*names)
        if then:
            then(recording)
        status = recording.stop()
        if status:
            raise RuntimeError("profiler ended with %d: %s" % (status, recording.err.text()))
        return events(recording.trace)


def of_line(found, comment, **wanted):
    line = line_of(comment)
    return [row for row in rows(found) if row.get("line") == line and row.get("file") == JOB and
            all(row.get(key) == value for key, value in wanted.items())]


def check_line(checks, found, comment, source, allocs, alloc_bytes, frees, freed_bytes, peak_bytes=None, **wanted):
    """The line has one row, which is the truth."""
    got = of_line(found, comment, source=source, **wanted)
    figures = [(row["allocs"], row["alloc_bytes"], row["frees"], row["freed_bytes"]) for row in got]
    checks.that(figures == [(allocs, alloc_bytes, frees, freed_bytes)], "%s: %d of %d bytes, %d freed of %d: %s" % (
        comment, allocs, alloc_bytes, frees, freed_bytes, figures))
    if peak_bytes is not None and got:
        checks.that(got[0]["peak_bytes"] == peak_bytes, "%s: at most %d lived: %d" % (
            comment, peak_bytes, got[0]["peak_bytes"]))
    return got[0] if got else None


def check_ages(checks, found, row):
    """Blocks of both histograms are those of the row."""
    if not row:
        return
    last = {}
    for event in found:
        if event["event"] == "memory_ages" and all(event.get(key) == row.get(key) for key in KEY):
            last[event["freed"], event.get("from_ns", 0)] = event
    counts = collections.Counter()
    for (freed, _), event in last.items():
        counts[freed] += event["count"]
    checks.that(counts[True] == row["frees"] and counts[False] == row["allocs"] - row["frees"],
                "ages of %d freed and %d living blocks: %s" % (
                    row["frees"], row["allocs"] - row["frees"], dict(counts)))


def check_exact(checks, tag):
    """Tensors, arrays and blocks of GPUs: each line's sums, and nothing else."""
    with Job(harness.interpreter(tag)) as job:
        found = record(job, "kept_tensors", "temporary_tensors", "reused", "nothing", "free_early", "arrays",
                       "two_places", "devices", "threads")
    total = sum(1000 + i for i in range(100))
    row = check_line(checks, found, "kept_tensors", "tensor", 100, total, 0, 0, total, function="kept_tensors")
    check_ages(checks, found, row)
    row = check_line(checks, found, "temporary_tensors", "tensor", 200, 200 << 20, 200, 200 << 20, 1 << 20)
    check_ages(checks, found, row)
    check_line(checks, found, "reused", "tensor", 10, 40960, 9, 9 * 4096)
    row = check_line(checks, found, "arrays", "array", 60, 60 << 33, 20, 20 << 33, 60 << 33)
    check_ages(checks, found, row)
    check_line(checks, found, "two_places", "array", 2, 1500, 1, 1000)
    check_line(checks, found, "devices", "gpu", 8, 8 * 512, 3, 3 * 512, 8 * 512, device=3)
    check_line(checks, found, "threads", "tensor", 8000, 8000 * 16, 8000, 8000 * 16)
    checks.that(not of_line(found, "early"), "what lived before the recording is not in it")
    others = [row for row in rows(found) if row.get("file") != JOB and row["source"] in ("tensor", "gpu")]
    checks.that(not others, "no tensors anywhere else: %s" % others)
    used = [event for event in found if event["event"] == "memory_use" and event.get("gpu")]
    checks.that(used and used[-1]["device"] == 3 and used[-1]["allocated_bytes"] == 5 * 512 and
                used[-1]["reserved_bytes"] == 1 << 21 and used[-1].get("out_of_memory"),
                "the device's own account: %s" % used[-1:])
    lost = [event for event in found if event["event"] == "loss" and event["dropped"]]
    checks.that(not lost, "nothing is lost: %s" % lost)


def check_operations(checks, tag):
    """Births belong to the operation and phase of their instant; helpers have their process's."""
    with Job(harness.interpreter(tag)) as job:
        if "rlscope" not in job.has:
            checks.saw("no rlscope package for this Python")
            return
        found = record(job, "operations")
    for operation, blocks in (None, 70), ("outer", 70), ("inner", 70):
        check_line(checks, found, "allocate", "array", blocks, blocks * 10, 0, 0, operation=operation, phase="first")


def check_lives(checks, tag):
    """Children, and programs that are executed."""
    with Job(harness.interpreter(tag)) as job:
        found = record(job, "forked", "executed")
        pid = job.pid
    check_line(checks, found, "forked by the parent", "tensor", 1, 7000, 0, 0, pid=pid)
    check_line(checks, found, "forked", "tensor", 1, 70, 1, 70)
    check_line(checks, found, "forked again", "tensor", 1, 700, 0, 0)
    child = of_line(found, "forked")
    checks.that(child and child[0]["pid"] != pid, "a child's blocks are its own")
    check_line(checks, found, "executed", "tensor", 1, 100, 0, 0)
    row = check_line(checks, found, "after_exec", "tensor", 1, 200, 1, 200)
    checks.that(row and row["pid"] == of_line(found, "executed")[0]["pid"], "that is one process")
    ends = {event["pid"]: event["time_ns"] for event in found if event["event"] == "process_end"}
    late = [event for event in found if event["event"].startswith("memory") and
            event["time_ns"] > ends.get(event["pid"], event["time_ns"])]
    checks.that(not late, "nothing is reported after its process's end: %s" % late[:1])


def check_end(checks, tag):
    """What the interpreter frees when it ends was kept until the end."""
    for end in "finish", "leave":
        with Job(harness.interpreter(tag)) as job:
            with harness.Recording([job.pid], "--memory", "all", roles=[]) as recording:
                job.do("kept_tensors")
                job.say(end)
                status = job.wait(), recording.wait()
                found = events(recording.trace)
        checks.that(status == (0, 0), "%s: the job ends, and so does the recording: %s" % (end, status))
        check_line(checks, found, "finish", "array", 1, 1000, 0, 0)
        check_line(checks, found, "kept_tensors", "tensor", 100, sum(1000 + i for i in range(100)), 0, 0)


def check_libraries(checks, tag):
    """NumPy and PyTorch themselves."""
    with Job(harness.interpreter(tag)) as job:
        if "numpy" not in job.has:
            checks.saw("no NumPy for this Python")
            return
        found = record(job, "numpy_arrays")
    row = check_line(checks, found, "numpy_arrays", "array", 50, 50 << 17, 20, 20 << 17)
    check_ages(checks, found, row)
    # Where Python has replaced the instruction by another meanwhile, both are one only when user space has seen it.
    checks.that(row and 30 << 17 <= row["peak_bytes"] <= 50 << 17, "of 50 arrays %d bytes lived at once" % (
        row["peak_bytes"] if row else 0))
    check_line(checks, found, "numpy_temporaries", "array", 50, 50 << 18, 50, 50 << 18)


def copies_of(found, comment):
    """The line's copies and bytes, of its last event."""
    line = line_of(comment)
    last = {}
    for event in found:
        if event["event"] == "copy_line" and event.get("file") == JOB and event.get("line") == line:
            last[tuple(event.get(key) for key in KEY + ["kind"])] = event
    kinds = {event["kind"] for event in last.values()}
    return kinds, sum(event["copies"] for event in last.values()), sum(event["bytes"] for event in last.values())


def check_copies_of(checks, found, comment, copies, each):
    got = copies_of(found, comment)
    wanted = ({"h2h"} if copies else set(), copies, copies * each)
    checks.that(got == wanted, "%s: %d copies of %d bytes: %s" % (comment, copies, each, got))


MIB = 1 << 20


def unavailable(found):
    """Why the C library's copies are not counted; None: they are."""
    return next((event["text"] for event in found if event["event"] == "warning" and
                 "libc.so.6 are not counted" in event["text"]), None)


def check_copies(checks, tag):
    """What lines copy in main memory, each byte once."""
    with Job(harness.interpreter(tag)) as job:
        numpy = "numpy" in job.has
        found = record(job, "standin_copies", "byte_copies", *(["numpy_copies"] if numpy else []))
    reason = unavailable(found)
    for comment, copies, each in ("moves all", 2, 131072), ("moves its end", 2, 131072), ("to a GPU", 0, 0), \
            ("itself", 0, 0), ("before a move", 2, 131072), ("not one", 0, 0):
        check_copies_of(checks, found, comment, copies, each)
    elements = [1, 2, 2, 8, 64, 1024, 2048, 32768]
    checks.that(copies_of(found, "of 0 to 7 dimensions") == ({"h2h"}, 16, 2 * 4 * sum(elements)),
                "tensors of 0 to 7 dimensions: %s" % (copies_of(found, "of 0 to 7 dimensions"),))
    checks.that(any(event["event"] == "loss" and event["buffer"] == "memory_copies" and event["dropped"] == 1
                    for event in found), "a tensor that cannot be read is counted as lost")
    checks.that(any("copies of tensors could not be counted" in event.get("text", "") for event in found),
                "and there is a warning")
    if reason:
        checks.saw("the C library's copies: %s" % reason)
        return
    checks.that(copies_of(found, "moves something else") == ({"h2h"}, 4, 2 * (131072 + 65536)),
                "a move to elsewhere counts: %s" % (copies_of(found, "moves something else"),))
    for comment, copies, each in ("after it", 2, 65536), ("a slice", 10, MIB - 1), ("of a view", 10, MIB), \
            ("to an array", 10, MIB), ("a sum", 20, MIB), ("into a view", 10, MIB), ("a short one", 0, 0):
        check_copies_of(checks, found, comment, copies, each)
    if numpy:
        for comment, copies in ("an array", 10), ("into another", 10), ("to bytes", 10), ("another type", 0):
            check_copies_of(checks, found, comment, copies, MIB)


def check_malloc_of(checks, found, comment, allocs, each):
    """The line's blocks that only the C library knows; it rounds each up."""
    got = [(row["allocs"], row["alloc_bytes"]) for row in of_line(found, comment, source="malloc")]
    allocs_got, bytes_got = got[0] if got else (0, 0)
    checks.that(allocs_got == allocs and abs(bytes_got - allocs * each) <= 64 * allocs,
                "%s: %d blocks of about %d bytes in malloc: %s" % (comment, allocs, each, got))


def check_malloc(checks, tag):
    """What the C library gives and nobody reports."""
    with Job(harness.interpreter(tag)) as job:
        numpy = "numpy" in job.has
        found = record(job, "native_blocks", *(["native_arrays"] if numpy else []))
    reason = unavailable(found)
    if reason:
        checks.saw("the C library's blocks: %s" % reason)
        checks.that(not [row for row in rows(found) if row["source"] == "malloc"], "and there are none")
        return
    for comment, allocs, each in ("no tensor", 10, 300 << 10), ("a small block", 10, 1500), ("too small", 0, 0):
        check_malloc_of(checks, found, comment, allocs, each)
    # The list grows too.
    row = (of_line(found, "kept bytes", source="malloc") or [{}])[0]
    checks.that(0 <= row.get("alloc_bytes", 0) - 10 * MIB < 4096, "kept bytes, and a list: %s" % row)
    checks.that(all(not row["frees"] and not row["freed_bytes"] for row in rows(found) if row["source"] == "malloc"),
                "of their frees nothing is known")
    if numpy:
        for comment, each in ("an array's block", MIB), ("a small array's", 3000):
            check_line(checks, found, comment, "array", 10, 10 * each, 10, 10 * each)
            check_malloc_of(checks, found, comment, 0, 0)


def check_rungs(checks, tag):
    """Within a budget, only blocks that are large enough; a warning says so."""
    with Job(harness.interpreter(tag)) as job:
        job.say("endless_blocks")
        with harness.Recording([job.pid], "--overhead-budget", "1", "--memory", "auto", "-v",
                               roles=[]) as recording:
            went = harness.eventually(lambda: any("malloc: rung 1 after 0" in line or "are not counted" in line
                                                  for line in recording.err.seen))
            recording.stop()
            found = events(recording.trace)
    if unavailable(found):
        checks.saw("the C library's blocks: %s" % unavailable(found))
        return
    checks.that(went, "a rung that is too expensive is left")
    said = [event["text"] for event in found if event["event"] == "warning"]
    checks.that(any("only the C library knows of" in text for text in said),
                "it is said which blocks are counted: %s" % said)
    checks.that(not any("to count all" in text for text in said),
                "and what allocators report is counted on: %s" % said)


def check_torch(checks, tag):
    """PyTorch itself."""
    python = os.environ.get("RLS_TORCH_PYTHON", "")
    if tag != "system" or not python or harness.subprocess.run([python, "-c", "import torch"]).returncode:
        checks.saw("no PyTorch")
        return
    with Job(python, "torch") as job:
        found = record(job, "torch_tensors", "torch_copies", "native_tensors")
    check_line(checks, found, "torch_tensors", "tensor", 50, 50 << 17, 0, 0, 50 << 17)
    check_line(checks, found, "torch_temporaries", "tensor", 50, 50 << 18, 50, 50 << 18)
    for comment, copies, each in ("a clone", 10, MIB), ("copy_", 10, MIB), ("to double", 10, 2 * MIB), \
            ("a transpose", 10, MIB), ("of an array", 10, MIB), ("an array's cast", 10, MIB // 2), \
            ("of 7 dimensions", 10, 8 << 18), ("onto itself", 0, 0), ("none", 0, 0):
        check_copies_of(checks, found, comment, copies, each)
    if not unavailable(found):
        check_copies_of(checks, found, "its memory", 10, MIB)
    for comment, each in ("a tensor's block", MIB), ("a small tensor's", 3000):
        check_line(checks, found, comment, "tensor", 10, 10 * each, 10, 10 * each)
        check_malloc_of(checks, found, comment, 0, 0)


def used_of(found, pid):
    return [event for event in found if event["event"] == "memory_use" and event["pid"] == pid and
            not event.get("gpu")]


def check_use(checks, tag):
    """The process's own memory over time, and its limit."""
    with Job(harness.interpreter(tag)) as job:
        with open("/proc/%d/statm" % job.pid) as stream:
            before = int(stream.read().split()[1]) * os.sysconf("SC_PAGESIZE")
        found = record(job, "grow", then=lambda recording: harness.time.sleep(0.5))
        used = used_of(found, job.pid)
    rss = [event["rss_bytes"] for event in used]
    checks.that(rss and rss[-1] - before >= 60 << 20, "64 MiB more than %d: %s" % (before, rss))
    checks.that(all(0 < event["used_bytes"] <= event["limit_bytes"] for event in used),
                "within a limit: %s" % used[-1:])


def check_budget(checks, tag):
    """What costs more than its part of the budget is counted in windows; what costs little goes on as before."""
    with Job(harness.interpreter(tag)) as job:
        job.say("endless")
        with harness.Recording([job.pid], "--overhead-budget", "10", "--memory", "auto", "-v", roles=[]) as recording:
            warned = harness.eventually(lambda: any(WINDOWED in line for line in recording.err.seen))
            rows_now = harness.eventually(lambda: [row for row in rows(events(recording.trace)) if
                                                   row["method"] == "scaled" and row.get("error_bytes")])
            status = recording.stop()
            found = events(recording.trace)
            report = recording.report()
    checks.that(warned and not status and rows_now, "windows are said, and open: %s" % [
        line for line in recording.err.seen if "memory" in line])
    checks.that(any(WINDOWED in event.get("text", "") for event in found), "and the trace says so")
    checks.that(any(WINDOWED in text for text in report["warnings"]), "and the report")
    by_line = {row["line"]: row for row in report["memory_lines"] if row["file"] == JOB}
    row = by_line.get(line_of("endless"))
    checks.that(row and row["method"] == "scaled" and row["error_bytes"] > 0 and row["alloc_bytes"] > 0,
                "an estimate with its error: %s" % row)
    unknown = "freed_bytes", "growth_bytes", "live_bytes", "peak_bytes", "leak_score", "growth_bytes_per_s"
    checks.that(row and all(row[name] is None for name in unknown), "what needs frees is not known: %s" % row)
    row = by_line.get(line_of("endless kept"))
    checks.that(row and row["method"] == "counted" and row["allocs"] == row["live_bytes"] / 1000 > 0,
                "rare blocks of another source are counted, every one: %s" % row)


def check_off(checks, tag):
    """--memory off; the default, which is auto; words that are none."""
    with Job(harness.interpreter(tag)) as job:
        found = record(job, "kept_tensors", arguments=["--memory", "off"])
        checks.that(not [event for event in found if event["event"].startswith(("memory", "copy"))], "off: nothing is recorded")
    with Job(harness.interpreter(tag)) as job:
        found = record(job, "kept_tensors", arguments=[])
        check_line(checks, found, "kept_tensors", "tensor", 100, sum(1000 + i for i in range(100)), 0, 0)
    done = harness.run("attach", "--memory", "some", "--pid", str(os.getpid()))
    checks.that(done.returncode == 2 and "auto, off or all" in done.stderr, "a bad word: %d, %s" % (
        done.returncode, done.stderr.strip()))


def main():
    harness.need_root_and_profiler()
    tag = sys.argv[1]
    checks = harness.Checks()
    for check in check_exact, check_operations, check_lives, check_end, check_libraries, check_copies, check_malloc, check_rungs, \
            check_torch, check_use, check_budget, check_off:
        if not sys.argv[2:] or check.__name__[6:] in sys.argv[2:]:
            print(check.__doc__.splitlines()[0] if check.__doc__ else check.__name__, flush=True)
            check(checks, tag)
    checks.finish()


if __name__ == "__main__":
    main()
