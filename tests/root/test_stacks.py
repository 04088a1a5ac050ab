#!/usr/bin/python3
"""Stacks equal the truth: test_stacks.py TAG. A busy program runs down call paths of every
kind in several threads and says which stack it had when (ground_truth/stacks.py); every
sample taken then must have that stack: files, functions and lines, frame for frame."""

import bisect
import collections
import json
import sys

import harness

HZ = 997
FRAMES_MAX = 256
LEAST_SAMPLES = 200


def record(tag, *arguments):
    """The program's truth, and the recording's events and report."""
    with harness.Target("stacks.py", tag, arguments) as target:
        with harness.Recording([target.pid], "--sample-hz", str(HZ), roles=[]) as recording:
            target.say("go")
            truth = json.loads(target.out.wait("{", 120) or "{}")
            status = recording.stop()
            alive = target.child.poll() is None
            done = harness.run("dump", recording.trace)
            events = [json.loads(line) for line in done.stdout.splitlines()]
            return truth, events, recording.report(), status, alive


class Stacks:
    """The frame tree of a trace: {id: frame}."""

    def __init__(self, events):
        self.frames = {event["id"]: event for event in events if event.get("event") == "frame"}

    def python(self, leaf):
        """(file, function, line) of each Python frame, innermost first."""
        found, seen = [], 0
        while leaf:
            frame = self.frames[leaf]
            if not frame.get("native"):
                found.append((frame["file"], frame["function"], frame.get("line", 0)))
            elif seen:
                raise RuntimeError("a native frame above others: %s" % frame)
            leaf, seen = frame.get("parent", 0), seen + 1
        return found


def samples_in_phases(truth, events):
    """(sample, phase) of each sample that was taken wholly in a phase of its thread."""
    phases = collections.defaultdict(list)
    for phase in truth["phases"]:
        phases[phase["tid"]].append(phase)
    starts = {}
    for tid, of_thread in phases.items():
        of_thread.sort(key=lambda phase: phase["start_ns"])
        starts[tid] = [phase["start_ns"] for phase in of_thread]
    for event in events:
        if event.get("event") != "sample" or event["tid"] not in phases:
            continue
        end_ns = start_ns = event["time_ns"]
        if event["kind"] not in ("python", "runtime", "native", "system"):  # a wait: its end
            start_ns -= event["ns"] // (event.get("every") or 1)
        at = bisect.bisect_right(starts[event["tid"]], start_ns) - 1
        if at >= 0 and end_ns <= phases[event["tid"]][at]["end_ns"]:
            yield event, phases[event["tid"]][at]


def agree(found, expected, lines):
    """Whether a stack is the expected one; the innermost frame may be in any of the lines."""
    return (len(found) == len(expected) and found[1:] == expected[1:] and
            found[0][:2] == expected[0][:2] and found[0][2] in lines)


def first_difference(found, expected):
    for i, (left, right) in enumerate(zip(found, expected)):
        if left != right and i:
            return "frame %d of %d is %s, not %s" % (i, len(expected), left, right)
    return "%d frames, not %d: %s, not %s" % (len(found), len(expected), found[:2], expected[:2])


def stacks_equal_the_truth(checks, tag):
    truth, events, report, status, _ = record(tag, "--seed", "7")
    tree, kinds, wrong = Stacks(events), collections.Counter(), []
    depths = collections.Counter()
    for sample, phase in samples_in_phases(truth, events):
        expected = [tuple(truth["frames"][i]) for i in phase["stack"]]
        found = tree.python(sample.get("frame", 0))
        kinds[sample["kind"]] += 1
        depths[len(expected)] += 1
        if not agree(found, expected, phase["spin"]):
            wrong.append("%s: %s" % (sample["kind"], first_difference(found, expected)))
    checks.that(status == 0, "profiler ended with %d" % status)
    checks.saw("phases %d, samples in them %s, depths %d to %d" % (
        len(truth["phases"]), dict(kinds), min(depths, default=0), max(depths, default=0)))
    checks.that(sum(kinds.values()) >= LEAST_SAMPLES, "%d samples compared" % sum(kinds.values()))
    checks.that(min(kinds["python"], kinds["native"], kinds["sleep"]) >= 20,
                "running Python, native code, and waiting are among them")
    checks.that(not wrong, "%d stacks differ%s" % (len(wrong), "".join("\n      " + w for w in wrong[:5])))
    checks.that(not [w for w in report["warnings"] if w.startswith("samples")],
                "nothing is said to be missing: %s" % report["warnings"])


def without_made(stack):
    return [frame for frame in stack if not frame[0].startswith("<")]


def made_code_is_never_taken_for_another(checks, tag):
    """Code that is gone before it could be named is left out, and that is said."""
    truth, events, report, status, _ = record(tag, "--seed", "8", "--seconds", "1.5", "--fleeting")
    tree, samples, lacking, wrong = Stacks(events), 0, 0, []
    for sample, phase in samples_in_phases(truth, events):
        expected = [tuple(truth["frames"][i]) for i in phase["stack"]]
        found = tree.python(sample.get("frame", 0))
        samples += 1
        if agree(found, expected, phase["spin"]):
            continue
        lacking += 1
        made, told = (collections.Counter(stack) - collections.Counter(without_made(stack))
                      for stack in (expected, found))
        if told - made or not agree(without_made(found), without_made(expected), phase["spin"]):
            wrong.append(first_difference(found, expected))
    said = [w for w in report["warnings"] if "gone before it could be named" in w]
    checks.that(status == 0 and samples >= LEAST_SAMPLES // 2 and not wrong,
                "code made and gone: %d samples, %d lack frames of it, %d are wrong%s" % (
                    samples, lacking, len(wrong), "".join("\n      " + w for w in wrong[:5])))
    checks.that(bool(said) or not lacking, "that they lack frames is said: %s" % said)


def deeper_than_is_walked(checks, tag):
    truth, events, report, status, alive = record(tag, "--seconds", "1", "--deep", "100000")
    tree, samples, wrong = Stacks(events), 0, 0
    checks.that(status == 0 and alive, "100000 calls deep: status %d, the target lives: %s" % (
        status, alive))
    checks.that([phase["depth"] > 100000 for phase in truth.get("phases", [])] == [True],
                "it was that deep")
    for sample, phase in samples_in_phases(truth, events):
        expected = [tuple(truth["frames"][i]) for i in phase["stack"]]
        found = tree.python(sample.get("frame", 0))
        samples += 1
        # Where entries from C have frames of their own, those count among the walked.
        if not FRAMES_MAX - 2 <= len(found) <= FRAMES_MAX or \
                not agree(found, expected[:len(found)], phase["spin"]):
            wrong += 1
    checks.that(samples >= 50 and not wrong, "%d samples of %d frames, %d wrong" % (
        samples, FRAMES_MAX, wrong))
    said = [w for w in report["warnings"] if "deeper stacks" in w]
    counted = int(said[0].split(",")[1].split()[0]) if said else 0
    checks.that(counted >= samples, "the report counts them: %s" % said)


def main():
    tag = sys.argv[1]
    harness.need_root_and_profiler()
    checks = harness.Checks()
    stacks_equal_the_truth(checks, tag)
    made_code_is_never_taken_for_another(checks, tag)
    deeper_than_is_walked(checks, tag)
    checks.finish()


if __name__ == "__main__":
    main()
