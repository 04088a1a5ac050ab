"""Hazards that end a process: hazards.py runs each round's in a child of its own.

Each is called there with the world of hazards.py and does not return, or returns something to
be printed. The parent's output is the child's wait status and what it printed.
"""

import ctypes
import os
import random
import resource
import signal
import sys
import threading
import time

ENDINGS = {}  # once in a child
ROUNDS = {}   # the parent takes part in them


def ending(function):
    ENDINGS[function.__name__] = function
    return function


def with_parent(function):
    ROUNDS[function.__name__] = function
    return function


def in_callback(world, function):
    world.sim.callback("call_object", function, 1)


@ending
def exit_in_call(world):
    world.c.truthc_exit(7)


@ending
def exit_in_callback(world):
    in_callback(world, lambda: os._exit(9))


@ending
def system_exit_in_callback(world):
    in_callback(world, lambda: sys.exit(11))


@ending
def killed_in_callback(world):
    in_callback(world, lambda: os.kill(os.getpid(), signal.SIGKILL))


@ending
def aborted_in_callback(world):
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    in_callback(world, lambda: os.kill(os.getpid(), signal.SIGABRT))


@ending
def crashed_in_callback(world):
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    in_callback(world, lambda: ctypes.string_at(8))


@ending
def thread_exits_process(world):
    """os._exit by one thread while another is inside the library."""
    threading.Thread(target=lambda: [world.sim.spin_nogil(100000) for _ in range(10000)],
                     daemon=True).start()
    world.sim.noargs()
    os._exit(5)


def execute(script):
    os.environ["PYTHONPATH"] = sys.path[0]
    os.execv(sys.executable, [sys.executable, "-S", "-c", script])


@ending
def exec_in_callback(world):
    in_callback(world, lambda: execute(
        "import truthsim; print(sum(truthsim.noargs() for _ in range(20)))"))


@ending
def daemon_threads(world):
    """Threads that the interpreter ends on its way out, wherever they are in the library."""
    execute("import threading, truthsim\n"
            "def work():\n"
            "    while True: truthsim.callback('call_object', truthsim.noargs, 5)\n"
            "for _ in range(3): threading.Thread(target=work, daemon=True).start()\n"
            "print('bye')\n")


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


@ending
def sandboxed(world):
    sandbox()
    total = sum(world.sim.noargs() for _ in range(20))
    return total, world.sim.callback("call_object", world.sim.noargs, 5)


@with_parent
def killed_at_any_moment(world):
    """By SIGKILL and by SIGTERM, in and out of the library, at its first moment or later."""
    statuses = []
    for number in (signal.SIGKILL, signal.SIGTERM):
        pid = os.fork()
        if pid == 0:
            while True:
                world.sim.callback("call_object", world.sim.noargs, 5)
        time.sleep(random.random() * 0.002)
        os.kill(pid, number)
        statuses.append(os.waitpid(pid, 0)[1])
    return statuses
