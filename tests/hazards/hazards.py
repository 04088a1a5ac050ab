#!/usr/bin/env python3
"""Targets that do what profilers are known to die of: hazards.py NAME --modules DIR …

Prints "ready", waits for a line, then does its hazard again and again: at least --times rounds
and until another line comes. Prints what the first round came to, and any other that came to
something else: whatever a profiler does meanwhile, the output and the exit status are the same.
Stderr tells when the rounds are done; --log gets when each was. README.md says what each hazard
is for; `endings.py` has those that end a process.
"""

import _ctypes
import argparse
import ctypes
import json
import os
import select
import signal
import sys
import threading
import time

PAUSE_SECONDS = 0.0005  # side by side they share few CPUs

HAZARDS = {}
ALONE = set()  # what they load changes how the profiler treats everyone beside them


def hazard(function):
    HAZARDS[function.__name__] = function
    return function


def alone(function):
    ALONE.add(function.__name__)
    return hazard(function)


class World:
    """The modules and libraries, loaded before "ready"."""

    def __init__(self, options):
        self.libraries = options.libraries
        sys.path.insert(0, options.modules)
        import truthsim
        import truththrow
        self.sim = truthsim
        self.throws = truththrow.throws
        self.c = self.library("libtruthc.so", ["protect", "signal_jumps", "thread_exits",
                                               "thread_cancels", "nest"])
        self.contexts = self.library("libtruthctx.so", ["contexts"])
        self.loose_open()
        self.python_callback = ctypes.CFUNCTYPE(ctypes.c_long, ctypes.c_long)
        self.switch = None

    def library(self, name, functions):
        library = ctypes.CDLL(os.path.join(self.libraries, name))
        for function in functions:
            getattr(library, name[3:-3] + "_" + function).restype = ctypes.c_long
        return library

    def loose_open(self):
        self.loose = _ctypes.dlopen(os.path.join(self.libraries, "libtruthc.so.2"), os.RTLD_NOW)
        self.loose_noop = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(
            _ctypes.dlsym(self.loose, "truthc_noop"))

    def loose_close(self):
        _ctypes.dlclose(self.loose)


# ---- frames that are left without returning ----

@hazard
def throw_through(world):
    """Every second of 20 calls throws out of the probed function: 10,000 in 1,000 rounds."""
    return world.throws("t", 20)


@hazard
def throw_deep(world):
    """Through several frames, thrown anew on the way, past destructors."""
    return world.throws("d", 3), world.throws("r", 3), world.throws("g", 3)


@hazard
def throw_through_c(world):
    """Through a C function, from a C++ function that it was given."""
    return world.throws("c", 4)


@hazard
def throw_into_python(world):
    """pybind11: exceptions that become Python's, and Python's that become exceptions."""
    import truthpb
    caught = 0
    for call in (truthpb.raises, lambda: truthpb.callback(lambda: 1 // 0, 1)):
        try:
            call()
        except (RuntimeError, ZeroDivisionError):
            caught += 1
    return caught


@hazard
def jump_out(world):
    return world.c.truthc_protect(ctypes.c_long(5), ctypes.c_long(5))


@hazard
def jump_from_signal(world):
    return world.c.truthc_signal_jumps(ctypes.c_long(3))


@hazard
def thread_exits(world):
    """Threads that leave by pthread_exit, and by cancellation, from probed functions."""
    return (world.c.truthc_thread_exits(ctypes.c_long(1)),
            world.c.truthc_thread_cancels(ctypes.c_long(1)))


@hazard
def thread_unwinds(world):
    """The same under C++ frames, whose destructors are to run."""
    return world.throws("x", 1), world.throws("k", 1)


# ---- stacks ----

@hazard
def other_stacks(world):
    return world.contexts.truthctx_contexts(ctypes.c_long(10))


def switch_greenlets(world, greenlet):
    """Three greenlets that leave one another in the midst of calls into the library."""
    total = 0

    def body(step):
        parent = greenlet.getcurrent().parent
        for _ in range(3):
            world.sim.callback("call_object", lambda: parent.switch(step), 1)
        return 0
    fellows = [greenlet.greenlet(body) for _ in range(3)]
    for number, fellow in enumerate(fellows):
        total += fellow.switch(number + 1)
    while any(not fellow.dead for fellow in fellows):
        for fellow in fellows:
            if not fellow.dead:
                total += fellow.switch() + world.sim.noargs()
    return total


@alone
def greenlets(world):
    import greenlet
    return switch_greenlets(world, greenlet)


@alone
def greenlets_late(world):
    """A library that switches stacks, loaded by a child while it is recorded."""
    def body():
        import greenlet
        time.sleep(0.1)
        return switch_greenlets(world, greenlet)
    return in_child(body)


@hazard
def deep_nesting(world):
    """100 frames of Python and C in turn, and 100 of C alone: 64 return probes may be pending."""
    def recurse(depth):
        return world.sim.recurse(recurse, depth - 1) + 1 if depth else 0
    callback = world.python_callback(lambda depth: depth)
    return recurse(100), world.c.truthc_nest(callback, ctypes.c_long(100))


# ---- signals ----

@hazard
def signal_handlers(world):
    """A Python handler that calls into the probed library, on top of calls into it."""
    fired = []

    def handle(*unused):
        world.sim.noargs()
        world.sim.callback("call_object", lambda: fired.append(1), 1)
    before = signal.signal(signal.SIGALRM, handle)
    signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
    total = 0
    while len(fired) < 4:
        total += world.sim.spin(50000) < 50000
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)
    return total


@hazard
def interrupts(world):
    """A signal whose handler raises, inside a callback from the probed library."""
    caught = 0
    for _ in range(3):
        try:
            world.sim.callback("call_object", lambda: os.kill(os.getpid(), signal.SIGINT), 3)
        except KeyboardInterrupt:
            caught += 1
    return caught


@hazard
def stop_and_continue(world):
    """A child stops and continues this process while it is in and out of the library."""
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        for _ in range(3):
            os.kill(parent, signal.SIGSTOP)
            time.sleep(0.0005)
            os.kill(parent, signal.SIGCONT)
            time.sleep(0.0005)
        os._exit(0)
    wrong = 0
    while os.waitpid(pid, os.WNOHANG) == (0, 0):
        wrong += (world.sim.noargs() != 1) + (world.sim.spin(10000) < 10000)
    return wrong


# ---- threads, processes, mappings ----

@hazard
def short_threads(world):
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(world.sim.noargs()))
               for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(answers), sum(answers)


