#!/usr/bin/env python3
"""Enters and leaves functions all the time, in ways that are known: which may call which, where.

Waits for a line on stdin, works for --seconds of each thread's CPU time, prints its truth as
one JSON line, waits for another line and ends. The truth, as sys.setprofile reported it of one
round beforehand: {"file", "calls": [[caller, line, callee]], "lines": {function: [first, last]},
"first": [functions that are called otherwise]}.
"""

import argparse
import json
import os
import sys
import threading
import time

THREADS = 2
CALLS, LINES = set(), {}


def name_of(code):
    return getattr(code, "co_qualname", code.co_name)


def lines_of(code):
    table = code.co_lines() if hasattr(code, "co_lines") else None
    if table is None:
        import dis
        lines = [line for _, line in dis.findlinestarts(code)]
    else:
        lines = [line for _, _, line in table if line]
    return [min([code.co_firstlineno, *lines]), max([code.co_firstlineno, *lines])]


def see(frame, what, argument):
    if what != "call" or frame.f_code.co_filename != __file__:
        return
    callee, caller = name_of(frame.f_code), frame.f_back
    LINES[callee] = lines_of(frame.f_code)
    if caller and caller.f_code.co_filename == __file__:
        LINES[name_of(caller.f_code)] = lines_of(caller.f_code)
        CALLS.add((name_of(caller.f_code), caller.f_lineno, callee))


# ---- each function has one way to be called ----

def leaf_of_map(x): return x
def leaf_of_sort(x): return -x
def leaf_plain(x): return x
def leaf_of_leaf(x): return leaf_plain(x)
def leaf_deep(x): return x


def by_map():
    return list(map(leaf_of_map, range(6)))


def by_sort():
    return sorted(range(6), key=leaf_of_sort)


def by_call():
    for x in range(6):
        leaf_of_leaf(x)


def generates():
    for x in range(6):
        yield x


def by_generator():
    return sum(generates())


def by_lambda():
    return max(range(6), key=lambda x: x + 1)


class Thing:
    def __init__(self, x):
        self.x = x

    def __eq__(self, other):
        return self.x == other.x

    def __del__(self):
        self.x = 0

    @property
    def attribute(self):
        return self.x


def by_class():
    for x in range(3):
        Thing(x) == Thing(x)
        Thing(x).attribute


def by_comprehension():
    return [[y for y in range(2)] for _ in range(3)]


async def awaited():
    return 1


async def awaits():
    return await awaited()


def by_coroutine():
    try:
        awaits().send(None)
    except StopIteration:
        pass


def down(depth):
    return down(depth - 1) if depth else leaf_deep(depth)


def many_locals(depth):
    a, b, c, d, e, f, g, h = range(8)
    return sum(map(many_locals, [depth - 1])) if depth else a + b + c + d + e + f + g + h


def leaf_by_turns(x): return x


def generates_by_turns():
    for x in range(20):
        yield x


def by_turns():
    # The memory of one's frame is where the other looks for its own.
    turns = generates_by_turns(); next(turns)
    for x in range(6):
        for _ in map(leaf_by_turns, "xy"): pass
        list(zip(turns, "x"))
        [].__init__(map(leaf_by_turns, "xy"))
    list(turns)


def by_depth():
    # At each depth the memory of frames ends elsewhere.
    for depth in (1, 7, 60):
        down(depth)
    many_locals(40)


def round_of_all():
    by_map()
    by_sort()
    by_call()
    by_generator()
    by_lambda()
    by_class()
    by_comprehension()
    by_coroutine()
    by_turns()
    by_depth()


def deeper(depth, end_ns):
    if depth:
        return deeper(depth - 1, end_ns)
    while True:
        round_of_all()
        if time.thread_time_ns() >= end_ns:
            break


def start(depth, cpu_ns):
    deeper(depth, time.thread_time_ns() + cpu_ns)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--modules", required=True)
    parser.add_argument("--seconds", type=float, default=1.5)
    arguments = parser.parse_args()
    sys.setprofile(see)
    start(3, 0)
    sys.setprofile(None)
    print('{"ready": %d}' % os.getpid(), flush=True)
    sys.stdin.readline()
    threads = []
    for i in range(THREADS):  # no comprehension: its name is one of those that are looked at
        threads.append(threading.Thread(target=start, args=(3 + 5 * i, int(arguments.seconds * 1e9))))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(json.dumps({"file": __file__, "calls": sorted(CALLS), "lines": LINES,
                      "first": ["start", "main", "<module>"]}), flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    main()
