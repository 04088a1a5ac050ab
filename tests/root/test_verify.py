#!/usr/bin/python3
"""--verify: next to nothing is blind when all is probed, and what is not probed is found."""

import collections
import json
import os
import re
import time

import harness

NUMBER = r"([0-9.]+)"
BLIND = re.compile(r"verify: blind spot %s %% \(95 %% interval %s to %s %%\): ([0-9]+) of ([0-9]+)"
                   % (NUMBER, NUMBER, NUMBER))
MISSED = re.compile(r"verify: missed callbacks %s %%" % NUMBER)
TRACED = re.compile(r"by the trace:((?: [a-z_]+ [0-9.]+ %,)+)")
SHARE = re.compile(r"([a-z_]+) %s %%" % NUMBER)


def found(pattern, report):
    return next((match for match in map(pattern.search, report["warnings"]) if match), None)


def record(roles):
    """Shares are of what the threads really ran: a sampler sees none of what waits for a CPU, and
    on a busy machine there is much of it."""
    with harness.Target("times.py", "system",
                        ["--libraries", harness.TRUTH, "--steps", "8"]) as target:
        with harness.Recording([target.pid], "--verify", roles=roles) as recording:
            target.say("go")
            truth = json.loads(target.out.wait("[", 120) or "[]")
            status = recording.stop()
            said = recording.err.text()
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
    blind = found(BLIND, report)
    if not checks.that(blind, "the report states the blind spot"):
        return
    checks.saw(blind.string)
    checks.that(blind.string in said, "stderr does too")
    checks.that(int(blind.group(5)) >= 200, "of %s samples" % blind.group(5))
    checks.that(float(blind.group(1)) < 1, "blind spot %s %%, below 1 %%" % blind.group(1))
    checks.that(float(blind.group(2)) <= float(blind.group(1)) <= float(blind.group(3)),
                "its interval holds it")
    missed = found(MISSED, report)
    checks.that(missed and float(missed.group(1)) < 1, "missed callbacks %s %%" % (
        missed and missed.group(1)))
    traced = found(TRACED, report)
    shares = {name: float(percent) for name, percent in SHARE.findall(traced.group(1))}
    for name, percent in truth.items():
        checks.that(abs(shares.get(name, 0) - percent) < 8, "%s: %.1f %% of the truth, %.1f %% of samples"
                    % (name, percent, shares.get(name, 0)))


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
    """A library with a role, none of whose functions is probed: all of its time is blind."""
    environment = dict(os.environ, PYTHONPATH=harness.modules())
    command = [harness.interpreter(), "-c", UNPROBED]
    with harness.Process(command, env=environment) as target:
        target.out.wait("ready", 30)
        with open("/proc/%d/maps" % target.pid) as maps:
            if "/libz.so" not in maps.read():
                checks.saw("zlib is no library of its own here: no blind spot to look for")
                return
        roles = ["--simulator", "truthsim*", "--native", "libz.so*:no_such_function"]
        with harness.Recording([target.pid], "--verify", roles=roles) as recording:
            target.say("go")
            share = float((target.out.wait("share", 120) or "share nan").split()[1])
            recording.stop()
            report = recording.report()
    blind = found(BLIND, report)
    if not checks.that(blind, "the report states the blind spot"):
        return
    checks.saw(blind.string)
    checks.that(abs(float(blind.group(1)) - share) < 8,
                "blind spot %s %%, %.1f %% of the time is the library's" % (blind.group(1), share))
    checks.that("of libz.so" in blind.string, "its functions are named")


def not_asked_for(checks):
    with harness.Target("times.py", "system", ["--libraries", harness.TRUTH]) as target:
        with harness.Recording([target.pid]) as recording:
            time.sleep(0.2)
            recording.stop()
            report = recording.report()
    checks.that(not [text for text in report["warnings"] if "verify" in text],
                "without --verify nothing is said of it")


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
