#!/usr/bin/env python3
"""check_defaults.py SOURCES PROGRAM: documented defaults are the code's.

Each row says where the code has a default, and which sentences of manual pages, documents and
--help give it. A row whose place in the code is gone, or whose sentence is, fails too.
"""
import re
import subprocess
import sys

SOURCES, PROGRAM = sys.argv[1:]


def text_of(path):
    with open("%s/%s" % (SOURCES, path), encoding="utf-8") as file:
        return file.read()


def help_of(command):
    return " ".join(subprocess.run([PROGRAM, command, "--help"], capture_output=True, text=True,
                                   check=True).stdout.split())


OPTIONS = "userspace/commands/options/record_options"
# (file, pattern of the value in it, how it is written) -> places that say it, {} for the value
DEFAULTS = [
    ((OPTIONS + ".h", r"#define RLS_SAMPLE_HZ (\d+)", int), [
        ("doc/man/rlscope-bpf-attach.1", "The default is {}."),
        ("doc/man/rlscope-bpf-run.1", "The default is {}."),
        ("--help attach", "({} by default"), ("--help run", "({} by default")]),
    ((OPTIONS + ".c", r"\.budget_percent = (\d+)", int), [
        ("doc/man/rlscope-bpf-attach.1", ".Pq default {}% ."),
        ("doc/man/rlscope-bpf-run.1", ".Pq default {}% ."),
        ("doc/overhead.md", "`--overhead-budget {}%` is the default for recordings")]),
    (("userspace/commands/options/watch_options.c", r"#define BUDGET_PERCENT (\d+)", int), [
        ("doc/overhead.md", "`monitor` and `top` use {} %")]),
    (("userspace/metrics/http/listen_address.h", r'#define RLS_LISTEN_DEFAULT "([^"]+)"', str), [
        ("doc/man/rlscope-bpf-monitor.1", "by default on {}")]),
    (("userspace/metrics/monitor_config.h", r"#define RLS_MONITOR_INTERVAL_SECONDS (\d+)", int), [
        ("--help monitor", "(default {})")]),
    (("userspace/commands/calibrate.c", r"#define IN_VIVO_NS (\d+)", lambda ns: int(ns) // 10**9), [
        ("doc/man/rlscope-bpf-calibrate.1", "for {} seconds by default"),
        ("--help calibrate", "(default {})")]),
    (("userspace/commands/compare.c", r"#define NOISE_DEFAULT ([\d.]+)",
      lambda share: round(100 * float(share))), [
          ("doc/man/rlscope-bpf-compare.1", "{} % by default")]),
]


def sampled_at(budget):
    """choose_hz() of record_options.c: below 4 % in proportion, a number of its own at least."""
    header = text_of(OPTIONS + ".h")
    whole = int(re.search(r"#define RLS_SAMPLE_HZ (\d+)", header).group(1))
    least = int(re.search(r"#define RLS_SAMPLE_HZ_LEAST (\d+)", header).group(1))
    below = int(re.search(r"budget_percent < (\d+)\)\s*hz = ", text_of(OPTIONS + ".c")).group(1))
    return int(max(least, budget / below * whole))


def main():
    faults, checked = [], 0
    rows = [(path, re.search(pattern, text_of(path)), written, places)
            for (path, pattern, written), places in DEFAULTS]
    sentence = "%d at 2%%, %d at 1%%" % (sampled_at(2), sampled_at(1))
    wanted = [(place, sentence) for place in
              ("doc/man/rlscope-bpf-attach.1", "doc/man/rlscope-bpf-run.1", "--help attach")]
    for path, found, written, places in rows:
        if not found:
            faults.append("%s has no such default any more" % path)
            continue
        value = written(found.group(1))
        wanted += [(place, said.format(value)) for place, said in places]
    for place, said in wanted:
        text = help_of(place.split()[1]) if place.startswith("--help") else text_of(place)
        checked += 1
        if said not in text:
            faults.append("%s does not say '%s'" % (place, said))
    for fault in faults:
        print(fault)
    print("%d sentences, %d faults" % (checked, len(faults)))
    return 1 if faults or not checked else 0


if __name__ == "__main__":
    sys.exit(main())
