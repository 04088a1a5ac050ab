"""thread_job.py LIBRARY: makes threads work as each line says, and answers with what each has run since the
last answer, in ns by its own clock: {"process": ns, "threads": {tid: ns}}. Threads of Python's, of the library's
pool (thread_pool.c), the first one in Python or in the library."""

import ctypes
import json
import os
import sys
import threading
import time

library = ctypes.CDLL(sys.argv[1])
library.pool_tid.restype = library.pool_ran_ns.restype = ctypes.c_int64
pool, threads, before = 0, {}, 0
waiting = threading.Event()


def burn(milliseconds):
    end = time.thread_time_ns() + milliseconds * 1000000
    while time.thread_time_ns() < end:
        sum(range(500))


def note(start_ns):
    tid = threading.get_native_id()
    threads[tid] = threads.get(tid, 0) + time.thread_time_ns() - start_ns


def python(milliseconds):
    def work():
        burn(milliseconds)
        note(0)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def two(milliseconds):
    """Two that take the lock from each other."""
    both = [threading.Thread(target=lambda: (burn(milliseconds), note(0))) for _ in range(2)]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()


def passing(count):
    """Two that hand a byte to each other, and work little in between."""
    ways = [os.pipe(), os.pipe()]

    def work(own, other):
        for _ in range(count):
            os.read(ways[own][0], 1)
            sum(range(200))
            os.write(ways[other][1], b".")
        note(0)
    both = [threading.Thread(target=work, args=(i, 1 - i)) for i in range(2)]
    for thread in both:
        thread.start()
    os.write(ways[0][1], b".")
    for thread in both:
        thread.join()
    for way in ways:
        for end in way:
            os.close(end)


def lasting(milliseconds):
    """It goes on waiting when it has worked."""
    worked = threading.Event()

    def work():
        burn(milliseconds)
        note(0)
        worked.set()
        waiting.wait()
    threading.Thread(target=work, daemon=True).start()
    worked.wait()


def first(milliseconds):
    start_ns = time.thread_time_ns()
    burn(milliseconds)
    note(start_ns)


def call(milliseconds):
    start_ns = time.thread_time_ns()
    library.pool_burn(ctypes.c_int64(milliseconds * 1000000))
    note(start_ns)


def start(count):
    global pool
    pool = count
    library.pool_start(count)


def work(count, milliseconds):
    earlier = [library.pool_ran_ns(i) for i in range(count)]
    library.pool_work(count, ctypes.c_int64(milliseconds * 1000000))
    for i in range(count):
        threads[library.pool_tid(i)] = library.pool_ran_ns(i) - earlier[i]


def brief(count, milliseconds):
    library.pool_brief(count, ctypes.c_int64(milliseconds * 1000000))


print('{"ready": true}', flush=True)
for line in sys.stdin:
    name, *numbers = line.split()
    if name != "clock":
        globals()[name](*map(int, numbers))
    now = time.process_time_ns()
    print(json.dumps({"process": now - before, "threads": threads}), flush=True)
    before, threads = now, {}
