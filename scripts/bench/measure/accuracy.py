#!/usr/bin/env python3
"""accuracy.py PYTHON ROUNDS CALIBRATION_SECONDS [NAME...]: uninstrumented against corrected time
(RL-Scope, Fig. 11).

For each piece of work one process, held on one CPU, does the same amount of it again and again. First `calibrate
--pid` looks on for CALIBRATION_SECONDS and keeps what a hit costs this work. After that, and
apart from it, rounds: the work alone, the work with every probe, alone, with, …, alone; each time
so many repetitions as take ALONE_SECONDS alone. Each recording's corrected time is held against the
mean of its two neighbours alone, at the machine's usual pace and without its bursts (trail.py), and as it is. What the
beginning of a recording costs besides is told by its first repetition, held against its others.

A table on stderr as it goes, JSON on stdout.
"""

import json
import subprocess
import sys

import loss
import pairs
import trail

HEAD = ("%-22s %7s %-13s %-15s %-15s %-15s %-13s %-12s %-12s %s" % (
    "work", "alone", "inflation", "corrected", "bursts left in", "by machine's", "first part", "bursts",
    "stated", "rows held"))
ALONE_SECONDS = 2.0
REPETITIONS_MIN = 2
LEAST_NS = 1e6      # of an operation a repetition: less is no row to judge by


