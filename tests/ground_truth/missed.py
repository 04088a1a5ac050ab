#!/usr/bin/env python3
"""A process whose news outgrow the recorder's control ring while that is held up.

Lines on stdin are steps, each answered by a line of JSON: begin (a child and a thread that
idle), flood (operations; then the child and the thread end, and another child is forked
that makes calls), late (calls in an operation that was entered in the flood, by the child
too), quit.
"""

import argparse
import json
import os
import sys
import threading
import time

OPERATIONS = 150000
CALLS = 1000


def calls():
    import truthsim
    for _ in range(CALLS):
        truthsim.noargs()


def child_that(body):
    """(pid, the end of a pipe whose closing lets the child's body go on)."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(writer)
        body(reader)
        os._exit(0)
    os.close(reader)
    return pid, writer


def calls_twice(reader):
    calls()
    os.read(reader, 1)
    calls()


def calls_once(reader):
    calls()
    os.read(reader, 1)


class Steps:
    def __init__(self):
        self.thread_ends = threading.Event()

    def begin(self):
        self.early, self.early_end = child_that(calls_once)
        self.thread = threading.Thread(target=lambda: (calls(), self.thread_ends.wait()))
        self.thread.start()
        calls()
        return {"early": self.early, "thread": self.thread.native_id}

    def flood(self):
        import rlscope
        for _ in range(OPERATIONS):
            with rlscope.operation("flood"):
                pass
        os.close(self.early_end)
        os.waitpid(self.early, 0)
        self.thread_ends.set()
        self.thread.join()
        self.late_operation = rlscope.operation("late")
        self.late_operation.__enter__()
        self.missed, self.missed_end = child_that(calls_twice)
        return {"missed": self.missed}

    def late(self):
        start = time.monotonic()
        while time.monotonic() - start < 0.5:
            calls()
        os.close(self.missed_end)
        os.waitpid(self.missed, 0)
        return {}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--modules", required=True)
    options = parser.parse_args()
    sys.path.insert(0, options.modules)
    import rlscope
    import truthsim
    with rlscope.operation("first"):
        truthsim.noargs()
    print(json.dumps({"ready": os.getpid()}), flush=True)
    steps = Steps()
    for line in iter(sys.stdin.readline, "quit\n"):
        print("[%s]" % json.dumps(getattr(steps, line.strip())()), flush=True)


if __name__ == "__main__":
    main()
