#!/usr/bin/env python3
"""Mostly waits, and wakes up often: what profilers see least of.

Waits for a line on stdin, then --wakes times for a thread that sleeps first; prints its truth as one JSON
line, waits for another line and ends. The truth is {"file", "io": {line: ns}, "sleep_ns", "cpu_ns"}: the wall
time of the wait, what the threads slept together, and what the process has run for.
"""

import argparse
import json
import os
import sys
import threading
import time


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--modules", required=True)
    parser.add_argument("--wakes", type=int, default=600)
    parser.add_argument("--sleep", type=float, default=0.01)
    arguments = parser.parse_args()
    read, write = os.pipe()
    waited_ns = slept_ns = 0
    line = 0

    def sleeper():
        nonlocal slept_ns
        begin_ns = time.monotonic_ns()
        time.sleep(arguments.sleep)
        slept_ns += time.monotonic_ns() - begin_ns
        os.write(write, b"x")

    print('{"ready": %d}' % os.getpid(), flush=True)
    sys.stdin.readline()
    begin_cpu_ns = time.process_time_ns()
    for _ in range(arguments.wakes):
        threading.Thread(target=sleeper).start()
        begin_ns = time.monotonic_ns()
        line = sys._getframe().f_lineno + 1
        os.read(read, 1)
        waited_ns += time.monotonic_ns() - begin_ns
    cpu_ns = time.process_time_ns() - begin_cpu_ns
    print(json.dumps({"file": os.path.abspath(__file__), "io": {line: waited_ns}, "sleep_ns": slept_ns,
                      "cpu_ns": cpu_ns}), flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    main()
