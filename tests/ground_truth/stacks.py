#!/usr/bin/env python3
"""Runs down call paths drawn at random, spins at the end of each, and tells which stack it
had in which time, as it sees it itself.

Waits for a line on stdin, works in several threads until each kind of spinning has run for
--seconds by the threads' CPU clocks, prints its truth as one JSON line, waits for another line
and ends. The truth: {"frames": [[file, function,
line]], "phases": [{tid, start_ns, end_ns, stack: [index in frames], depth, spin: [lines]}]};
stacks innermost first (of deep ones the beginning), times of CLOCK_MONOTONIC, and `spin` the
lines that the innermost frame may be in between those times. With --deep N: one thread that spins
for --seconds, N calls deep. With --fleeting, code made by exec is gone after a call, and other code is made
where it was.
"""

import argparse
import collections
import functools
import json
import os
import random
import sys
import threading
import time

THREADS = 4
LINKS_MAX = 12
DEEP_STACK_BYTES = 1 << 30
SLEEPS = 60
now_ns = time.monotonic_ns
cpu_ns = time.thread_time_ns
FRAMES = {}
FRAMES_LOCK = threading.Lock()  # two threads would give two frames one number, and every later one a wrong one
PHASES = []
RAN_NS, COUNTS, RAN_LOCK = collections.Counter(), collections.Counter(), threading.Lock()  # by end


def stack_of(frame):
    stack = []
    while frame:
        code = frame.f_code
        name = getattr(code, "co_qualname", code.co_name)
        with FRAMES_LOCK:
            stack.append(FRAMES.setdefault((code.co_filename, name, frame.f_lineno), len(FRAMES)))
        frame = frame.f_back
    return stack


def note_stack(start_ns, end_ns, lines):
    """Of the caller's stack, which stood like that from start to end, in its lines."""
    PHASES.append({"tid": threading.get_native_id(), "start_ns": start_ns, "end_ns": end_ns,
                   "stack": stack_of(sys._getframe(1)), "spin": lines})


# ---- what a path ends in; whoever is called between the two times is no Python ----

def spin_in_python(path, at):
    end_ns, line = cpu_ns() + path[at], sys._getframe().f_lineno
    start_ns = now_ns()
    while cpu_ns() < end_ns:
        for _ in range(1000): _ * 3 % 7
    note_stack(start_ns, now_ns(), list(range(line + 1, line + 5)))


def spin_with_lock(path, at):
    spin, ns, line = MODULE.spin, path[at], sys._getframe().f_lineno + 1
    start_ns = now_ns(); spin(ns); end_ns = now_ns()
    note_stack(start_ns, end_ns, [line])


def spin_without_lock(path, at):
    spin, ns, line = MODULE.spin_nogil, path[at], sys._getframe().f_lineno + 1
    start_ns = now_ns(); spin(ns); end_ns = now_ns()
    note_stack(start_ns, end_ns, [line])


def sleep(path, at):
    seconds, line = path[at] / 1e9, sys._getframe().f_lineno + 1
    start_ns = now_ns(); time.sleep(seconds); end_ns = now_ns()
    note_stack(start_ns, end_ns, [line])


ENDS = [spin_in_python, spin_with_lock, spin_without_lock, sleep]


# ---- what it leads through ----

def plain(path, at):
    return path[at](path, at + 1)


def nested(path, at):
    def inner():
        def inmost():
            return path[at](path, at + 1)
        return inmost()
    return inner()


class Thing:
    def method(self, path, at):
        return path[at](path, at + 1)

    @staticmethod
    def of_class(path, at):
        return path[at](path, at + 1)

    def __init__(self, path, at):
        path[at](path, at + 1)

    @property
    def attribute(self):
        return self.path[self.at](self.path, self.at + 1)


def method(path, at):
    return Thing.method(None, path, at)


def attribute(path, at):
    thing = Thing.__new__(Thing)
    thing.path, thing.at = path, at
    return thing.attribute


def generator(path, at):
    def inner():
        yield 1
        yield path[at](path, at + 1)
    for _ in inner():
        pass


def delegating(path, at):
    def inner():
        yield path[at](path, at + 1)
    def outer():
        yield from inner()
    list(outer())


