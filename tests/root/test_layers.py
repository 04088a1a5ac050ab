#!/usr/bin/python3
"""Layers: test_layers.py TAG [CHECK...]. How often a job calls which of its layers is known, and every call is in the
trace, under its path; exceptions, threads and deep calls included."""

import collections
import json
import os
import sys
import tempfile

import harness

JOB = os.path.join(harness.HERE, "layers_job.py")
ALL = ["nested", "escapes", "recurses", "generates", "no_layers", "threads", "spins"]


class Job(harness.Process):
    def __init__(self, python, *arguments):
        super().__init__([python, JOB, *arguments])
        if not self.out.wait("ready", harness.PATIENCE_SECONDS):
            raise RuntimeError("the job is not ready: %s" % self.err.text())

    def do(self, *names):
        for name in names:
            self.say(name)
            answer = self.out.wait("did " + name, harness.PATIENCE_SECONDS)
            if not answer:
                raise RuntimeError("%s failed: %s" % (name, self.err.text()))
        return answer.split(None, 2)[2] if len(answer.split(None, 2)) > 2 else ""

    def truth(self):
        return json.loads(self.do("truth"))


def record(job, *names, arguments=("--layers", "auto", "--overhead-budget", "none")):
    with harness.Recording([job.pid], *arguments, roles=[]) as recording:
        job.do(*names)
        status = recording.stop()
        if status:
            raise RuntimeError("profiler ended with %d: %s" % (status, recording.err.text()))
        return recording.report(), harness.run("dump", recording.trace).stdout


def calls_of(report, pid):
    calls = collections.Counter()
    for row in report.get("layers", []):
        if row["pid"] == pid and row["id"] is not None:
            calls[row["path"]] += row["calls"]
    return dict(calls)


def check_rows(checks, report):
    """Of each thread the rows are its time; in no layer there are no calls."""
    wrong = []
    for thread in report["threads"]:
        rows = [row for row in report["layers"] if (row["pid"], row["tid"]) == (thread["pid"], thread["tid"])]
        sums = sum(row["self_ns"] for row in rows), sum(row["on_cpu_ns"] for row in rows)
        if sums != (thread["wall_ns"], thread["on_cpu_ns"]):
            wrong.append((thread, sums))
    checks.that(not wrong, "rows of layers sum to their threads' time, to the nanosecond: %s" % wrong)
    outside = [row for row in report["layers"] if row["id"] is None]
    checks.that(all(row["calls"] == 0 and row["path"] == "" and row["pass"] == "outside" for row in outside),
                "time in no layer has neither calls nor a path")


def check_edges(checks, dump):
    """As many ends as begins on each thread."""
    depth, wrong = {}, []
    for line in dump.splitlines():
        if not line.startswith('{"event":"layer",'):
            continue
        event = json.loads(line)
        before, now = depth.get(event["tid"], 0), event.get("depth", 0)
        if now != before + 1 if event.get("begun") else now >= before:
            wrong.append(event)
        depth[event["tid"]] = now
    checks.that(depth and not wrong and not any(depth.values()),
                "each begin is one deeper, each end less deep, and all are over: %s, %s" % (wrong[:3], depth))


def check_counts(checks, tag):
    """Every call, under its path."""
    with Job(harness.interpreter(tag)) as job:
        report, dump = record(job, *ALL)
        truth = job.truth()
    got = calls_of(report, job.pid)
    checks.that(got == truth["counts"], "calls by path: %s, expected %s" % (got, truth["counts"]))
    check_rows(checks, report)
    check_edges(checks, dump)
    spun = [row for row in report["layers"] if row["path"] == "Spinning"]
    self_ns = sum(row["self_ns"] for row in spun)
    checks.that(truth["within"] <= self_ns <= truth["around"], "what spins has its time: %d <= %d <= %d" % (
        truth["within"], self_ns, truth["around"]))
    inner = [row for row in report["layers"] if row["path"] == "fc"]
    checks.that(inner and all(row["cumulative_ns"] > row["self_ns"] for row in inner),
                "a layer's time with those it calls is more than its own")
    types = {row["path"]: row["type"] for row in report["layers"]}
    checks.that(types.get("caught.chain.bad") == "Raising" and types.get("Recursive") == "Recursive",
                "classes: %s" % types)
    checks.that(len({row["id"] for row in report["layers"] if row["path"] == "fc.a"}) == 2,
                "two models of one class have layers of their own")
    lost = [row for row in report["losses"] if row["dropped"]]
    checks.that(not lost, "nothing is lost: %s" % lost)


