#!/usr/bin/env python3
"""A job that uses the stand-in for jaxlib (truthjax.cpp), and counts.

{"compute": n, "here": n, "pool": n, "calls": m}: so many calls of each, those that call Python back with m
calls each. {"run": s, "of": "compute" or "plain"}: calls of it, or of a library without a role, until they took s
seconds of CPU time. The answer has the thread that each calls back on, and its transitions.
"""

import argparse
import ctypes
import json
import os
import sys
import threading
import time

SPIN_SECONDS = 0.0002


def load_from_memory(path):
    """As what unpacks itself does; the module finds the library by its name."""
    file = os.memfd_create(os.path.basename(path))
    with open(path, "rb") as stream:
        os.write(file, stream.read())
    ctypes.CDLL("/proc/self/fd/%d" % file, ctypes.RTLD_GLOBAL)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--modules", required=True)
    parser.add_argument("--from-memory", action="store_true")
    options = parser.parse_args()
    folder = os.path.join(options.modules, "jaxlib")
    if options.from_memory:
        load_from_memory(os.path.join(folder, "libjax_common.so"))
    sys.path.insert(0, folder)
    sys.path.insert(0, options.modules)
    import _jax
    import truthplain
    pool = _jax.call_on_pool(lambda i: None, 1)

    def back(i):
        end = time.thread_time() + SPIN_SECONDS
        while time.thread_time() < end:
            pass

    print(json.dumps({"ready": os.getpid()}), flush=True)
    for line in sys.stdin:
        command = json.loads(line)
        for _ in range(command.get("compute", 0)):
            _jax.compute(100)
        for _ in range(command.get("here", 0)):
            _jax.call_here(back, command["calls"])
        for _ in range(command.get("pool", 0)):
            _jax.call_on_pool(back, command["calls"])
        end = time.thread_time() + command.get("run", 0)
        while time.thread_time() < end:
            if command["of"] == "plain":
                truthplain.work(1000000)
            else:
                _jax.compute(1000)
        print(json.dumps([{"main": threading.get_native_id(), "pool": pool}]), flush=True)


if __name__ == "__main__":
    main()
