#!/usr/bin/env python3
"""Spins a known time in each category inside nested operations and phases.

Waits for a line on stdin, works, prints its truth as one JSON line, waits for another line
and ends. The truth is a list of {"tid", "phase", "operation", "category", "ns"}, measured
here with CLOCK_MONOTONIC: every instant between two edges belongs to Python unless a C
function, which measures itself, was inside.
"""

import argparse
import ctypes
import json
import os
import sys
import threading
import time

MS = 1000 * 1000


class Ledger:
    """Times of one thread by (phase, operation, category)."""

    def __init__(self, phase):
        self.rows = {}
        self.phase = phase
        self.operations = [""]
        self.edge_ns = time.monotonic_ns()
        self.edge_cpu_ns = time.thread_time_ns()

    def spend(self, category, spent_ns, cpu_ns):
        row = self.rows.setdefault((self.phase, self.operations[-1], category), [0, 0])
        row[0] += spent_ns
        row[1] += cpu_ns

    def edge(self):
        """Adds the time since the last edge as Python's."""
        now_ns, cpu_ns = time.monotonic_ns(), time.thread_time_ns()
        self.spend("python", now_ns - self.edge_ns, cpu_ns - self.edge_cpu_ns)
        self.edge_ns, self.edge_cpu_ns = now_ns, cpu_ns

    def native(self, category, function, wanted_ns):
        start_ns = time.thread_time_ns()
        spent_ns = function(wanted_ns)
        cpu_ns = time.thread_time_ns() - start_ns
        self.spend(category, spent_ns, cpu_ns)
        self.spend("python", -spent_ns, -cpu_ns)

    def python(self, wanted_ns):
        start_ns = time.monotonic_ns()
        while time.monotonic_ns() - start_ns < wanted_ns:
            pass


class Operation:
    """An annotated operation, and its edges in the ledger."""

    def __init__(self, rlscope, ledger, name):
        self.inner = rlscope.operation(name)
        self.ledger = ledger
        self.name = name

    def __enter__(self):
        self.inner.__enter__()
        self.ledger.edge()
        self.ledger.operations.append(self.name)

    def __exit__(self, *error):
        self.inner.__exit__(*error)
        self.ledger.edge()
        self.ledger.operations.pop()


class Parts:
    """What the work is made of: the annotations and a library for each category."""

    def __init__(self, options):
        sys.path.insert(0, options.modules)
        import rlscope
        import truthback
        import truthsim
        self.rlscope = rlscope
        self.back = truthback
        self.sim = truthsim
        library = ctypes.CDLL(os.path.join(options.libraries, "libtruthc.so"))
        library.truthc_spin.restype = ctypes.c_uint64
        library.truthc_spin.argtypes = [ctypes.c_uint64]
        self.plain_spin = library.truthc_spin


def train_step(parts, ledger):
    rlscope, sim, back = parts.rlscope, parts.sim, parts.back
    with Operation(rlscope, ledger, "step"):
        ledger.python(30 * MS)
        with Operation(rlscope, ledger, "inference"):
            ledger.native("backend", back.spin, 20 * MS)
            ledger.python(5 * MS)
        with Operation(rlscope, ledger, "simulation"):
            ledger.native("simulator", sim.spin_nogil, 15 * MS)
            # In the simulator, back in Python, in the backend, and out again.
            sim.callback("call_object", lambda: callback(parts, ledger), 1)
            with Operation(rlscope, ledger, "simulation"):
                ledger.native("simulator", sim.spin, 10 * MS)
        with Operation(rlscope, ledger, "übrige"):
            ledger.native("native", parts.plain_spin, 12 * MS)


def callback(parts, ledger):
    ledger.python(10 * MS)
    with Operation(parts.rlscope, ledger, "callback"):
        ledger.native("backend", parts.back.spin, 25 * MS)


def work(parts, steps):
    """Both phases on the calling thread; its truth. The first call in, outside of any
    operation, ends the thread's unknown time."""
    parts.sim.noargs()
    rows = []
    ledger = None
    for phase in ("data_collection", "sgd_updates"):
        parts.rlscope.set_phase(phase)
        ledger = Ledger(phase)
        for _ in range(steps):
            train_step(parts, ledger)
        rows += [{"tid": threading.get_native_id(), "phase": phase, "operation": operation,
                  "category": category, "ns": spent_ns, "cpu_ns": cpu_ns}
                 for (_, operation, category), (spent_ns, cpu_ns) in ledger.rows.items() if operation]
    return rows


def main():
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))  # who is preempted at a boundary measures the scheduler
    except OSError:
        pass
    parser = argparse.ArgumentParser()
    parser.add_argument("--modules", required=True)
    parser.add_argument("--libraries", required=True)
    parser.add_argument("--steps", type=int, default=4)
    options = parser.parse_args()
    parts = Parts(options)
    print(json.dumps({"ready": os.getpid()}), flush=True)
    sys.stdin.readline()
    rows = work(parts, options.steps)
    box = []
    thread = threading.Thread(target=lambda: box.extend(work(parts, options.steps)))
    thread.start()
    thread.join()
    print(json.dumps(rows + box), flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    main()
