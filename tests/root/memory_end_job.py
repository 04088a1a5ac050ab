"""A job that runs out of memory: memory_end_job.py BYTES_A_SECOND [LIMIT_BYTES]. Lines are found by the comment behind them.

It keeps up with its rate by the clock, however little it runs. It stops growing below the limit, if there is one; then each line
of stdin ends it."""

import ctypes
import sys
import time

TRACK = ctypes.pythonapi.PyTraceMalloc_Track
TRACK.argtypes = [ctypes.c_uint, ctypes.c_size_t, ctypes.c_size_t]
UNTRACK = ctypes.pythonapi.PyTraceMalloc_Untrack
UNTRACK.argtypes = [ctypes.c_uint, ctypes.c_size_t]
BLOCK_BYTES = 1 << 20
kept = []


def block():
    return bytearray(b"x") * BLOCK_BYTES


def keep(one):
    kept.append(one)
    TRACK(7, id(one), BLOCK_BYTES)  # keep


def use(one):
    TRACK(7, id(one), BLOCK_BYTES)  # use
    UNTRACK(7, id(one))


rate = float(sys.argv[1])
limit = float(sys.argv[2]) if sys.argv[2:] else float("inf")
print("ready", flush=True)
sys.stdin.readline()
start = time.monotonic()
while len(kept) * BLOCK_BYTES < limit:
    while len(kept) * BLOCK_BYTES < min((time.monotonic() - start) * rate, limit):
        keep(block())
        for _ in range(3):
            use(block())
    time.sleep(0.01)
print("grown", flush=True)
sys.stdin.readline()
