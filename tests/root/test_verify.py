#!/usr/bin/python3
"""--verify: samples and probes agree where all is probed, and what is not probed is found."""

import collections
import json
import os
import re
import time

import harness

LINE = re.compile(r"^verify: ([a-z_]+): traced ([0-9.]+) %, sampled ([0-9.]+) % \(± ([0-9.]+)\), "
                  r"unseen ([0-9.]+) %, probes ([0-9.]+) %$", re.MULTILINE)


def said_of(text):
    """{category: (traced, sampled, error, unseen, probes)}, in percent."""
    return {match.group(1): tuple(map(float, match.groups()[1:])) for match in LINE.finditer(text)}


def check_report(checks, said, report):
    """What is said is the report's own table, of all processes together."""
    sums = collections.Counter()
    for row in report["cross_check"]:
        for column in ("sampled_ns", "unseen_ns", "probes_ns"):
            sums[row["category"], column] += row[column]
    whole_ns = sum(ns for (_, column), ns in sums.items() if column == "sampled_ns")
    if not checks.that(whole_ns, "the report has a cross-check"):
        return
    for category, (_, sampled, _, unseen, probes) in said.items():
        for percent, column, digit in ((sampled, "sampled_ns", 0.1), (unseen, "unseen_ns", 0.01),
                                       (probes, "probes_ns", 0.01)):
            ns = sum(ns for (name, of), ns in sums.items()
                     if of == column and category in (name, "all"))
            if abs(percent - 100 * ns / whole_ns) > digit:
                checks.that(False, "%s, %s: said %s %%, reported %.3f %%" % (
                    category, column, percent, 100 * ns / whole_ns))


def record(roles):
    """Shares are of what the threads really ran: a sampler sees none of what waits for a CPU, and
    on a busy machine there is much of it."""
    with harness.Target("times.py", "system",
                        ["--libraries", harness.TRUTH, "--steps", "8"]) as target:
        with harness.Recording([target.pid], "--verify", "--overhead-budget", "none",
                               roles=roles) as recording:
            target.say("go")
            truth = json.loads(target.out.wait("[", harness.PATIENCE_SECONDS) or "[]")
            status = recording.stop()
            said = said_of(recording.err.text())
            report = recording.report()
    shares = collections.Counter()
    for row in truth:
        shares[row["category"]] += row["cpu_ns"]
    total = sum(shares.values())
    return status, said, report, {name: 100 * ns / total for name, ns in shares.items()}


def all_probed(checks):
    status, said, report, truth = record(
        ["--simulator", "truthsim*", "--backend", "truthback*", "--native", "libtruthc.so*"])
    checks.that(status == 0, "profiler ended with %d" % status)
    if not checks.that("all" in said, "stderr has the cross-check"):
        return
    checks.saw(json.dumps(said))
    check_report(checks, said, report)
    checks.that(said["all"][3] < 1, "unseen %s %%, below 1 %%" % said["all"][3])
    for name, percent in truth.items():
        sampled, error = said.get(name, (0, 0, 0))[1:3]
        checks.that(abs(sampled - percent) < 8 + error, "%s: %.1f %% of the truth, %.1f %% of samples"
                    % (name, percent, sampled))


# Half of its time in zlib; one call into a probed module gives its thread a state.
UNPROBED = """
import sys, time, zlib
import truthsim
data = bytes(1 << 20)
print("ready", flush=True)
sys.stdin.readline()
inside = 0
start = time.thread_time()
while time.thread_time() < start + 2:
    truthsim.noargs()
    for _ in range(10000): pass
    entered = time.thread_time()
    zlib.crc32(data)
    inside += time.thread_time() - entered
print("share", 100 * inside / (time.thread_time() - start), flush=True)
sys.stdin.readline()
"""


def one_not_probed(checks):
    """A library with a role, none of whose functions is probed: all of its time is unseen."""
    environment = dict(os.environ, PYTHONPATH=harness.modules())
    command = [harness.interpreter(), "-c", UNPROBED]
    with harness.Process(command, env=environment) as target:
        target.out.wait("ready", harness.PATIENCE_SECONDS)
        with open("/proc/%d/maps" % target.pid) as maps:
            if "/libz.so" not in maps.read():
                checks.saw("zlib is no library of its own here: nothing unseen to look for")
                return
        roles = ["--simulator", "truthsim*", "--native", "libz.so*:no_such_function"]
        with harness.Recording([target.pid], "--verify", "--overhead-budget", "none",
                               roles=roles) as recording:
            target.say("go")
            share = float((target.out.wait("share", harness.PATIENCE_SECONDS) or "share nan").split()[1])
            recording.stop()
            said = said_of(recording.err.text())
            report = recording.report()
    if not checks.that("python" in said, "stderr has the cross-check"):
        return
    checks.saw(json.dumps(said))
    check_report(checks, said, report)
    checks.that(abs(said["python"][3] - share) < 8 + said["python"][2],
                "unseen %s %%, %.1f %% of the time is the library's" % (said["python"][3], share))
    checks.that(any("libz.so" in row["file"] for row in report["functions"]),
                "the library's functions are in the report")


def not_asked_for(checks):
    with harness.Target("times.py", "system", ["--libraries", harness.TRUTH]) as target:
        with harness.Recording([target.pid]) as recording:
            time.sleep(0.2)
            recording.stop()
            said = recording.err.text()
    checks.that("verify" not in said, "without --verify nothing is said of it")


def main():
    harness.need_root_and_profiler()
    if not os.path.isdir(os.path.join(os.environ.get("RLS_PYTHONPATH", ""), "rlscope")):
        harness.skip("no rlscope package in RLS_PYTHONPATH")
    checks = harness.Checks()
    all_probed(checks)
    one_not_probed(checks)
    not_asked_for(checks)
    checks.finish()


if __name__ == "__main__":
    main()
