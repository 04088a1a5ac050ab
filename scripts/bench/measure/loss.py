"""What a job loses to a profiler that looks on for a minute.

A child of work.py does its piece again and again, alone and watched by turns. Its pieces are held
against what pieces of their label take in the stretches alone before and after (trail.py); the machine's drift goes
from the one to the other. Beside its twin, too. Bursts of the machine are left
out between beginning and end, where the profiler makes none; the output says how much they are.
"""

import collections
import itertools
import os
import time

import pairs
import trail

BEGINNING_NS = 6e9      # from the profiler's start: it looks around, puts probes on, traces all for a moment
END_NS = 2e9
PAUSE_SECONDS = 0.5


class Job:
    """May run on so many of our CPUs. Repetitions begin on each of them by turns, whether anybody looks on or not,
    as being moved costs something too, and CPUs differ. With a twin, if the work can have one, they are not moved."""

    def __init__(self, python, name, cpus, twin=False):
        self.work = pairs.Work(python, name)
        self.has_twin = twin = twin and self.work.twins
        self.work.say("twins" if twin else "run")
        self.pid = self.work.read_answer("child")["child"]
        self.of_twin = []       # what its twin said meanwhile
        allowed = sorted(os.sched_getaffinity(0))[-cpus:]
        if not twin:        # twins see to that themselves
            os.sched_setaffinity(self.pid, allowed)
        self.turns = itertools.cycle(allowed)

    def once(self):
        """What it says of a repetition."""
        self.work.say("trail %d" % next(self.turns))
        while "twin" in (answer := self.work.read_answer("wall_ns")):
            self.of_twin.append(answer)
        return answer

    def repeat(self, going):
        """What it says of each repetition that begins while going() holds."""
        answers = []
        while going():
            answers.append(self.once())
        return answers

    def twin(self, apart=()):
        """All that its twin did up to now, None where there is none; apart: as trail.Twin's. It is waited for: the twin only tells
        of a repetition when that is done, which may be most of a stretch later."""
        if not self.has_twin:
            return None
        now_ns = time.monotonic_ns()
        while not self.of_twin or self.of_twin[-1]["end_ns"] < now_ns:
            self.once()
        return trail.Twin(self.of_twin, apart)

    def alone(self, seconds):
        time.sleep(PAUSE_SECONDS)
        end = time.monotonic() + seconds
        return self.repeat(lambda: time.monotonic() < end)

    def close(self):
        self.work.close()


def middle_ns(pieces):
    return (pieces[0][0] + pieces[-1][0]) / 2


def joined(lists):
    return [entry for one in lists for entry in one]


class Usual:
    """What pieces take alone, at any time between two stretches."""

    def __init__(self, before, after):
        self.of = trail.usual(before + after)
        self.counts = collections.Counter(label[:2] for _, label, _ in before + after)
        cut = [list(trail.windows(some, self.of)) for some in (before, after)]
        quiet = [trail.without_bursts(some) for some in cut]
        self.ends = [(middle_ns(some), trail.level(rest)) for some, rest in zip((before, after), quiet)]
        self.bursts = trail.level(joined(cut)) / trail.level(joined(quiet)) - 1

    def drift(self):
        return self.ends[1][1] / self.ends[0][1] - 1

    def cpus_differ(self):
        """How much longer the slowest CPU takes than the fastest."""
        took_ns = {}
        for (before, name, cpu), ns in self.of.items():
            took_ns.setdefault((before, name), {})[cpu] = ns * self.counts[before, name]
        everywhere = [cpus for cpus in took_ns.values() if len(cpus) == max(map(len, took_ns.values()))]
        sums = [sum(cpus[cpu] for cpus in everywhere) for cpu in everywhere[0]]
        return max(sums) / min(sums) - 1

    def at(self, time_ns):
        (began_ns, first), (ended_ns, last) = self.ends
        return first + (last - first) * (time_ns - began_ns) / (ended_ns - began_ns)

    def windows(self, pieces):
        """What is normal in them is what is usual at their time."""
        found = list(trail.windows(pieces, self.of))
        for window in found:
            window.normal_ns *= self.at(window.at_ns)
        return found


