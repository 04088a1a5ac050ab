"""What a job loses to a profiler that looks on for a minute.

A child of work.py does its piece again and again, alone and watched by turns. Its pieces are held
against what pieces of their label take in the stretches alone before and after: the machine drifts,
so what is usual goes from the one to the other. Bursts of the machine (trail.py) are left out between
beginning and end, where the profiler makes none; how much they are is told.
"""

import time

import pairs
import trail

BEGINNING_NS = 6e9      # from the profiler's start: it looks around, puts probes on, traces all for a moment
END_NS = 2e9
SETTLE_SECONDS = 0.5


class Job:
    def __init__(self, python, name):
        self.work = pairs.Work(python, name)
        self.work.say("run")
        self.pid = self.work.hear("child")["child"]

    def repeat(self, going):
        """What it says of each repetition that begins while going() holds."""
        answers = []
        while going():
            self.work.say("trail")
            answers.append(self.work.hear("wall_ns"))
        return answers

    def alone(self, seconds):
        end = time.monotonic() + seconds
        time.sleep(SETTLE_SECONDS)
        return self.repeat(lambda: time.monotonic() < end)

    def close(self):
        self.work.close()


def windows(answers, usual):
    """[(when, what it took, what is usual)], in ns, of some 25 ms each."""
    found = []
    for answer in answers:
        at_ns, took_ns, normal_ns = answer["begin_ns"], 0, 0
        for label, ns in trail.labelled(answer["trail"]):
            at_ns += ns
            if label not in usual:
                continue
            took_ns, normal_ns = took_ns + ns, normal_ns + usual[label]
            if normal_ns >= trail.WINDOW_NS:
                found.append((at_ns, took_ns, normal_ns))
                took_ns = normal_ns = 0
        if normal_ns:
            found.append((at_ns, took_ns, normal_ns))
    return found


def without_bursts(some):
    most = trail.BURST * pairs.median([took / normal for _, took, normal in some])
    return [window for window in some if window[1] <= most * window[2]]


def level(some):
    return sum(took for _, took, _ in some) / sum(normal for _, _, normal in some)


def middle_ns(answers):
    return (answers[0]["begin_ns"] + answers[-1]["end_ns"]) / 2


class Usual:
    """What pieces take alone, at any time between two stretches."""

    def __init__(self, before, after):
        both = [piece for answer in before + after for piece in trail.labelled(answer["trail"])]
        self.of = {label: pairs.median(times) for label, times in trail.by_label(both).items()}
        self.ends = [(middle_ns(some), level(without_bursts(windows(some, self.of))))
                     for some in (before, after)]

    def drift(self):
        return self.ends[1][1] / self.ends[0][1] - 1

    def at(self, time_ns):
        (began_ns, first), (ended_ns, last) = self.ends
        return first + (last - first) * (time_ns - began_ns) / (ended_ns - began_ns)

    def windows(self, answers):
        return [(at, took, normal * self.at(at)) for at, took, normal in windows(answers, self.of)]


def lost(some):
    """(ns, share) more than is usual."""
    normal = sum(normal for _, _, normal in some)
    more = sum(took for _, took, _ in some) - normal
    return more, more / normal


def of(before, during, after, began_ns, ended_ns):
    """What a job lost to a profiler that ran from began_ns to ended_ns: at its beginning, between and at its
    end, the latter two also with the machine's bursts left in."""
    usual = Usual(before, after)
    some = usual.windows(during)
    first = [window for window in some if window[0] < began_ns + BEGINNING_NS]
    last = [window for window in some if window[0] >= ended_ns - END_NS]
    between = [window for window in some if began_ns + BEGINNING_NS <= window[0] < ended_ns - END_NS]
    quiet = without_bursts(between)
    whole_ns = ended_ns - began_ns
    edges_ns = lost(first)[0] + lost(last)[0]
    between_ns = whole_ns - BEGINNING_NS - END_NS
    return {"beginning_s": lost(first)[0] / 1e9, "end_s": lost(last)[0] / 1e9,
            "between": lost(quiet)[1], "between_with_bursts": lost(between)[1],
            "all": (edges_ns + lost(quiet)[1] * between_ns) / whole_ns,
            "all_with_bursts": (edges_ns + lost(between)[1] * between_ns) / whole_ns,
            "bursts": 1 - len(quiet) / len(between), "drift": usual.drift()}
