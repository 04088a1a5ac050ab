#!/usr/bin/python3
"""Exact counts: test_exact.py TAG. Transitions of every kind, thread by thread, equal the truth."""

import sys

import figures
import harness


def check_without_cython(checks, tag):
    """Cython's module has the interpreter's own entry probed, which sees every way into Python. Without it
    each is seen by its own site."""
    with harness.Target("exact.py", tag, ["--libraries", harness.TRUTH, "--without", "truthcy"]) as target:
        with harness.Recording([target.pid]) as recording:
            rows = target.ask(do="kinds", count=1000, names=[
                "nanobind.callback", "nanobind.translated", "pybind11.callback", "callbacks.call_object",
                "loaded.loaded_either", "loaded.loaded_either_jump", "loaded.thrown"])
            recording.stop()
            report = recording.report()
    harness.check_truth(checks, report, rows)
    harness.check_lossless(checks, report)


def main():
    tag = sys.argv[1]
    harness.need_root_and_profiler()
    checks = harness.Checks()
    with harness.Target("exact.py", tag, ["--libraries", harness.TRUTH]) as target:
        # How often the interpreter allocates is not the same in two runs; hits are compared below.
        with harness.Recording([target.pid], "--memory", "off") as recording:
            rows = target.ask(do="kinds", count=1000)
            mixed = target.ask(do="mix", threads=8, count=100)
            status = recording.stop()
            checks.that(status == 0, "profiler ended with %d" % status)
            report = recording.report()
    checks.saw("%s: %d kinds, recording after %.2f s, report after %.2f s" % (
        tag, len(rows), recording.recording_seconds, recording.stop_seconds))
    harness.check_truth(checks, report, rows)
    harness.check_truth(checks, report, mixed)
    harness.check_lossless(checks, report)
    harness.check_sums(checks, report)
    process = report["processes"][0]
    version = {"system": "3."}.get(tag.split("-")[0], tag.split("-")[0])
    checks.that(process["python"].startswith(version), "python is %r" % process["python"])
    figures.check_same(checks, report, rows + mixed)
    if tag == "system":
        check_without_cython(checks, tag)
    checks.finish()


if __name__ == "__main__":
    main()