def lost(some):
    """(ns, share) more than is usual."""
    normal_ns = sum(window.normal_ns for window in some)
    more_ns = sum(window.took_ns for window in some) - normal_ns
    return more_ns, more_ns / normal_ns


def lost_ns(some, bursts):
    """What is lost of so much work beyond such a share, which the machine's bursts take of it. At a beginning and an end
    they cannot be distinguished from what the profiler does."""
    return lost(some)[0] - bursts * sum(window.normal_ns for window in some)


def lost_without_bursts(some, traced):
    """(the share that is lost, that of windows which were bursts), these left out. What is slow while the profiler
    traces, or right after, may be its own doing: there they are held to take what they do at other times of it."""
    apart = trail.apart_from_traced(some, traced)
    if not apart:
        return lost(some)[1], 0
    quiet = trail.without_bursts(apart, trail.burst_level(some))
    return trail.level(some) * trail.level(quiet) / trail.level(apart) - 1, 1 - len(quiet) / len(apart)


def working_share(answers):
    """The rest is its twin's."""
    worked_ns = sum(answer["wall_ns"] for answer in answers)
    return worked_ns / (worked_ns + sum(answer["waited_ns"] for answer in answers))


def by(pieces_of, before, during, after, began_ns, ended_ns, traced):
    """What a job lost to a profiler that ran from began_ns to ended_ns and traced at those times: at its
    beginning, between and at its end, also with the machine's bursts left in, and beyond what these add alone."""
    answers = pieces_of(before + during + after)
    usual = Usual(joined(answers[:len(before)]), joined(answers[len(before) + len(during):]))
    some = usual.windows(joined(answers[len(before):len(before) + len(during)]))
    first = [window for window in some if window.at_ns < began_ns + BEGINNING_NS]
    last = [window for window in some if window.at_ns >= ended_ns - END_NS]
    between = [window for window in some if began_ns + BEGINNING_NS <= window.at_ns < ended_ns - END_NS]
    quiet, bursts = lost_without_bursts(between, traced)
    whole_ns = ended_ns - began_ns
    first_ns, last_ns = lost_ns(first, usual.bursts), lost_ns(last, usual.bursts)
    between_ns = (whole_ns - BEGINNING_NS - END_NS) * working_share(during)
    all_with_bursts = (lost_ns(first, 0) + lost_ns(last, 0) + lost(between)[1] * between_ns) / whole_ns
    return {"beginning_s": first_ns / 1e9, "end_s": last_ns / 1e9,
            "between": quiet, "between_with_bursts": lost(between)[1],
            "all": (first_ns + last_ns + quiet * between_ns) / whole_ns,
            "all_with_bursts": all_with_bursts, "beyond_bursts": all_with_bursts - usual.bursts,
            "bursts": bursts, "drift": usual.drift(), "cpus": usual.cpus_differ()}


def lost_by_twin(twin, before, during, after):
    """By how much it took longer itself meanwhile, by the machine's doing or the profiler's: so much is not to be seen
    beside it."""
    return 2 * twin.during(during) / (twin.during(before) + twin.during(after)) - 1


def of(job, before, during, after, began_ns, ended_ns, traced=()):
    """What is found of pieces as they were, and "beside_twin" in all, and of the "twin" itself; both None where there is
    none. (What it said before the last stretch is forgotten.)"""
    apart = [(began_ns, began_ns + BEGINNING_NS), (ended_ns - END_NS, ended_ns + PAUSE_SECONDS * 1e9)]
    twin = job.twin(apart)

    def of_pieces(pieces_of):
        return by(pieces_of, before, during, after, began_ns, ended_ns, traced)
    found = dict(of_pieces(trail.as_they_were), beside_twin=None, twin=None)
    if twin:
        found["beside_twin"] = of_pieces(twin.paced)["all"]
        found["twin"] = lost_by_twin(twin, before, during, after)
        job.of_twin = [answer for answer in job.of_twin if answer["end_ns"] > after[0]["begin_ns"]]
    return found
