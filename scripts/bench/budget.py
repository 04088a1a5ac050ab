"""Measures what a job pays for being recorded within a budget (see scripts/bench/budget).

One job does a piece of work (measure/work.py) again and again. Stretches alone and recorded
alternate; what pieces take while it is recorded, from the recorder's start to its end, is held
against the stretches alone beside it (measure/loss.py). `alone` instead of a budget: nobody
records, which tells how far all of this is to be believed. Its shares are held against those of
a short recording of everything. Before that `calibrate --pid` has looked on.
"""
import collections
import json
import os
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "measure"))
import loss
import pairs

BINARY = pairs.BINARY
PIECES = {"onpolicy": "bundled-ppo-walker2d", "offpolicy": "bundled-td3-walker2d",
          "sb3_ppo": "ppo-walker2d"}
CPUS = 2        # of the job: it may be moved
OFF_SECONDS = 25
ALL_SECONDS = 20
CALIBRATION_SECONDS = 20
NOTHING = "alone"
LEAST_POINTS = 0.02     # of a row to judge by


def say(*words):
    print(*words, file=sys.stderr, flush=True)


def job_of(workload, twin=False):
    return loss.Job(os.environ["RLS_JOB_PYTHON"], PIECES.get(workload, workload), CPUS, twin)


def watched(job, command):
    """What the job said while the command ran, from when to when that was, and what the command said."""
    began_ns = time.monotonic_ns()
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(command, stdout=said, stderr=said)
        answers = job.repeat(lambda: process.poll() is None)
        ended_ns = time.monotonic_ns()
        said.seek(0)
        text = said.read().strip()
    if process.returncode:
        sys.exit("%s: %s" % (" ".join(command[:2]), text))
    return answers, began_ns, ended_ns, text


def calibrate(job):
    """What hits cost this job; the recordings use it, unless it says that nothing is kept."""
    said = watched(job, [BINARY, "calibrate", "--pid", str(job.pid), "--duration", str(CALIBRATION_SECONDS)])[-1]
    say("\n".join(line for line in said.splitlines() if not line.startswith("recording ")))


def traced(trace):
    """[(from ns, to ns)]: when all probes were on. The first stretch, which no edge begins, is not in it."""
    with subprocess.Popen([BINARY, "dump", trace], stdout=subprocess.PIPE, text=True) as dump:
        edges = [json.loads(line) for line in dump.stdout if '"window"' in line]
    if dump.returncode:
        sys.exit("dump %s: exit %d" % (trace, dump.returncode))
    return [(first["time_ns"], last["time_ns"]) for first, last in zip(edges, edges[1:])
            if first["open"] and not last["open"]]


def record(job, budget, seconds):
    """The report of a recording, what the job did meanwhile, and when it was traced."""
    with tempfile.TemporaryDirectory() as folder:
        *meanwhile, _ = watched(job, [
            BINARY, "attach", "--pid", str(job.pid), "--overhead-budget", budget,
            "--duration", str(seconds), "--format", "json", "--report", folder + "/report.json",
            "-o", folder + "/trace"])
        with open(folder + "/report.json", encoding="utf-8") as file:
            report = json.load(file)
        windows = traced(folder + "/trace") if "budget" in report["overhead"] else []
        return report, (*meanwhile, windows)


def nobody(job, seconds):
    began_ns = time.monotonic_ns()
    return job.alone(seconds), began_ns, time.monotonic_ns()


def shares(report):
    """{(operation, category): (points, stated error in points)} of the work's corrected time; what is in no operation
    lies between two repetitions, and is the benchmark's."""
    time_of, error_of = collections.Counter(), collections.Counter()
    for row in report["breakdown"]:
        if row["operation"] in ("", pairs.WAITING):
            continue
        key = row["operation"], row["category"]
        time_of[key] += row["corrected_ns"]
        error_of[key] += row["error_ns"]
    total = sum(time_of.values())
    return {key: (100 * time_of[key] / total, 100 * error_of[key] / total) for key in time_of}