def check_deep(checks, tag):
    """Beyond 64, and beyond --layer-depth, calls are their caller's."""
    with Job(harness.interpreter(tag)) as job:
        report, dump = record(job, "deepens")
        got = calls_of(report, job.pid)
        checks.that(len(got) == 64 and all(calls == 1 for calls in got.values()), "64 calls of 80: %d" % len(got))
        check_edges(checks, dump)
        report, dump = record(job, "nested", arguments=("--layers", "auto", "--layer-depth", "2"))
        got = calls_of(report, job.pid)
        checks.that(got == {"Chain": 100, "fc": 100, "shared": 200, "caught": 100, "last": 100},
                    "two deep: %s" % got)
        check_rows(checks, report)


def check_forks(checks, tag):
    """A child calls layers of its own, with the same names."""
    with Job(harness.interpreter(tag)) as job:
        report, _ = record(job, "nested", "forks")
        counts = job.truth()["counts"]
    children = {row["pid"] for row in report["layers"] if row["id"] is not None} - {job.pid}
    got = calls_of(report, children.pop()) if children else {}
    expected = {path: calls * 30 // 100 for path, calls in counts.items() if path != "forked"}
    checks.that(got == expected and not children, "calls of the child: %s, expected %s" % (got, expected))


def check_run(checks, tag):
    """A program that is run, from when its interpreter is probed on; forms of the report."""
    with tempfile.TemporaryDirectory(prefix="rls-") as folder:
        trace = os.path.join(folder, "trace")
        with harness.Process([harness.BINARY, "run", "-v", "--layers", "auto", "-o", trace, "--report", os.devnull,
                              "--", harness.interpreter(tag), JOB]) as job:
            probed = harness.eventually(lambda: any("calls of layers at" in line for line in job.err.seen))
            job.say("nested")
            job.out.wait("did nested", harness.PATIENCE_SECONDS)
            # Names are read while the process exists.
            harness.eventually(lambda: any(line.endswith(" is last (Leaf)\n") for line in job.err.seen))
            job.child.stdin.close()
            status = job.wait()
        report = json.loads(harness.run("report", "--format", "json", "--by", "layer", trace).stdout)
        got = {row["path"]: row["calls"] for row in report.get("layers", []) if row["id"] is not None}
        checks.that(probed and not status and got.get("Chain") == 100 and got.get("caught.chain.bad") == 100 and
                    got.get("shared") == 200, "run: %s, %s, %s" % (probed, status, got))
        text = harness.run("report", "--by", "layer", trace).stdout
        checks.that("fc.a (Leaf)" in text and "(outside layers)" in text, "in the text: %s" % text)
        table = harness.run("report", "--by", "layer-type", "--format", "csv", trace).stdout
        checks.that("Leaf" in table and table.startswith("pid,"), "in CSV: %s" % table)


def check_torch(checks, tag):
    """PyTorch's own modules."""
    python = os.environ.get("RLS_TORCH_PYTHON", "")
    if tag != "system" or not os.access(python, os.X_OK):
        checks.saw("no PyTorch to try")
        return
    with Job(python, "torch") as job:
        report, dump = record(job, *ALL)
        truth = job.truth()
    got = calls_of(report, job.pid)
    checks.that(got == truth["counts"], "calls of PyTorch's: %s, expected %s" % (got, truth["counts"]))
    check_rows(checks, report)
    check_edges(checks, dump)


def check_off(checks, tag):
    """Without --layers, and words that are none."""
    with Job(harness.interpreter(tag)) as job:
        for arguments in ("--layers", "off"), ():
            report, dump = record(job, "nested", arguments=arguments)
            checks.that("layers" not in report and '"event":"layer' not in dump, "%s: nothing is recorded" % (
                " ".join(arguments) or "by default"))
    for arguments, words in (("--layers", "all"), "auto or off"), (("--layer-depth", "0"), "from 1 to 64"):
        done = harness.run("attach", *arguments, "--pid", str(os.getpid()))
        checks.that(done.returncode == 2 and words in done.stderr, "%s: %d, %s" % (
            " ".join(arguments), done.returncode, done.stderr.strip()))


def main():
    harness.need_root_and_profiler()
    tag = sys.argv[1]
    checks = harness.Checks()
    for check in check_counts, check_deep, check_forks, check_run, check_torch, check_off:
        if not sys.argv[2:] or check.__name__[6:] in sys.argv[2:]:
            print(check.__doc__.splitlines()[0], flush=True)
            check(checks, tag)
    checks.finish()


if __name__ == "__main__":
    main()
