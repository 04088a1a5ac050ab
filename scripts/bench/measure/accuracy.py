#!/usr/bin/env python3
"""accuracy.py PYTHON ROUNDS CALIBRATION_SECONDS [NAME...]: uninstrumented against corrected time
(RL-Scope, Fig. 11).

For each piece of work one process, held on one CPU, does the same amount of it again and again, in rounds.
In each `calibrate --pid` looks on for CALIBRATION_SECONDS and keeps what a hit costs this work; after that, and
apart from it: the work alone, the work with every probe, alone, with, alone; each time
so many repetitions as take ALONE_SECONDS alone. Each recording's corrected time is held against the
mean of its two neighbours alone, without the machine's bursts (trail.py), and as it is; and, as the machine changes
its speed, beside its twin, which does the same work by turns with it and is never watched: what was found and what was
removed are converted to one speed, that of the calibration too. The output also says how much longer the twin takes
while the other one is recorded: the comparison hides so much of a recording's cost. A recording's first repetition,
compared with its others, shows what its beginning costs besides.

Intervals are of rounds, not of recordings: what a calibration is off by is in them too.

A table on stderr as it goes, JSON on stdout.
"""

import json
import subprocess
import sys

import loss
import pairs
import trail

HEAD = ("%-22s %7s %-13s %-15s %-15s %-15s %-13s %-15s %-13s %-12s %-12s %s" % (
    "work", "alone", "inflation", "corrected", "bursts left in", "beside twin", "twin", "by machine's", "first part",
    "bursts", "stated", "rows held"))
ALONE_SECONDS = 2.0
REPETITIONS_MIN = 2
RECORDINGS = 2      # a round
LEAST_NS = 1e6      # of an operation a repetition: less is no row to judge by


