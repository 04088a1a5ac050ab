#!/usr/bin/python3
"""Stacks equal the truth: test_stacks.py TAG. A busy program runs down call paths of every
kind in several threads and says which stack it had when (ground_truth/stacks.py); every
sample taken then must have that stack: files, functions and lines, frame for frame. Another
only enters and leaves functions (moves.py): at any instant its stack is one that can be."""

import bisect
import collections
import json
import sys

import harness

HZ = 997
MOVES_HZ = 4999
FRAMES_MAX = 256
LEAST_SAMPLES = 200
MUCH = 0.1              # of frames; said from half of it on, of all that were sampled


def record(tag, *arguments, script="stacks.py", hz=HZ):
    """The program's truth, and the recording's events and report."""
    with harness.Target(script, tag, arguments) as target:
        with harness.Recording([target.pid], "--sample-hz", str(hz), roles=[]) as recording:
            target.say("go")
            truth = json.loads(target.out.wait("{", harness.PATIENCE_SECONDS) or "{}")
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
    harness.check_walks(checks, report)


def impossible(stack, truth):
    """What is wrong with a stack of moves.py; None: nothing that is known of."""
    calls, own = truth["calls"], [frame for frame in stack if frame[0] == truth["file"]]
    for (_, callee, _), (_, caller, line) in zip(own, own[1:]):
        if caller not in truth["first"] and (caller, line, callee) not in calls:
            return "%s is not called in line %d of %s" % (callee, line, caller)
    if own and own[-1][1] not in truth["first"]:
        return "begins with %s" % (own[-1],)
    if stack and stack[-1][1].split(".")[-1] not in ("_bootstrap", "<module>"):
        return "lacks its outer frames: %s" % (stack[-1],)
    if own and own[0] == stack[0] and own[0][1] in truth["lines"] and own[0][2]:
        first, last = truth["lines"][own[0][1]]
        return None if first <= own[0][2] <= last else "not in its function: %s" % (own[0],)
    return None


def stacks_are_possible(checks, tag):
    """At any instant, in the midst of calls too."""
    truth, events, report, status, _ = record(tag, "--seconds", "0.75", script="moves.py", hz=MOVES_HZ)
    tree, wrong, seen, samples = Stacks(events), [], set(), 0
    truth["calls"] = {tuple(call) for call in truth["calls"]}
    for sample in (event for event in events if event.get("event") == "sample"):
        stack = tree.python(sample.get("frame", 0))
        found = impossible(stack, truth)
        wrong += [found] if found else []
        seen.update(function for _, function, _ in stack)
        samples += 1
    called = {callee for _, _, callee in truth["calls"]} - set(truth["first"])
    checks.that(status == 0 and not wrong, "%d of %d stacks cannot be%s" % (
        len(wrong), samples, "".join("\n      " + w for w in wrong[:5])))
    checks.that(len(called & seen) > 15, "of %d functions, %d seen" % (len(called), len(called & seen)))
    harness.check_walks(checks, report, one_in=50) # it does nothing but call


def without_made(stack):
    return [frame for frame in stack if not frame[0].startswith("<")]


def made_code_is_never_taken_for_another(checks, tag):
    """Code that is gone before it could be named is left out, and that is said where it is much."""
    truth, events, report, status, _ = record(tag, "--seed", "8", "--seconds", "0.3", "--fleeting")
    tree, samples, lacking, wrong = Stacks(events), 0, 0, []
    frames = missing = 0
    for sample, phase in samples_in_phases(truth, events):
        expected = [tuple(truth["frames"][i]) for i in phase["stack"]]
        found = tree.python(sample.get("frame", 0))
        samples += 1
        frames += len(expected)
        if agree(found, expected, phase["spin"]):
            continue
        lacking += 1
        missing += len(expected) - len(found)
        made, reported = (collections.Counter(stack) - collections.Counter(without_made(stack))
                          for stack in (expected, found))
        if reported - made or not agree(without_made(found), without_made(expected), phase["spin"]):
            wrong.append(first_difference(found, expected))
    said = [w for w in report["warnings"] if "gone before it could be named" in w]
    checks.that(status == 0 and samples >= LEAST_SAMPLES // 2 and not wrong,
                "code made and gone: %d samples, %d lack frames of it, %d are wrong%s" % (
                    samples, lacking, len(wrong), "".join("\n      " + w for w in wrong[:5])))
    checks.that(bool(said) or missing < MUCH * frames, "%d of %d frames are missing, and that is said: %s" % (
        missing, frames, said))


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
    stacks_are_possible(checks, tag)
    made_code_is_never_taken_for_another(checks, tag)
    deeper_than_is_walked(checks, tag)
    checks.finish()


if __name__ == "__main__":
    main()
