#!/usr/bin/env python3
"""The first recording of a boot measures what a probe hit costs, keeps it, and says so; later ones use it. All in a mount
namespace with an empty folder for it, as other recorders of this host have figures of their own."""

import ctypes
import json
import os
import subprocess
import tempfile

import harness

FOLDER = "/run/rlscope-bpf"
STORE = os.path.join(FOLDER, "calibration.json")
CLONE_NEWNS = 0x20000
SAID = "calibrated: a probe hit costs"


def mount(*arguments):
    subprocess.run(["mount", *arguments], check=True)


def enter_empty_folder():
    """Whatever is mounted from here on is ours alone."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS):
        raise OSError(ctypes.get_errno(), "unshare")
    mount("--make-rprivate", "/")
    os.makedirs(FOLDER, exist_ok=True)
    mount("-t", "tmpfs", "-o", "mode=755", "tmpfs", FOLDER)


def record():
    """(exit status, what was said, overhead) of a recording of a command."""
    with tempfile.NamedTemporaryFile() as trace:
        done = subprocess.run([harness.BINARY, "run", "--overhead-budget", "none", "-o", trace.name, "--report", trace.name + ".json",
                               "--format", "json", "--", harness.interpreter(), "-c", "sum(range(1000))"],
                              capture_output=True, text=True, timeout=harness.PATIENCE_SECONDS, check=False)
        try:
            with open(trace.name + ".json", encoding="utf-8") as report:
                return done.returncode, done.stderr, json.load(report)["overhead"]
        finally:
            os.unlink(trace.name + ".json")


def read_store():
    with open(STORE, encoding="utf-8") as file:
        return json.load(file)


def write_store(store):
    with open(STORE, "w", encoding="utf-8") as file:
        json.dump(store, file)


def measured(said):
    """Whether it was, or was tried: on a machine that is too busy for any figure a default is used."""
    return SAID in said or "could not be measured" in said


def check_measures(checks, why):
    status, said, overhead = record()
    checks.that(status == 0, "%s: the recording goes on: %s" % (why, said))
    checks.that(measured(said), "%s: it measures, and says so: %s" % (why, said))
    checks.that(overhead["calibration_source"] == ("recording" if SAID in said else "default"),
                "%s: the report says which figures they are: %s" % (why, overhead.get("calibration_source")))
    checks.that(overhead["calibration"]["hit"]["ns"] > 0 and overhead["calibration"]["hit"]["error_ns"] > 0 and
                not any("source" in name for name in overhead["calibration"]), "%s: it has figures" % why)
    return SAID in said


def measure_and_keep(checks, why):
    """One that found figures: where others take the CPU all the time, that may take a few."""
    if not any(check_measures(checks, why) for _ in range(20)):
        checks.that(False, "%s: one of twenty finds figures" % why)


def check_first_and_second(checks):
    checks.that(not os.path.exists(STORE), "nobody has calibrated")
    measure_and_keep(checks, "first")
    kept = read_store()
    checks.that(kept["source"] == "recording" and kept["boot"] and "cpu" in kept, "it is kept, with what it holds for")
    # The machine may change from one to the next, and what seems not to hold is measured anew.
    for _ in range(20):
        before = read_store()
        status, said, overhead = record()
        if not measured(said):
            break
    checks.that(status == 0 and not measured(said), "the second uses it: " + said)
    checks.that(read_store() == before, "and leaves it as it is")
    checks.that(overhead["calibration_source"] == "recording", "the report says that a recording found it")


def check_other_machines(checks):
    for key, value in (("boot", "cfde5ccb-0000-0000-0000-000000000000"), ("cpu", "Other CPU"), ("kernel", "1.0")):
        write_store(dict(read_store(), **{key: value}))
        measure_and_keep(checks, "figures of another " + key)
        checks.that(read_store()[key] != value, "they are replaced")


def check_calibrate(checks):
    done = subprocess.run([harness.BINARY, "calibrate"], capture_output=True, text=True, timeout=harness.PATIENCE_SECONDS, check=False)
    checks.that(done.returncode == 0, "calibrate: " + done.stderr)
    checks.that(read_store()["source"] == "calibrate", "calibrate replaces what a recording found")
    for _ in range(20):
        status, said, overhead = record()
        if not measured(said):
            break
        subprocess.run([harness.BINARY, "calibrate"], capture_output=True, timeout=harness.PATIENCE_SECONDS, check=True)
    checks.that(status == 0 and overhead["calibration_source"] == "calibrate", "recordings use it and say so: " + said)


def check_unwritable(checks):
    os.unlink(STORE)
    mount("-o", "remount,ro", FOLDER)
    if check_measures(checks, "a folder that cannot be written"):
        checks.that(not os.path.exists(STORE), "nothing is kept")
    mount("-o", "remount,rw", FOLDER)
    with open(STORE, "w", encoding="utf-8") as file:
        file.write("{\"version\": ")
    check_measures(checks, "a file that is no calibration")


def main():
    harness.need_root_and_profiler()
    checks = harness.Checks()
    enter_empty_folder()
    check_first_and_second(checks)
    check_other_machines(checks)
    check_calibrate(checks)
    check_unwritable(checks)
    checks.finish()


if __name__ == "__main__":
    main()
