#!/usr/bin/env python3
"""accuracy.py PYTHON ROUNDS [NAME...]: uninstrumented against corrected time (RL-Scope, Fig. 11).

Prints a table on stderr as it goes and JSON on stdout. Each piece of work runs ROUNDS times
without and ROUNDS times with every probe, turn about. Corrected twice: by the machine's
calibration alone, and by delta calibration on the other rounds of the same work, which is what
`rlscope-bpf calibrate -- COMMAND` does.
"""

import json
import sys

import pairs

HEAD = ("%-22s %7s %9s  %-17s %-17s %13s  %s" %
        ("work", "alone", "inflation", "corrected (here)", "(this work)", "ns/hit est.", "rows held"))


def bias(values):
    """(mean, half width) of corrected times as a share of the uninstrumented, less one."""
    mean, half = pairs.interval(values)
    return mean - 1, half


def without(values, left_out):
    return [value for number, value in enumerate(values) if number != left_out]


def delta_corrected(plain, probed, removed):
    """Each recording corrected by the factor that the other rounds give."""
    corrected = []
    for number, wall_ns in enumerate(probed):
        base = sum(without(plain, number))
        factor = (sum(without(probed, number)) - base) / sum(without(removed, number))
        corrected.append(wall_ns - factor * removed[number])
    return corrected


def rows_held(plain, probed):
    """[held, all]: of each operation of each recording, whether the uninstrumented time is
    within the corrected time's stated error."""
    held = total = 0
    for name in plain[0]["operations"]:
        truth_ns = pairs.median([answer["operations"].get(name, 0) for answer in plain])
        for answer in probed:
            rows = [row for row in pairs.main_rows(answer) if row["operation"] == name]
            if not name or truth_ns < 1e6:      # waiting for `go` is in it, or too little
                continue
            corrected_ns = sum(row["corrected_ns"] for row in rows)
            error_ns = sum(row["error_ns"] for row in rows)
            held += abs(corrected_ns - truth_ns) <= error_ns
            total += 1
    return [held, total]


def measure(python, name, rounds):
    with pairs.Work(python, name) as work:
        answers = pairs.turn_about(work, {"plain": pairs.Nothing(), "probed": pairs.Recorder(
            "--overhead-budget", "none")}, rounds)
    plain = [answer["wall_ns"] for answer in answers["plain"]]
    probed = [answer["wall_ns"] for answer in answers["probed"]]
    removed = [pairs.removed_ns(answer) for answer in answers["probed"]]
    base = pairs.median(plain)
    hits = pairs.median([answer["report"]["overhead"]["hits"] for answer in answers["probed"]])
    return {
        "work": name, "rounds": rounds, "alone_s": base / 1e9,
        "alone_spread": pairs.interval([value / base for value in plain])[1],
        "inflation": pairs.interval([value / base for value in probed]),
        "bias_machine": bias([(wall - cost) / base for wall, cost in zip(probed, removed)]),
        "bias_workload": bias([ns / base for ns in delta_corrected(plain, probed, removed)]),
        "hit_ns": (pairs.median(probed) - base) / hits,
        "estimated_hit_ns": pairs.median(removed) / hits, "hits": hits,
        "rows_held": rows_held(answers["plain"], answers["probed"]),
    }


def show(row):
    print("%-22s %6.2fs %5.2f±%.2f  %+6.1f%% ± %4.1f%%   %+6.1f%% ± %4.1f%%   %5.0f %6.0f   %d of %d" %
          (row["work"], row["alone_s"], *row["inflation"],
           *[100 * value for value in row["bias_machine"] + row["bias_workload"]],
           row["hit_ns"], row["estimated_hit_ns"], *row["rows_held"]), file=sys.stderr, flush=True)


def main():
    if len(sys.argv) < 4:
        pairs.die("takes PYTHON ROUNDS NAME...")
    python, rounds, names = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    if rounds < 3:
        pairs.die("needs at least 3 rounds for an interval")
    rows = []
    print(HEAD, file=sys.stderr)
    for name in names:
        try:
            rows.append(measure(python, name, rounds))
            show(rows[-1])
        except pairs.Failed as error:
            print("%-22s skipped: %s" % (name, error), file=sys.stderr)
    json.dump({"version": 1, "rows": rows}, sys.stdout, indent=1)
    print()
    sys.exit(0 if rows else 1)


if __name__ == "__main__":
    main()
