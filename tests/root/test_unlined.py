#!/usr/bin/python3
"""A loop that ends in an `if`: its jump back has no line of its own in CPython 3.10 and 3.11, and threads hand the
GIL over there. test_unlined.py TAG"""

import sys
import tempfile

import harness

PROGRAM = """
import sys, threading

def spin(n):
    odd = 0
    for i in range(n):
        odd += 1
        if i == n - 1:
            sys.stdout.write("end")

threading.Thread(target=spin, args=(1 << 60,), daemon=True).start()
print("ready", flush=True)
spin(1 << 60)
"""
LINE_OF_IF, LINE_OF_CALL = 8, 9
LOOP = {6, 7, LINE_OF_IF}
RUN_SECONDS = 1.5


def run_ns(row):
    return row["python_ns"] + row["native_ns"] + row["system_ns"]


def main():
    harness.need_root_and_profiler()
    checks = harness.Checks()
    with tempfile.NamedTemporaryFile("w", prefix="rls-", suffix=".py") as program:
        program.write(PROGRAM)
        program.flush()
        with harness.Process([harness.interpreter(sys.argv[1]), program.name]) as job:
            job.out.wait("ready", harness.PATIENCE_SECONDS)
            with harness.Recording([job.pid], "--sample-hz", "499", roles=[]) as recording:
                harness.let_run(job.pid, RUN_SECONDS)
                checks.that(recording.stop() == 0, "recorded")
                rows = [row for row in recording.report()["lines"] if row["function"].endswith("spin")]
    total_ns = sum(run_ns(row) for row in rows)
    by_line = {row["line"]: run_ns(row) / total_ns for row in rows}
    checks.saw("shares by line: %s" % by_line)
    checks.that(set(by_line) <= LOOP | {LINE_OF_CALL}, "every sample has a line of the loop")
    checks.that(by_line.get(LINE_OF_CALL, 0) < 0.02, "the line that never ran has none")
    checks.that(by_line.get(LINE_OF_IF, 0) > 0.05, "the `if` has its part")
    checks.finish()


if __name__ == "__main__":
    main()
