#!/usr/bin/python3
"""Every operation has its name at its first use; where there are too many, a warning says so."""

import os

import harness

HERE = os.path.dirname(os.path.abspath(__file__))


def record(count):
    with harness.Target("names_job.py", arguments=["--libraries", harness.TRUTH], folder=HERE) as target:
        with harness.Recording([target.pid]) as recording:
            target.say(str(count))
            target.out.wait("[", harness.PATIENCE_SECONDS)
            recording.stop()
            return recording.report(), recording.err.text()


def main():
    harness.need_root_and_profiler()
    checks = harness.Checks()
    report, _ = record(500)
    names = {row["operation"] for row in report["operations"]}
    missing = [i for i in range(500) if "name %d" % i not in names]
    checks.that(not missing and "(unreadable)" not in names, "of 500 names %d are missing: %s" % (
        len(missing), missing[:9]))
    checks.that(not any("names" in text for text in report["warnings"]), "no warning of names")
    report, said = record(66000)
    entries = sum(row["entries"] for row in report["operations"])
    others = sum(row["entries"] for row in report["operations"] if row["operation"] == "(other)")
    lost = sum(loss["dropped"] for loss in report["losses"])
    checks.that(others > 0 and (entries == 66000 or lost), "%d entries, %d of them (other), %d lost" % (
        entries, others, lost))
    checks.that(any("65536 names" in text for text in report["warnings"]) and "65536 names" in said,
                "a warning in the report and on stderr: %s" % report["warnings"])
    checks.finish()


if __name__ == "__main__":
    main()