def calibrate(job, seconds):
    """What `calibrate --pid` found."""
    process = subprocess.Popen([pairs.BINARY, "calibrate", "--pid", str(job.pid), "--duration", str(seconds),
                                "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    job.repeat(lambda: process.poll() is None)
    out, err = process.communicate()
    if process.returncode:
        raise pairs.Failed("calibrate: " + (err.strip().splitlines() or ["it failed"])[-1])
    return json.loads(out)


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


def factor_of(answer):
    """What the recording's costs were multiplied by, for this work."""
    figures = answer["report"]["overhead"]["calibration"]
    whole = figures.get("workload.hit")
    return whole["ns"] / figures["hit"]["ns"] if whole else 1


def neighbours(alone, number, value):
    return (value(alone[number]) + value(alone[number + 1])) / 2


def operation_rows(alone, probed):
    """[(operation, difference ns, its half width, stated error ns, alone ns)], medians over the recordings."""
    rows = []
    for name in alone[0]["operations"]:
        if not name:        # waiting for `go` is in it
            continue
        truths = [neighbours(alone, i, lambda answer: answer["operations"].get(name, 0))
                  for i in range(len(probed))]
        if pairs.median(truths) < LEAST_NS:
            continue
        own = [[row for row in pairs.main_rows(answer) if row["operation"] == name] for answer in probed]
        corrected = [sum(row["corrected_ns"] for row in some) for some in own]
        stated = [sum(row["error_ns"] for row in some) for some in own]
        rows.append((name, *pairs.robust([a - b for a, b in zip(corrected, truths)]),
                     pairs.median(stated), pairs.median(truths)))
    return rows


class Quiet:
    """The same comparison without the machine's bursts: of work done, not of time."""

    def __init__(self, alone, probed):
        paced = iter(trail.paced([answer for one in alone + probed for answer in one["answers"]]))
        pieces = [[piece for _ in one["answers"] for piece in next(paced)] for one in alone + probed]
        plain, watched = trail.State(pieces[:len(alone)]), trail.State(pieces[len(alone):])
        reference = plain.means()
        levels, walls = plain.levels(reference), watched.levels(reference)
        self.bursts = [plain.burst_share(), watched.burst_share()]
        self.rounds = [i for i, wall in enumerate(walls) if None not in (wall, *levels[i:i + 2])]
        if len(self.rounds) < pairs.ROUNDS_MIN:
            raise pairs.Failed("the machine was never quiet")
        self.base = [(levels[i] + levels[i + 1]) / 2 for i in self.rounds]
        self.walls = [walls[i] for i in self.rounds]
        self.work_ns = [trail.work_ns(pieces[len(alone) + i], reference) for i in self.rounds]

    def inflation(self):
        return pairs.robust([wall / own for wall, own in zip(self.walls, self.base)])

    def off(self, removed):
        """Corrected against alone, where so much was removed."""
        middle, half = pairs.robust([(wall - removed[i] / work_ns) / own for i, wall, work_ns, own in zip(
            self.rounds, self.walls, self.work_ns, self.base)])
        return middle - 1, half


def judge(name, found, alone, probed):
    base = [neighbours(alone, i, lambda answer: answer["wall_ns"]) for i in range(len(probed))]
    quiet = Quiet(alone, probed)
    removed = [pairs.removed_ns(answer) for answer in probed]
    walls = [answer["wall_ns"] for answer in probed]
    factors = [factor_of(answer) for answer in probed]
    hits = pairs.median([answer["report"]["overhead"]["hits"] for answer in probed])
    stated = [sum(row["error_ns"] for row in pairs.main_rows(answer) if row["operation"])
              for answer in probed]
    rows = operation_rows(alone, probed)

    def off(corrected, truth):
        middle, half = pairs.robust([one / own for one, own in zip(corrected, truth)])
        return middle - 1, half
    return {
        "work": name, "rounds": len(probed), "alone_s": pairs.median(base) / 1e9 / len(probed[0]["walls"]),
        "inflation": quiet.inflation(), "corrected": quiet.off(removed),
        "with_bursts": off([wall - cost for wall, cost in zip(walls, removed)], base),
        "by_machine": quiet.off([cost / factor for cost, factor in zip(removed, factors)]),
        "bursts": quiet.bursts,
        "hit_ns": pairs.median([(wall - own) / hits for wall, own in zip(walls, base)]),
        "estimated_hit_ns": pairs.median(removed) / hits, "hits": hits,
        "calibration": found, "stated": pairs.median([error / own for error, own in zip(stated, base)]),
        "first_part": off([first_part(answer) for answer in probed], [1] * len(probed)),
        "repetitions": len(probed[0]["walls"]),
        "pairs": [[own, wall, cost] for own, wall, cost in zip(base, walls, removed)],
        "operations": [{"operation": row[0], "difference_ns": row[1], "half_width_ns": row[2],
                        "stated_ns": row[3], "alone_ns": row[4]} for row in rows],
        # Strictly; and but for what the comparison itself cannot tell.
        "rows_held": [sum(abs(row[1]) <= row[3] for row in rows),
                      sum(abs(row[1]) <= row[3] + row[2] for row in rows), len(rows)],
    }


def measure(python, name, rounds, seconds):
    job = loss.Job(python, name, 1)
    try:
        found = calibrate(job, seconds)
        first = repetitions(job, pairs.Nothing(), 1)
        count = max(REPETITIONS_MIN, round(ALONE_SECONDS * 1e9 / first["wall_ns"]))
        alone, probed = [repetitions(job, pairs.Nothing(), count)], []
        for _ in range(rounds):
            probed.append(repetitions(job, pairs.Recorder("--overhead-budget", "none"), count))
            alone.append(repetitions(job, pairs.Nothing(), count))
    finally:
        job.close()
    return judge(name, found, alone, probed)


def percent(value):
    return "%+.1f ± %.1f %%" % (100 * value[0], 100 * value[1])


def show(row):
    print("%-22s %6.2fs %-13s %-15s %-15s %-15s %-13s %-12s %-12s %d (%d) of %d" % (
        row["work"], row["alone_s"], "%.2f ± %.2f" % tuple(row["inflation"]), percent(row["corrected"]),
        percent(row["with_bursts"]), percent(row["by_machine"]), percent(row["first_part"]),
        "%.1f, %.1f %%" % tuple(100 * share for share in row["bursts"]),
        "± %.1f %%" % (100 * row["stated"]), *row["rows_held"]), file=sys.stderr, flush=True)


def summarize(rows):
    held = [sum(row["rows_held"][i] for row in rows) for i in range(3)]
    print("%d of %d works within 2 %%, the worst %.1f %%; %d of %d rows within their stated errors (%d where "
          "what the comparison cannot tell is allowed for)" % (
              sum(abs(row["corrected"][0]) <= 0.02 for row in rows), len(rows),
              max(100 * abs(row["corrected"][0]) for row in rows), held[0], held[2], held[1]),
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
    json.dump({"version": 4, "rows": rows}, sys.stdout, indent=1)
    print()
    sys.exit(0 if rows else 1)


if __name__ == "__main__":
    main()
