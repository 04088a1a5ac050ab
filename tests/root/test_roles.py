#!/usr/bin/python3
"""Libraries of known roles are traced as they are, without any option: a stand-in for jaxlib, whose methods lie
in another library than its extension module, and which calls Python back from a thread of its own."""

import os

import harness

COMPUTE, HERE, POOL, CALLS = 500, 50, 40, 10
SPIN_NS = 200000


def python_ns(report, pid, tid):
    return sum(row["on_cpu_ns"] for row in report["breakdown"]
               if row["pid"] == pid and row["tid"] == tid and row["category"] == "python")


def main():
    harness.need_root_and_profiler()
    checks = harness.Checks()
    if not os.path.isdir(os.path.join(harness.modules(), "jaxlib")):
        harness.skip("no nanobind, so no stand-in for jaxlib")
    with harness.Target("jaxlike.py") as target:
        with harness.Recording([target.pid], roles=[]) as recording:
            known = target.ask(compute=COMPUTE, here=HERE, pool=POOL, calls=CALLS)[0]
            status = recording.stop()
            report = recording.report()
    checks.that(status == 0, "profiler ended with %d" % status)
    libraries = {os.path.basename(library["path"]): library for library in report["processes"][0]["libraries"]}
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
    checks.that(not report["warnings"], "and nothing is warned of: %s" % report["warnings"])
    harness.check_sums(checks, report)
    harness.check_lossless(checks, report)
    checks.finish()


if __name__ == "__main__":
    main()