def compare(whole, part):
    say("  %-40s %9s %9s %9s %9s" % ("share of corrected time, points", "all", "budget",
                                       "differ", "± stated"))
    nothing = 0.0, 0.0
    judged, inside = 0, 0
    for key in sorted(whole | part, key=lambda key: -whole.get(key, nothing)[0]):
        one, other = whole.get(key, nothing), part.get(key, nothing)
        error = one[1] + other[1]
        if max(one[0], other[0]) >= LEAST_POINTS:
            judged += 1
            inside += abs(one[0] - other[0]) <= error
        say("  %-40s %9.2f %9.2f %+9.2f %9.2f" % (" ".join(key), one[0], other[0],
                                                  other[0] - one[0], error))
    worst = max(abs(whole.get(key, nothing)[0] - part.get(key, nothing)[0])
                for key in whole | part)
    say("  %d of %d rows of %.2f points and more within the stated errors; the largest difference is %.2f points; "
          "the largest error stated within the budget %.2f points" %
          (inside, judged, LEAST_POINTS, worst, max(error for _, error in part.values())))


HEAD = "%-6s %10s %6s %8s %8s | %8s %8s %8s %8s | %8s %7s %7s %7s %7s" % (
    "budget", "beginning", "end", "between", "(bursts)", "in all", "(bursts)", "(beyond)", "by twin", "twin's", "bursts", "drift",
    "cpus", "held")


def show(budget, found, report):
    by_twin = ["" if found[key] is None else "%+.2f%%" % (100 * found[key]) for key in ("beside_twin", "twin")]
    say("%-6s %9.2fs %5.2fs %+7.2f%% %+7.2f%% | %+7.2f%% %+7.2f%% %+7.2f%% %8s | %8s %6.1f%% %+6.1f%% %+6.1f%% %s" % (
        budget, found["beginning_s"], found["end_s"], 100 * found["between"],
        100 * found["between_with_bursts"], 100 * found["all"], 100 * found["all_with_bursts"],
        100 * found["beyond_bursts"], *by_twin, 100 * found["bursts"], 100 * found["drift"], 100 * found["cpus"],
        "%6.2f%%" % report["overhead"]["percent"] if report else ""))


def middle(values):
    return "%+.2f ± %.2f %%" % tuple(100 * value for value in pairs.robust(values))


def measure(job, budgets, seconds, rounds):
    """({budget: the last report, None for nobody}, {budget: what was found in each round}). Budgets take turns in each
    round, as the machine of one hour is not that of the next."""
    reports, found = {}, {budget: [] for budget in budgets}
    before = job.alone(OFF_SECONDS)
    for budget in budgets * rounds:
        if budget == NOTHING:
            reports[budget], meanwhile = None, nobody(job, seconds)
        else:
            reports[budget], meanwhile = record(job, budget, seconds)
        after = job.alone(OFF_SECONDS)
        found[budget].append(loss.of(job, before, *meanwhile[:1], after, *meanwhile[1:]))
        show(budget, found[budget][-1], reports[budget])
        before = after
    return reports, found


def summarize(found):
    """By budget, and, where nobody recorded in the same rounds, by how much more than that."""
    for budget, rounds in found.items():
        if len(rounds) < pairs.ROUNDS_MIN:
            continue
        say("%s: in all %s, bursts left in %s, beyond what they add alone %s, beside the twin %s" % (budget, *[
            middle([one[key] for one in rounds])
            for key in ("all", "all_with_bursts", "beyond_bursts", "beside_twin")]))
        if budget != NOTHING and NOTHING in found:
            say("    more than with nobody in the same round: %s, bursts left in %s, beside the twin %s" % tuple(
                middle([one[key] - nobody_there[key] for one, nobody_there in zip(rounds, found[NOTHING])])
                for key in ("all", "all_with_bursts", "beside_twin")))


def main():
    workload, seconds, rounds, budgets = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]
    job = job_of(workload, twin=True)
    try:
        calibrate(job)
        whole = record(job, "none", ALL_SECONDS)[0] if not os.environ.get("RLS_NO_SHARES") else None
        say(HEAD)
        reports, found = measure(job, budgets, seconds, rounds)
        summarize(found)
        for budget, report in reports.items():
            if not report:
                continue
            say("%s: %s" % (budget, json.dumps(report["overhead"].get("budget", "all was traced"))))
            if whole:
                compare(shares(whole), shares(report))
        json.dump({"version": 1, "work": PIECES.get(workload, workload), "budgets": found}, sys.stdout, indent=1)
    except pairs.Failed as error:
        sys.exit(str(error))
    finally:
        job.close()


if __name__ == "__main__":
    main()
