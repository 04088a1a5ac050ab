#!/usr/bin/env python3
"""Targets that do what profilers are known to die of: hazards.py NAME --modules DIR …

Prints "ready", waits for a line, does its hazard and prints a result that depends on
nothing but the hazard; output and exit status must be the same with and without a
profiler. With --loop it goes on until another line comes, and prints again only a result
that differs. README.md says what each one is for.
"""

import _ctypes
import argparse
import ctypes
import os
import select
import signal
import subprocess
import sys
import threading
import time

HAZARDS = {}
FATAL = set()  # these end the process, so once is all


def hazard(function):
    HAZARDS[function.__name__] = function
    return function


def fatal(function):
    FATAL.add(function.__name__)
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
        self.c = ctypes.CDLL(os.path.join(options.libraries, "libtruthc.so"))
        self.contexts = ctypes.CDLL(os.path.join(options.libraries, "libtruthctx.so"))
        self.contexts.truthctx_contexts.restype = ctypes.c_long
        for name in ("protect", "signal_jumps", "thread_exits", "thread_cancels"):
            getattr(self.c, "truthc_" + name).restype = ctypes.c_long
        self.loose_open()
        self.python_callback = ctypes.CFUNCTYPE(ctypes.c_long, ctypes.c_long)

    def loose_open(self):
        self.loose = _ctypes.dlopen(os.path.join(self.libraries, "libtruthc.so.2"), os.RTLD_NOW)
        self.loose_noop = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(
            _ctypes.dlsym(self.loose, "truthc_noop"))

    def loose_close(self):
        _ctypes.dlclose(self.loose)


@hazard
def throw_through(world):
    """Every second of 20,000 calls throws out of the probed function."""
    return world.throws("t", 20000)


@hazard
def throw_deep(world):
    return world.throws("d", 1000), world.throws("r", 1000), world.throws("g", 1000)


@hazard
def jump_out(world):
    return world.c.truthc_protect(ctypes.c_long(5), ctypes.c_long(1000))


@hazard
def jump_from_signal(world):
    return world.c.truthc_signal_jumps(ctypes.c_long(500))


@hazard
def other_stacks(world):
    return world.contexts.truthctx_contexts(ctypes.c_long(1000))


@hazard
def signal_handlers(world):
    """A Python handler that calls into the probed library, on top of calls into it."""
    fired = []

    def handle(*unused):
        world.sim.noargs()
        world.sim.callback("call_object", lambda: fired.append(1), 1)
    before = signal.signal(signal.SIGALRM, handle)
    signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)
    total = sum(world.sim.spin(200000) >= 200000 for _ in range(300))
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)
    return total, len(fired) > 3


@hazard
def interrupts(world):
    """A signal whose handler raises, inside a callback from the probed library."""
    caught = 0
    for _ in range(200):
        try:
            world.sim.callback("call_object", lambda: os.kill(os.getpid(), signal.SIGINT), 3)
        except KeyboardInterrupt:
            caught += 1
    return caught


@hazard
def thread_exits(world):
    """Threads that leave by pthread_exit, and by cancellation, from probed functions."""
    return (world.c.truthc_thread_exits(ctypes.c_long(200)),
            world.c.truthc_thread_cancels(ctypes.c_long(200)))


