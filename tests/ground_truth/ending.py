#!/usr/bin/env python3
"""Children whose last operations no boundary follows, and which end in every abrupt way.

Waits for a line on stdin, then prints what each child did, as one JSON line: a list of
{"pid", "end", "operations": {name: nanoseconds}}, and waits for another line."""

import argparse
import json
import os
import signal
import sys
import time

ENDS = {"exit": lambda: os._exit(0), "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
        "term": lambda: os.kill(os.getpid(), signal.SIGTERM), "abort": os.abort}
PAUSES = {"outer": 0.05, "inner": 0.10}


def pause(name, truth):
    start_ns = time.monotonic_ns()
    time.sleep(PAUSES[name])
    truth[name] = truth.get(name, 0) + time.monotonic_ns() - start_ns


def child(rlscope, end, writer):
    truth = {}
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))  # who waits for a CPU measures the scheduler
    except OSError:
        pass
    rlscope.set_phase("last")
    with rlscope.operation("outer"):
        pause("outer", truth)
        with rlscope.operation("inner"):
            pause("inner", truth)
    time.sleep(0.05)
    os.write(writer, json.dumps({"pid": os.getpid(), "end": end, "operations": truth}).encode())
    ENDS[end]()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--modules", required=True)
    options = parser.parse_args()
    sys.path.insert(0, options.modules)
    import rlscope
    import truthsim
    print(json.dumps({"ready": os.getpid()}), flush=True)
    sys.stdin.readline()
    truthsim.noargs()
    rows = []
    for end in ENDS:
        reader, writer = os.pipe()
        if not os.fork():
            child(rlscope, end, writer)
        os.close(writer)
        os.wait()
        rows.append(json.loads(os.read(reader, 4096)))
        os.close(reader)
    print(json.dumps(rows), flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    main()
