#!/usr/bin/python3
"""folded.py RLSCOPE_BPF TRACE...: folded stacks are nothing but stacks; warnings go to stderr."""
import json
import subprocess
import sys


def report(trace, form):
    return subprocess.run([sys.argv[1], "report", "--format", form, trace], capture_output=True,
                          text=True, timeout=600)


def main():
    warned = 0
    for trace in sys.argv[2:]:
        whole, folded = json.loads(report(trace, "json").stdout), report(trace, "folded")
        sums = [int(line.rsplit(" ", 1)[1]) for line in folded.stdout.split("\n")[:-1]]
        assert sum(sums) == sum(thread["wall_ns"] for thread in whole["threads"]), trace
        for warning in whole["warnings"]:
            last = warning.split()[-1]
            assert last in folded.stderr, (trace, warning, folded.stderr)
            warned += 1
    assert warned, "no trace has a warning"


if __name__ == "__main__":
    main()
