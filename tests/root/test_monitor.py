#!/usr/bin/python3
"""The monitor without a budget beside a recording of the same process: test_monitor.py.

Both count every transition, exactly, and their times differ by no more than 2 %."""

import collections
import json
import os

import harness
import monitoring

ROLES = ["--simulator", "truthsim*", "--backend", "truthback*", "--native", "libtruthc.so*"]
SECONDS = "rlscope_operation_seconds_total"
TRANSITIONS = "rlscope_transitions_total"


def compare_times(checks, report, page, job):
    wanted = collections.Counter()
    for row in report["breakdown"]:
        if row["operation"]:
            wanted[row["phase"], row["operation"], row["category"]] += row["wall_ns"] / 1e9
    outside = []
    for (phase, operation, category), seconds in wanted.items():
        found = page.sum(SECONDS, job=job, phase=phase, operation=operation, category=category)
        if abs(found - seconds) > max(0.02 * seconds, 1e-3):
            outside.append("%s/%s/%s: %.4f s, in the recording %.4f s" % (
                phase, operation, category, found, seconds))
    checks.that(wanted and not outside, "%d rows within 2 %% of the recording's: %s" % (
        len(wanted), outside))


def compare_transitions(checks, report, page, job):
    wanted = collections.Counter()
    outside = sum(entry["count"] for entry in report["transitions"] if not entry["operation"])
    for entry in report["transitions"]:
        if not entry["operation"]:
            continue  # a helper's, while another thread's last edge has not been read
        wanted[entry["operation"], entry["from"], entry["to"]] += entry["count"]
    wrong = ["%s %s->%s: %d, in the recording %d" % (*key, page.sum(
        TRANSITIONS, job=job, operation=key[0], **{"from": key[1], "to": key[2]}), count)
        for key, count in wanted.items()
        if page.sum(TRANSITIONS, job=job, operation=key[0],
                    **{"from": key[1], "to": key[2]}) != count]
    total = sum(wanted.values())
    checks.that(total and not wrong, "%d transitions, each as in the recording: %s" % (total, wrong))
    checks.that(page.sum(TRANSITIONS, job=job) == total + outside, "and no other")


def check_lossless(checks, page):
    checks.that(page.sum("rlscope_lost_events_total") == 0, "nothing lost")
    checks.that(len(page.values("rlscope_lost_events_total", "buffer")) > 3, "every buffer told of")


def check_known_target(checks):
    environment = dict(os.environ, RLSCOPE_JOB="known",
                       PYTHONPATH=os.environ.get("RLS_PYTHONPATH", ""))
    command = [harness.interpreter(), os.path.join(harness.TRUTH_SOURCES, "times.py"),
               "--modules", harness.modules(), "--libraries", harness.TRUTH]
    with monitoring.Monitor(*harness.EXACT, roles=ROLES) as monitor, \
            harness.Process(command, env=environment) as target:
        target.out.wait('{"ready"', 30)
        with harness.Recording([target.pid], roles=ROLES) as recording:
            target.say("go")
            truth = json.loads(target.out.wait("[", 60) or "[]")
            checks.that(truth, "the target told %d rows" % len(truth))
            recording.stop()
            report = recording.report()
        status, page = monitor.stop()
        checks.that(status == 0, "monitor ended with %d" % status)
    compare_times(checks, report, page, "known")
    compare_transitions(checks, report, page, "known")
    check_lossless(checks, page)


def main():
    harness.need_root_and_profiler()
    checks = harness.Checks()
    check_known_target(checks)
    checks.finish()


if __name__ == "__main__":
    main()