@hazard
def unload(world):
    """dlclose of a probed library and the same file mapped again, elsewhere or not."""
    world.loose_close()
    world.loose_open()
    return sum(world.loose_noop(number) for number in range(20))


@hazard
def vfork_and_exec(world):
    pid = os.posix_spawn("/bin/true", ["true"], {})
    return world.sim.noargs(), os.waitpid(pid, 0)[1]


@hazard
def fork_storm(world):
    """Eight children at a time, each in the library at once."""
    pids = []
    for number in range(8):
        pid = os.fork()
        if pid == 0:
            world.sim.callback("call_object", world.sim.noargs, 5)
            os._exit(number)
        pids.append(pid)
    return [os.WEXITSTATUS(os.waitpid(pid, 0)[1]) for pid in pids]


def in_child(body):
    """(status, output) of a forked child that runs body, prints what it gives and exits."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.dup2(writer, 1)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            os.write(1, repr(body()).encode())
            status = 0
        except SystemExit as end:
            status = end.code
        finally:
            os._exit(status)
    os.close(writer)
    with os.fdopen(reader) as stream:
        output = stream.read()
    return os.waitpid(pid, 0)[1], output


def repeat(world, options):
    """Rounds until there are enough and a line has come; each one's begin and end."""
    body, first, times = HAZARDS[options.name], None, []
    while True:
        begin_ns = time.monotonic_ns()
        result = body(world)
        times.append((begin_ns, time.monotonic_ns()))
        if result != first:
            print(result, flush=True)
        first = result if first is None else first
        if len(times) == options.times:
            print("rounds done", file=sys.stderr, flush=True)
        if len(times) >= options.times and select.select([0], [], [], 0)[0]:
            return times
        time.sleep(PAUSE_SECONDS)


def main():
    import endings
    parser = argparse.ArgumentParser()
    parser.add_argument("name", choices=sorted([*HAZARDS, *endings.ENDINGS, *endings.ROUNDS]))
    parser.add_argument("--modules", required=True)
    parser.add_argument("--libraries", required=True)
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("--log")
    parser.add_argument("--once", action="store_true", help="an ending: in this very process")
    options = parser.parse_args()
    sys.setrecursionlimit(5000)
    world = World(options)
    for name, ending in endings.ENDINGS.items():
        HAZARDS[name] = lambda world, ending=ending: in_child(lambda: ending(world))
    for name, round_of in endings.ROUNDS.items():
        HAZARDS[name] = round_of
    print("ready", flush=True)
    while os.read(0, 1) not in (b"\n", b""):
        pass  # not a byte of the next line
    if options.once:
        endings.ENDINGS[options.name](world)
        return
    times = repeat(world, options)
    if options.log:
        with open(options.log, "w") as stream:
            json.dump(times, stream)
    print("survived", flush=True)


if __name__ == "__main__":
    sys.modules["hazards"] = sys.modules["__main__"]
    main()