def calibrate(job, seconds):
    """What `calibrate --pid` found, and what the job says of its repetitions meanwhile."""
    process = subprocess.Popen([pairs.BINARY, "calibrate", "--pid", str(job.pid), "--duration", str(seconds),
                                "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    answers = job.repeat(lambda: process.poll() is None)
    out, err = process.communicate()
    if process.returncode:
        raise pairs.Failed("calibrate: " + (err.strip().splitlines() or ["it failed"])[-1])
    return json.loads(out), answers


def repetitions(job, profiler, count):
    """So many of them, watched by the profiler: what both have to say of all of them."""
    profiler.begin(job.pid)
    answers = [job.once() for _ in range(count)]
    total = {"wall_ns": sum(answer["wall_ns"] for answer in answers), "operations": {}, "pid": job.pid,
             "walls": [answer["wall_ns"] for answer in answers], "answers": answers}
    for answer in answers:
        for name, ns in answer["operations"].items():
            total["operations"][name] = total["operations"].get(name, 0) + ns
    total.update(profiler.end())
    return total


def first_part(answer):
    """How much longer a recording's first repetition took than its others."""
    first, *others = answer["walls"]
    return first / pairs.median(others)


def factor_of(answer, operation=None):
    """What the recording's costs were multiplied by, for this work, or in this operation of it."""
    figures = answer["report"]["overhead"]["calibration"]
    own = figures.get("workload.hit.%s" % operation) or figures.get("workload.hit")
    return own["ns"] / figures["hit"]["ns"] if own else 1


def beside(number):
    """Which stretch alone comes before a recording; the next one comes after it."""
    return number + number // RECORDINGS


def neighbours(alone, number, value):
    before = beside(number)
    return (value(alone[before]) + value(alone[before + 1])) / 2


def by_round(values, numbers=None):
    """The mean of each round, of values of recordings: of all, or of those with these numbers."""
    rounds = {}
    for number, value in zip(numbers or range(len(values)), values):
        rounds.setdefault(number // RECORDINGS, []).append(value)
    return [sum(some) / len(some) for some in rounds.values()]


def of_rounds(values, numbers=None):
    """(middle, half width), as pairs.robust, of rounds."""
    return pairs.robust(by_round(values, numbers))


class Quiet:
    """The same comparison without the machine's bursts: of work done, not of time. pieces_of: of trail.py."""

    def __init__(self, alone, probed, pieces_of=trail.as_they_were):
        answers = iter(pieces_of([answer for one in alone + probed for answer in one["answers"]]))
        pieces = [[piece for _ in one["answers"] for piece in next(answers)] for one in alone + probed]
        self.states = [trail.State(pieces[:len(alone)]), trail.State(pieces[len(alone):])]
        self.reference = reference = self.states[0].means()
        self.recorded = pieces[len(alone):]
        levels, walls = (state.levels(reference) for state in self.states)
        self.bursts = [state.burst_share() for state in self.states]
        self.numbers = [i for i, wall in enumerate(walls) if None not in (wall, *levels[beside(i):beside(i) + 2])]
        if len({i // RECORDINGS for i in self.numbers}) < pairs.ROUNDS_MIN:
            raise pairs.Failed("the machine was never quiet")
        self.base = [neighbours(levels, i, float) for i in self.numbers]
        self.walls = [walls[i] for i in self.numbers]
        self.work_ns = [trail.work_ns(self.recorded[i], reference) for i in self.numbers]

    def ratios(self, removed):
        """Each recording: [what it took, what was removed], of the time alone."""
        return [[wall / own, removed[i] / work_ns / own] for i, wall, work_ns, own in zip(
            self.numbers, self.walls, self.work_ns, self.base)]

    def inflation(self):
        return of_rounds([wall / own for wall, own in zip(self.walls, self.base)], self.numbers)

    def off(self, removed):
        """Corrected against alone, where so much was removed."""
        return of_rounds([took - cost - 1 for took, cost in self.ratios(removed)], self.numbers)

    def operation(self, name):
        """(number, ns alone, ns recorded) of each recording in whose quiet pieces, and its neighbours', it is."""
        levels, walls = ([trail.level_of(trail.pieces_in(name, pieces), self.reference) for pieces in state.stretches]
                         for state in self.states)
        for i in self.numbers:
            if None in (walls[i], *levels[beside(i):beside(i) + 2]):
                continue
            work_ns = trail.work_ns(trail.pieces_in(name, self.recorded[i]), self.reference)
            yield i, work_ns * neighbours(levels, i, float), work_ns * walls[i]


def operation_rows(quiet, alone, probed):
    """The summary of each operation: over all recordings, and how many of them are within the error that they state."""
    rows = []
    for name in alone[0]["operations"]:
        if not name:        # waiting for `go` is in it
            continue
        found = list(quiet.operation(name))
        if not found or pairs.median([truth for _, truth, _ in found]) < LEAST_NS:
            continue
        numbers, truths, walls = zip(*found)
        own = [[row for row in pairs.main_rows(probed[i]) if row["operation"] == name] for i in numbers]
        stated = [sum(row["error_ns"] for row in some) for some in own]
        removed = [sum(row["wall_ns"] - row["corrected_ns"] for row in some) for some in own]
        differences = [wall - cost - truth for wall, cost, truth in zip(walls, removed, truths)]
        middle, half = of_rounds(differences, numbers)
        singly = [{"difference_ns": off, "stated_ns": error, "removed_ns": cost, "factor": factor_of(probed[i], name)}
                  for i, off, error, cost in zip(numbers, differences, stated, removed)]
        rows.append({"operation": name, "difference_ns": middle, "half_width_ns": half,
                     "stated_ns": pairs.median(stated), "alone_ns": pairs.median(truths), "singly": singly,
                     "held_singly": sum(abs(one["difference_ns"]) <= one["stated_ns"] for one in singly)})
    return rows


def by_twin(twin, looks, alone, probed, removed):
    """(The same beside the twin; by how much that itself takes longer while the work is recorded), None both without
    one. What was removed is what hits cost at the pace of the calibration (looks: what the work says of itself during each),
    and is given at the same pace as what pieces took."""
    if not twin:
        return None, None
    paced = [ns / twin.during(looks[i // RECORDINGS]) for i, ns in enumerate(removed)]
    own = [loss.lost_by_twin(twin, *[one["answers"] for one in (alone[beside(i)], answer, alone[beside(i) + 1])])
           for i, answer in enumerate(probed)]
    return Quiet(alone, probed, twin.paced).off(paced), of_rounds(own)


def judge(name, found, looks, alone, probed, twin):
    def off(corrected, truth):
        return of_rounds([one / own - 1 for one, own in zip(corrected, truth)])
    base = [neighbours(alone, i, lambda answer: answer["wall_ns"]) for i in range(len(probed))]
    removed = [pairs.removed_ns(answer) for answer in probed]
    walls = [answer["wall_ns"] for answer in probed]
    with_bursts = off([wall - cost for wall, cost in zip(walls, removed)], base)
    try:
        quiet = Quiet(alone, probed)
    except pairs.Failed as error:
        raise pairs.Failed("%s; with its bursts %s" % (error, percent(with_bursts))) from None
    factors = [factor_of(answer) for answer in probed]
    hits = pairs.median([answer["report"]["overhead"]["hits"] for answer in probed])
    stated = [sum(row["error_ns"] for row in pairs.main_rows(answer) if row["operation"])
              for answer in probed]
    rows = operation_rows(quiet, alone, probed)
    paced, twins = by_twin(twin, looks, alone, probed, removed)
    return {
        "work": name, "rounds": len(found), "alone_s": pairs.median(base) / 1e9 / len(probed[0]["walls"]),
        "inflation": quiet.inflation(), "corrected": quiet.off(removed),
        "beside_twin": paced, "twin": twins,
        "with_bursts": with_bursts,
        "by_machine": quiet.off([cost / factor for cost, factor in zip(removed, factors)]),
        "bursts": quiet.bursts, "ratios": quiet.ratios(removed),
        "hit_ns": pairs.median([(wall - own) / hits for wall, own in zip(walls, base)]),
        "estimated_hit_ns": pairs.median(removed) / hits, "hits": hits,
        "calibrations": found, "stated": pairs.median([error / own for error, own in zip(stated, base)]),
        "first_part": off([first_part(answer) for answer in probed], [1] * len(probed)),
        "repetitions": len(probed[0]["walls"]),
        "pairs": [[own, wall, cost] for own, wall, cost in zip(base, walls, removed)],
        "operations": rows,
        # Strictly; and but for what the comparison itself cannot tell.
        "rows_held": [sum(abs(row["difference_ns"]) <= row["stated_ns"] for row in rows),
                      sum(abs(row["difference_ns"]) <= row["stated_ns"] + row["half_width_ns"] for row in rows),
                      len(rows)],
        "rows_held_singly": [sum(row["held_singly"] for row in rows), sum(len(row["singly"]) for row in rows)],
    }


def measure(python, name, rounds, seconds):
    job = loss.Job(python, name, 1, twin=True)
    found, looks, alone, probed = [], [], [], []
    try:
        first = repetitions(job, pairs.Nothing(), 1)
        count = max(REPETITIONS_MIN, round(ALONE_SECONDS * 1e9 / first["wall_ns"]))
        for _ in range(rounds):
            try:
                figures, answers = calibrate(job, seconds)
            except pairs.Failed as error:
                print("%-22s a round is left out: %s" % (name, error), file=sys.stderr, flush=True)
                continue
            found.append(figures)
            looks.append(answers)
            alone.append(repetitions(job, pairs.Nothing(), count))
            for _ in range(RECORDINGS):
                probed.append(repetitions(job, pairs.Recorder("--overhead-budget", "none"), count))
                alone.append(repetitions(job, pairs.Nothing(), count))
        if len(found) < pairs.ROUNDS_MIN:
            raise pairs.Failed("too few rounds")
        twin = job.twin()
    finally:
        job.close()
    return judge(name, found, looks, alone, probed, twin)


def percent(value):
    return "none" if value is None else "%+.1f ± %.1f %%" % (100 * value[0], 100 * value[1])


def show(row):
    print("%-22s %6.2fs %-13s %-15s %-15s %-15s %-13s %-15s %-13s %-12s %-12s %d (%d) of %d, %d of %d" % (
        row["work"], row["alone_s"], "%.2f ± %.2f" % tuple(row["inflation"]), percent(row["corrected"]),
        percent(row["with_bursts"]), percent(row["beside_twin"]), percent(row["twin"]), percent(row["by_machine"]), percent(row["first_part"]),
        "%.1f, %.1f %%" % tuple(100 * share for share in row["bursts"]),
        "± %.1f %%" % (100 * row["stated"]), *row["rows_held"], *row["rows_held_singly"]), file=sys.stderr, flush=True)


def summarize(rows):
    held = [sum(row["rows_held"][i] for row in rows) for i in range(3)]
    singly = [sum(row["rows_held_singly"][i] for row in rows) for i in range(2)]
    print("%d of %d works within 2 %%, the worst %.1f %%; %d of %d rows within their stated errors (%d where "
          "what the comparison cannot tell is allowed for), %d of %d of single recordings" % (
              sum(abs(row["corrected"][0]) <= 0.02 for row in rows), len(rows),
              max(100 * abs(row["corrected"][0]) for row in rows), held[0], held[2], held[1], *singly),
          file=sys.stderr)


def main():
    if len(sys.argv) < 5:
        pairs.die("takes PYTHON ROUNDS CALIBRATION_SECONDS NAME...")
    python, rounds, seconds, names = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), sys.argv[4:]
    if rounds < pairs.ROUNDS_MIN:
        pairs.die("needs at least %d rounds for an interval" % pairs.ROUNDS_MIN)
    rows = []
    print(HEAD, file=sys.stderr, flush=True)
    for name in names:
        try:
            rows.append(measure(python, name, rounds, seconds))
            show(rows[-1])
        except pairs.Failed as error:
            print("%-22s skipped: %s" % (name, error), file=sys.stderr, flush=True)
    if rows:
        summarize(rows)
    json.dump({"version": 9, "rows": rows}, sys.stdout, indent=1)
    print()
    sys.exit(0 if rows else 1)


if __name__ == "__main__":
    main()
