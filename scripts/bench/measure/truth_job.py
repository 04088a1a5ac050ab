"""truth_job.py PROGRAM: does the same work at each line of stdin, and prints the truth about it as a line of JSON.

Programs: see PROGRAMS. The truth of a line, of an operation and of an operation's time in a category is what the
thread's own clocks say: CLOCK_MONOTONIC for all of it, CLOCK_THREAD_CPUTIME_ID for what ran. All work is a
fixed number of steps, so that its CPU time without a profiler can be compared.

The standard library's own modules are the libraries with a role: zlib is the backend, _random the simulator.
"""

import json
import queue
import random
import resource
import sys
import threading
import time
import zlib

import rlscope

DATA = bytes(range(256)) * 1024
SMALL = DATA[:2000]
bits = random.Random(0).getrandbits


class Rows:
    """{key: [ns at least, ns at most, CPU ns at least, at most, times]}"""

    def __init__(self):
        self.found = {}
        self.lock = threading.Lock()

    def add(self, key, *ns):
        with self.lock:
            row = self.found.setdefault(key, [0, 0, 0, 0, 0])
            row[:] = [a + b for a, b in zip(row, [*ns, 1])]


rows = Rows()


def now():
    """(before and after the clock of the CPU time was read, CPU time)"""
    return time.monotonic_ns(), time.thread_time_ns(), time.monotonic_ns()


def add_since(key, since):
    """What began when `since` was read has just ended."""
    end = now()
    rows.add(key, end[0] - since[2], end[2] - since[0], end[1] - since[1], end[1] - since[1])


def line_done(since):
    """The line above the caller's took so long."""
    caller = sys._getframe(1)
    add_since(("line", caller.f_code.co_name, caller.f_lineno - 1), since)


class operation:
    """An operation of the profiler's. Its time is between that from within its edges, and that from around them."""
    active = threading.local()

    def __init__(self, name):
        self.name, self.inner = name, rlscope.operation(name)

    def __enter__(self):
        self.outer = getattr(self.active, "operation", None)
        self.active.operation, self.within = self, [0, 0, 0, 0]
        self.around = now()
        self.inner.__enter__()
        self.begin = now()

    def __exit__(self, *error):
        end = now()
        self.inner.__exit__(*error)
        around = now()
        least = end[0] - self.begin[2], end[1] - self.begin[1]
        most = around[2] - self.around[0], around[1] - self.around[1]
        took = [least[0], most[0], least[1], most[1]]
        if self.outer:
            self.outer.within = [a + b for a, b in zip(self.outer.within, took)]
        self.active.operation = self.outer
        low, high, cpu_low, cpu_high = self.within
        rows.add(("operation", threading.get_native_id(), self.name), least[0] - high, most[0] - low,
                 least[1] - cpu_high, most[1] - cpu_low)


def call_done(name, category, since):
    add_since(("category", threading.get_native_id(), name, category), since)


# --- pieces of work -----------------------------------------------------------------------

def loops(n):
    since = now()
    for i in range(n): pass
    line_done(since)


def sums(n):
    since = now()
    while n: n -= 1
    line_done(since)


def dicts(n):
    since, table = now(), {}
    for i in range(n): table[i & 63] = table.get(i & 31, 0) + 1
    line_done(since)


def checks(n):
    since = now()
    for i in range(n): zlib.crc32(DATA)
    line_done(since)


def draws(n):
    since = now()
    for i in range(n): bits(32)
    line_done(since)


def sleeps(seconds):
    since = now()
    time.sleep(seconds)
    line_done(since)


def backend(name, n):
    for _ in range(n):
        since = now()
        zlib.adler32(DATA)
        call_done(name, "backend", since)


# --- programs -----------------------------------------------------------------------------

def gil():
    """Lines beside a thread that asks for the GIL every 4 ms."""
    stop = threading.Event()

    def ask():
        while not stop.is_set():
            time.sleep(0.004)
            sum(range(500))
    asks = threading.Thread(target=ask)
    asks.start()
    for _ in range(30):
        loops(300000)
        sums(200000)
        dicts(60000)
        checks(80)
    stop.set()
    asks.join()


def waits():
    """Sleeps in operations and outside, operations that call no library, and calls after them."""
    for _ in range(12):
        sleeps(0.02)
        with operation("compute"):
            loops(300000)
        time.sleep(0.005)
        with operation("wait"):
            sums(50000)
            sleeps(0.015)
            sums(50000)
        with operation("short"):
            dicts(4000)
        checks(4)
        with operation("call"):
            backend("call", 40)


def calls():
    """Many short calls, and some long ones."""
    for _ in range(25):
        with operation("short calls"):
            draws(12000)
        with operation("long calls"):
            backend("long calls", 150)
        with operation("python"):
            loops(400000)
        with operation("few calls"):
            for _ in range(20):
                sums(8000)
                bits(32)
        for _ in range(300):
            with operation("tiny"):
                zlib.crc32(SMALL)


def threads():
    """Two threads with operations of their own, which call no library, and hand work over."""
    asked, answered = queue.Queue(), queue.Queue()

    def worker():
        while asked.get():
            with operation("worker"):
                sums(100000)
                with operation("worker, inner"):
                    dicts(30000)
            answered.put(True)
    other = threading.Thread(target=worker)
    other.start()
    for _ in range(20):
        with operation("prepare"):
            loops(400000)
        asked.put(True)
        with operation("beside"):
            dicts(40000)
        with operation("wait for worker"):
            answered.get()
    asked.put(False)
    other.join()


def mixed():
    """All of it in turns, in loops like those of training."""
    for _ in range(6):
        with operation("rollout"):
            for _ in range(40):
                with operation("step"):
                    draws(120)
                    sums(6000)
                dicts(1500)
        sleeps(0.01)
        with operation("update"):
            for _ in range(20):
                backend("update", 12)
                loops(60000)
            sleeps(0.004)
        checks(30)


def lag():
    """What the host of a virtual machine takes of a running thread, as a share: the thread's own clock leaves it out."""
    ran = passed = 0
    for _ in range(300):
        usage, since = resource.getrusage(resource.RUSAGE_THREAD), now()
        for _ in range(5000): pass
        end, after = now(), resource.getrusage(resource.RUSAGE_THREAD)
        if (usage.ru_nvcsw, usage.ru_nivcsw) == (after.ru_nvcsw, after.ru_nivcsw):
            ran += end[1] - since[1]
            passed += end[0] - since[2]
    return max(passed / ran - 1, 0) if ran else 0


PROGRAMS = {program.__name__: program for program in (gil, waits, calls, threads, mixed)}


def main():
    program = PROGRAMS[sys.argv[1]]
    print("ready", flush=True)
    for _ in sys.stdin:
        rows.found.clear()
        program()
        print(json.dumps({"lag": lag(),
                          "rows": [[list(key), *row] for key, row in rows.found.items()]}), flush=True)


if __name__ == "__main__":
    main()
