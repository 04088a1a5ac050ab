#!/usr/bin/python3
"""Libraries of known roles are traced as they are, without any option: a stand-in for jaxlib, whose methods lie
in another library than its extension module, and which calls Python back from a thread of its own. What runs and
is not traced is named: a library of a role without a probed call, and one without a role."""

import os
import re

import harness

COMPUTE, HERE, POOL, CALLS = 500, 50, 40, 10
SPIN_NS = 200000
RUN_SECONDS = 2


def python_ns(report, pid, tid):
    return sum(row["on_cpu_ns"] for row in report["breakdown"]
               if row["pid"] == pid and row["tid"] == tid and row["category"] == "python")


def of_coverage(report):
    return [warning for warning in report["warnings"] if not warning.startswith("samples")]


def check_named(checks, what, run, words, *roles):
    """One library runs, and the one warning about it has these words, on stderr too."""
    with harness.Target("jaxlike.py") as target:
        with harness.Recording([target.pid], roles=roles) as recording:
            target.ask(run=RUN_SECONDS, of=run)
            status = recording.stop()
            report = recording.report()
            stderr = recording.err.text()
    checks.that(status == 0, "%s: profiler ended with %d" % (what, status))
    said = [warning for warning in of_coverage(report) if all(word in warning for word in words)]
    checks.that(len(said) == 1, "%s is named in %s" % (what, report["warnings"]))
    checks.that(said and said[0] in stderr, "%s is named on stderr" % what)
    rows = [row for row in report["sampled_libraries"] if words[0] in row["path"]]
    checks.that(len(rows) == 1 and rows[0]["percent"] > 50, "%s has one row: %s" % (what, rows))


def check_traced(checks, *arguments):
    with harness.Target("jaxlike.py", arguments=arguments) as target:
        with harness.Recording([target.pid], roles=[]) as recording:
            known = target.ask(compute=COMPUTE, here=HERE, pool=POOL, calls=CALLS)[0]
            status = recording.stop()
            report = recording.report()
    checks.that(status == 0, "profiler ended with %d" % status)
    libraries = {re.split("[/:]", library["path"])[-1]: library for library in report["processes"][0]["libraries"]}
    common = libraries.get("libjax_common.so", {})
    checks.that(common.get("role") == "backend" and common.get("sites", 0) > 0,
                "libjax_common.so is a backend with sites: %s" % common)
    flows = harness.flows(report)
    entries, here, pool = COMPUTE + HERE + POOL, HERE * CALLS, POOL * CALLS
    of_main = flows[target.pid, known["main"]]
    checks.that(of_main["python->backend"] == entries + here, "calls and returns into it: %d of %d" % (
        of_main["python->backend"], entries + here))
    checks.that(of_main["backend->python"] == entries + here, "returns and calls out of it: %d of %d" % (
        of_main["backend->python"], entries + here))
    of_pool = flows[target.pid, known["pool"]]
    checks.that(of_pool["backend->python"] == pool, "calls of its own thread into Python: %d of %d" % (
        of_pool["backend->python"], pool))
    checks.that(of_pool["python->backend"] == pool, "and returns of them: %d" % of_pool["python->backend"])
    for name, tid, calls in [("the caller's", known["main"], here), ("its own", known["pool"], pool)]:
        found = python_ns(report, target.pid, tid)
        checks.that(found >= calls * SPIN_NS, "what Python ran on %s thread is python: %d of %d ms" % (
            name, found // 10**6, calls * SPIN_NS // 10**6))
    checks.that(not of_coverage(report), "and nothing is warned of: %s" % report["warnings"])
    harness.check_sums(checks, report)
    harness.check_lossless(checks, report)


def main():
    harness.need_root_and_profiler()
    checks = harness.Checks()
    if not os.path.isdir(os.path.join(harness.modules(), "jaxlib")):
        harness.skip("no nanobind, so no stand-in for jaxlib")
    check_traced(checks)
    check_traced(checks, "--from-memory")
    # A role that is given to no function of it: as jaxlib was when its methods moved.
    check_named(checks, "a library without a probed call", "compute",
                ["libjax_common.so", "no call into a library of the role backend was seen"],
                "--backend", "libjax_common.so:nothing")
    check_named(checks, "a library without a role", "plain",
                ["truthplain.", "without a role", "--native 'truthplain*.so'"])
    checks.finish()


if __name__ == "__main__":
    main()
