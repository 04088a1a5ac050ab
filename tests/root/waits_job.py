"""Operations of known shares of running and waiting, most without any call of a library.

Each line of stdin: work once more. The answer: {operation: [ns on CPU, by the thread's own clock]}."""

import argparse
import ctypes
import json
import os
import sys
import threading
import time

import rlscope

parser = argparse.ArgumentParser()
parser.add_argument("--modules")
parser.add_argument("--libraries")
library = ctypes.CDLL(os.path.join(parser.parse_args().libraries, "libtruthc.so"))
truth = {}


def run(ms):
    end = time.thread_time_ns() + ms * 1000 * 1000
    while time.thread_time_ns() < end:
        for _ in range(100):
            pass


def operation(name, body):
    start = time.thread_time_ns()
    with rlscope.operation(name):
        body()
    truth[name] = truth.get(name, 0) + time.thread_time_ns() - start


def in_turns():
    for _ in range(5):
        run(4)
        time.sleep(0.005)


def beside_others():
    """Threads that want the GIL: the interpreter makes this one wait."""
    stop = threading.Event()

    def other():
        while not stop.is_set():
            run(1)
    thread = threading.Thread(target=other)
    thread.start()
    operation("beside", lambda: run(30))
    stop.set()
    thread.join()


def work():
    time.sleep(0.05)
    operation("pure", lambda: run(30))
    operation("asleep", lambda: time.sleep(0.03))
    operation("in_turns", in_turns)
    beside_others()
    time.sleep(0.02)
    library.truthc_spin(1000)


def main():
    print(json.dumps({"ready": True}), flush=True)
    for _ in sys.stdin:
        truth.clear()
        for _ in range(4):
            work()
        print("[%s]" % json.dumps(truth), flush=True)


if __name__ == "__main__":
    main()