@hazard
def short_threads(world):
    answers = []
    for _ in range(40):
        threads = [threading.Thread(target=lambda: answers.append(world.sim.noargs()))
                   for _ in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return len(answers), sum(answers)


@hazard
def deep_nesting(world):
    """300 frames of Python and C in turn, and 500 of C alone."""
    def recurse(depth):
        return world.sim.recurse(recurse, depth - 1) + 1 if depth else 0
    callback = world.python_callback(lambda depth: depth)
    world.c.truthc_nest.restype = ctypes.c_long
    deep = world.c.truthc_nest(callback, ctypes.c_long(500))
    return [recurse(300) for _ in range(20)], deep


@hazard
def unload(world):
    """dlclose of a probed library and the same file mapped again, elsewhere or not."""
    total = 0
    for number in range(100):
        world.loose_close()
        world.loose_open()
        total += sum(world.loose_noop(number) for _ in range(50))
    return total


@hazard
def vfork_and_exec(world):
    outputs = [subprocess.check_output(["echo", str(number)]) for number in range(20)]
    for _ in range(20):
        pid = os.posix_spawn("/bin/true", ["true"], {})
        outputs.append(os.waitpid(pid, 0)[1])
        world.sim.noargs()
    return outputs


@hazard
def fork_storm(world):
    """100 children at a time, each in the library at once."""
    statuses = []
    for _ in range(2):
        pids = []
        for number in range(100):
            pid = os.fork()
            if pid == 0:
                world.sim.callback("call_object", world.sim.noargs, 5)
                os._exit(number % 7)
            pids.append(pid)
        statuses += [os.WEXITSTATUS(os.waitpid(pid, 0)[1]) for pid in pids]
    return sum(statuses), len(statuses)


@hazard
def stop_and_continue(world):
    """A child stops and continues this process while it is in and out of the library."""
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        for _ in range(50):
            os.kill(parent, signal.SIGSTOP)
            time.sleep(0.002)
            os.kill(parent, signal.SIGCONT)
            time.sleep(0.003)
        os._exit(0)
    rounds = 0
    while os.waitpid(pid, os.WNOHANG) == (0, 0):
        rounds += world.sim.noargs() + (world.sim.spin(100000) >= 100000)
    return rounds > 100


@fatal
def exit_in_call(world):
    world.c.truthc_exit(7)


@fatal
def exit_in_callback(world):
    world.sim.callback("call_object", lambda: os._exit(9), 1)


@fatal
def system_exit_in_callback(world):
    world.sim.callback("call_object", lambda: sys.exit(11), 1)


@fatal
def killed_in_callback(world):
    world.sim.callback("call_object", lambda: os.kill(os.getpid(), signal.SIGKILL), 1)


@fatal
def aborted_in_callback(world):
    world.sim.callback("call_object", lambda: os.kill(os.getpid(), signal.SIGABRT), 1)


@fatal
def exec_in_callback(world):
    script = "import truthsim; print(sum(truthsim.noargs() for _ in range(100)))"
    os.environ["PYTHONPATH"] = sys.path[0]
    world.sim.callback(
        "call_object", lambda: os.execv(sys.executable, [sys.executable, "-c", script]), 1)


class Filter(ctypes.Structure):
    _fields_ = [("code", ctypes.c_ushort), ("jt", ctypes.c_ubyte), ("jf", ctypes.c_ubyte),
                ("k", ctypes.c_uint)]


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.POINTER(Filter))]


def sandbox():
    """Kills the process on the system calls that newer kernels' probes make in the target
    (335 uretprobe, 336 uprobe), which no sandbox's list of allowed ones has."""
    rules = (Filter * 5)(Filter(0x20, 0, 0, 0),           # the call's number
                         Filter(0x35, 0, 2, 335),         # if it is at least 335 ...
                         Filter(0x25, 1, 0, 336),         # ... and not above 336,
                         Filter(0x06, 0, 0, 0x80000000),  # kill the process;
                         Filter(0x06, 0, 0, 0x7fff0000))  # else allow
    libc = ctypes.CDLL(None, use_errno=True)
    program = Program(len(rules), rules)
    if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.byref(program), 0, 0):
        raise OSError(ctypes.get_errno(), "no seccomp filter")


@hazard
def sandboxed(world):
    sandbox()
    total = sum(world.sim.noargs() for _ in range(2000))
    return total, world.sim.callback("call_object", world.sim.noargs, 500)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("name", choices=sorted(HAZARDS))
    parser.add_argument("--modules", required=True)
    parser.add_argument("--libraries", required=True)
    parser.add_argument("--loop", action="store_true")
    options = parser.parse_args()
    sys.setrecursionlimit(5000)
    world = World(options)
    print("ready", flush=True)
    sys.stdin.readline()
    first = HAZARDS[options.name](world)
    print(first, flush=True)
    while options.loop and not select.select([sys.stdin], [], [], 0)[0]:
        again = HAZARDS[options.name](world)
        if again != first:
            print(again, flush=True)
    print("survived", flush=True)


if __name__ == "__main__":
    main()
