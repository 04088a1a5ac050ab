#!/usr/bin/env python3
"""Spends time on known lines, in known ways, and measures itself.

Waits for a line on stdin, works for about --seconds, prints its truth as one JSON line,
waits for another line and ends. The truth is {"file", "lines": {line: {kind: ns}}}: what a
thread's CPU clock says was run there, as python, native or system, and what the wall clock
says beyond it was waited, by reason. Lines are known by the #= marks in this file.
"""

import argparse
import asyncio
import collections
import ctypes
import functools
import json
import os
import sys
import threading
import time

SOURCE = os.path.abspath(__file__)
NS = 1000 * 1000 * 1000


def marks():
    with open(SOURCE, encoding="utf-8") as stream:
        return {line.split("#=")[1].strip(): number
                for number, line in enumerate(stream, 1) if "#= " in line and '"' not in line}


LINES = marks()
TRUTH = collections.defaultdict(collections.Counter)


class Section:
    """Adds the CPU time that passes inside on a line and kind, and the rest as a wait."""

    def __init__(self, name, kind, wait="run_queue"):
        self.line, self.kind, self.wait = LINES[name], kind, wait

    def __enter__(self):
        self.cpu_ns, self.wall_ns = time.thread_time_ns(), time.monotonic_ns()

    def __exit__(self, *error):
        cpu_ns = time.thread_time_ns() - self.cpu_ns
        wall_ns = time.monotonic_ns() - self.wall_ns
        TRUTH[self.line][self.kind] += cpu_ns
        TRUTH[self.line][self.wait] += max(0, wall_ns - cpu_ns)


# A thread that asks for its CPU time is taken off a busy CPU as soon as its share is used up, not at the next of
# the scheduler's ticks: who asks often is hardly met by them. So this is asked some twenty times a second.
def python_line(share):
    end_ns = time.thread_time_ns() + int(share * NS)
    with Section("python", "python"):
        while time.thread_time_ns() < end_ns:
            for _ in range(1000000): _ * 3 % 7  #= python


def native_lines(library, held, share):
    ns = int(share * NS)
    with Section("native without the lock", "native"):
        library.truthc_spin(ns)  #= native without the lock
    with Section("native with the lock", "native"):
        held.truthc_spin(ns)  #= native with the lock


def system_line(share):
    end_ns = time.thread_time_ns() + int(share * NS)
    with open("/dev/urandom", "rb", buffering=0) as stream:
        buffer = bytearray(1 << 20)
        with Section("system", "system"):
            while time.thread_time_ns() < end_ns:
                for _ in range(16): stream.readinto(buffer)  #= system


def waits(share):
    lock, pipe = threading.Lock(), os.pipe()
    lock.acquire()
    threading.Timer(share, lock.release).start()
    with Section("lock", "python", "lock"):
        lock.acquire()  #= lock
    with Section("sleep", "python", "sleep"):
        time.sleep(share)  #= sleep
    threading.Timer(share, os.write, (pipe[1], b"x")).start()
    with Section("pipe", "python", "io"):
        os.read(pipe[0], 1)  #= pipe
    os.close(pipe[0])
    os.close(pipe[1])


def shapes(library, share):
    """Every kind of code that has frames of its own."""
    ns = int(share * NS)
    spin = library.truthc_spin

    def inner():
        spin(ns)  #= nested function

    def generator():
        yield spin(ns)  #= generator

    async def coroutine():
        spin(ns)  #= coroutine

    def decorated(function):
        @functools.wraps(function)
        def wrapper():
            return function()
        return wrapper

    @decorated
    def wrapped():
        spin(ns)  #= decorated

    def deep(depth):
        if depth:
            return deep(depth - 1)
        return spin(ns)  #= recursion

    with Section("nested function", "native"):
        inner()
    with Section("generator", "native"):
        list(generator())
    with Section("coroutine", "native"):
        asyncio.run(coroutine())
    with Section("comprehension", "native"):
        [spin(ns) for _ in range(1)]  #= comprehension
    with Section("lambda", "native"):
        call = lambda: spin(ns)  #= lambda
        call()
    with Section("decorated", "native"):
        wrapped()
    with Section("recursion", "native"):
        deep(200)
    with Section("made by exec", "native"):
        made = compile("\n" * (LINES["made by exec"] - 1) + "spin(ns)", SOURCE, "exec")
        exec(made, dict(spin=spin, ns=ns))  #= made by exec


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--modules", required=True)
    parser.add_argument("--libraries", required=True)
    parser.add_argument("--seconds", type=float, default=8.0)
    arguments = parser.parse_args()
    path = os.path.join(arguments.libraries, "libtruthc.so")
    library, held = ctypes.CDLL(path), ctypes.PyDLL(path)
    for one in (library, held):
        one.truthc_spin.argtypes, one.truthc_spin.restype = [ctypes.c_uint64], ctypes.c_uint64
    share = arguments.seconds / 16
    print('{"ready": %d}' % os.getpid(), flush=True)
    sys.stdin.readline()
    python_line(2 * share)
    native_lines(library, held, 2 * share)
    system_line(2 * share)
    waiting = threading.Thread(target=waits, args=(share,))
    waiting.start()
    shapes(library, share / 2) # nothing here holds the interpreter's lock
    waiting.join()
    print(json.dumps({"file": SOURCE, "lines": TRUTH}), flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    main()