def coroutine(path, at):
    async def inner():
        return path[at](path, at + 1)

    async def outer():
        return await inner()
    try:
        outer().send(None)
    except StopIteration:
        pass


def comprehension(path, at):
    return [
        path[at](path, at + 1)
        for _ in "x"
    ]


def comprehensions(path, at):
    return {one: [path[at](path, at + 1) for _ in "x"] for one in "y"}


def recursion(path, at, depth=20):
    if depth:
        return recursion(path, at, depth - 1)
    return path[at](path, at + 1)


def mapped(path, at):
    return list(map(lambda _: path[at](path, at + 1), "x"))


def sorting(path, at):
    return sorted("x", key=lambda _: path[at](path, at + 1))


def partial(path, at):
    return functools.partial(path[at], path)(at + 1)


def decorated(function):
    @functools.wraps(function)
    def wrapper(*arguments, **keywords):
        return function(*arguments, **keywords)
    return wrapper


@decorated
def wrapped(path, at):
    return path[at](path, at + 1)


@functools.lru_cache(maxsize=None)
def compiled_once(source, name):
    return compile(source, name, "exec")


compiled = compiled_once


def executed(path, at):
    exec(compiled("\n\n\npath[at](path, at + 1)", "<made by exec>"), dict(path=path, at=at))


def far_away(path, at):
    """Its lines are farther apart than one byte tells."""
    source = "def grown(path, at):\n" + "\n" * 700 + " return (path[at]\n\n(path, at + 1))\n"
    names = {}
    exec(compiled(source, "<grown ü 漢>"), names)
    names["grown"](path, at)


def raising(path, at):
    try:
        raise ValueError
    except ValueError:
        try:
            return path[at](path, at + 1)
        finally:
            pass


def with_block(path, at):
    with threading.Lock():
        return path[at](path, at + 1)


LINKS = [plain, nested, Thing, Thing.of_class, method, attribute, generator, delegating, coroutine,
         comprehension, comprehensions, recursion, mapped, sorting, partial, wrapped, executed,
         far_away, raising, with_block]


def is_enough(wanted_ns):
    """Whether each end has run for so long, however little of the CPUs there was."""
    with RAN_LOCK:
        return COUNTS[sleep] >= SLEEPS and all(RAN_NS[end] >= wanted_ns for end in ENDS if end != sleep)


def work(seed, wanted_ns):
    chance = random.Random(seed)
    while not is_enough(wanted_ns):
        end = chance.choice(ENDS)
        path = [chance.choice(LINKS) for _ in range(chance.randint(1, LINKS_MAX))]
        path += [end, chance.randint(5, 30) * 1000000]
        begin_ns = cpu_ns()
        path[0](path, 1)
        with RAN_LOCK:
            RAN_NS[end] += cpu_ns() - begin_ns
            COUNTS[end] += 1


def go_deep(depth, path):
    if depth:
        return go_deep(depth - 1, path)
    return path[0](path, 1)


def main():
    global MODULE, compiled
    parser = argparse.ArgumentParser()
    parser.add_argument("--modules", required=True)
    parser.add_argument("--seconds", type=float, default=0.6)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--deep", type=int, default=0)
    parser.add_argument("--fleeting", action="store_true", help="compile what is run by exec anew")
    arguments = parser.parse_args()
    if arguments.fleeting:
        compiled = lambda source, name: compile(source, name, "exec")
    sys.path.insert(0, arguments.modules)
    import truthsim as MODULE
    print('{"ready": %d}' % os.getpid(), flush=True)
    sys.stdin.readline()
    if arguments.deep:
        sys.setrecursionlimit(arguments.deep + 1000)
        threading.stack_size(DEEP_STACK_BYTES)
        path = [spin_in_python, int(arguments.seconds * 1e9)]
        threads = [threading.Thread(target=go_deep, args=(arguments.deep, path))]
    else:
        threads = [threading.Thread(target=work, args=(arguments.seed + i, int(arguments.seconds * 1e9)))
                   for i in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for phase in PHASES:
        phase["depth"], phase["stack"] = len(phase["stack"]), phase["stack"][:300]
    print(json.dumps({"frames": list(FRAMES), "phases": PHASES}), flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    main()
