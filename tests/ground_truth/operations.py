#!/usr/bin/env python3
"""Spends known times in functions that are operations, and measures itself.

Waits for a line on stdin, works for --seconds, prints its truth as one JSON line, waits for
another line and ends. The truth is {operation: {category: ns}} by the wall clock, of
`simulation` (Env.step, which calls itself and libtruthc), `training` (Learner.train, which
also waits) and "" (neither). With --annotate the same functions are annotated operations.
"""

import argparse
import collections
import contextlib
import ctypes
import json
import os
import random
import sys
import time

TRUTH = collections.defaultdict(collections.Counter)
NS = 1000 * 1000 * 1000


@contextlib.contextmanager
def unnamed(name):
    yield


@contextlib.contextmanager
def spending(operation, category):
    start_ns = time.monotonic_ns()
    yield
    TRUTH[operation][category] += time.monotonic_ns() - start_ns


def spin(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for _ in range(300):
            _ * 3 % 7


class Env:
    def __init__(self, library):
        self.library = library

    def step(self, depth):
        if depth:
            return self.step(depth - 1)
        with spending("simulation", "python"):
            spin(0.001)
        with spending("simulation", "simulator"):
            self.library.truthc_spin(2 * 1000 * 1000)


class Learner:
    def __init__(self, library):
        self.library = library

    def train(self):
        with spending("training", "python"):
            spin(0.002)
            time.sleep(0.002)
        with spending("training", "simulator"):
            self.library.truthc_spin(500 * 1000)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--modules", required=True)
    parser.add_argument("--libraries", required=True)
    parser.add_argument("--seconds", type=float, default=3.5)  # of its CPU time
    parser.add_argument("--annotate", action="store_true")
    arguments = parser.parse_args()
    library = ctypes.CDLL(os.path.join(arguments.libraries, "libtruthc.so"))
    library.truthc_spin.argtypes, library.truthc_spin.restype = [ctypes.c_uint64], ctypes.c_uint64
    named = unnamed
    if arguments.annotate:
        import rlscope
        named = rlscope.operation
    env, learner, chance = Env(library), Learner(library), random.Random(1)
    print('{"ready": %d}' % os.getpid(), flush=True)
    sys.stdin.readline()
    end = time.thread_time() + arguments.seconds
    while time.thread_time() < end:
        which = chance.random()
        if which < 0.5:
            with named("simulation"):
                env.step(3)
        elif which < 0.8:
            with named("training"):
                learner.train()
        else:
            with spending("", "python"):
                spin(0.001)
    print(json.dumps(TRUTH), flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    main()
