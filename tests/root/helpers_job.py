"""Threads with and without operations of their own, by the first argument after --modules.

Each line of stdin is the name of a shape; the answer says which operation each helper thread was
in while it worked: [{"tid": …, "operation": …}, …]."""

import argparse
import ctypes
import json
import os
import sys
import threading

import rlscope

parser = argparse.ArgumentParser()
parser.add_argument("--modules")
parser.add_argument("--libraries")
library = ctypes.CDLL(os.path.join(parser.parse_args().libraries, "libtruthc.so"))
found = []


def work(ms=5):
    library.truthc_spin(ms * 1000 * 1000)


def helper(operation, body=work, times=1):
    """Starts `times` threads, one after the other, that work in what is then open."""
    for _ in range(times):
        def run():
            found.append({"tid": threading.get_native_id(), "operation": operation})
            body()
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()


def leave_idle(body):
    """A thread that does something and then stays, idle: (its thread, what ends it)."""
    stay, left = threading.Event(), threading.Event()

    def run():
        body()
        left.set()
        stay.wait()
    thread = threading.Thread(target=run)
    thread.start()
    left.wait()
    return thread, stay


def in_operation(name):
    with rlscope.operation(name):
        work()


def after_a_worker():
    thread, stay = leave_idle(lambda: in_operation("worker"))
    helper("", times=4)
    stay.set()
    thread.join()


def after_main():
    in_operation("main")
    helper("", times=4)


def within_main():
    with rlscope.operation("outer"):
        helper("outer", times=2)
        with rlscope.operation("inner"):
            helper("inner", times=2)
        helper("outer")
    helper("")


def own():
    """A helper may enter an operation of the name that it has inherited."""
    with rlscope.operation("outer"):
        helper("outer", lambda: in_operation("outer"))


def entered(helpers):
    """Calls of two operations, beside threads without any: how often, and that it is right."""
    done = threading.Event()

    def run():
        while not done.is_set():
            work(1)
            done.wait(0.001)
    threads = [threading.Thread(target=run) for _ in range(helpers)]
    for thread in threads:
        thread.start()
    for _ in range(50):
        with rlscope.operation("infer"):
            work(2)
        with rlscope.operation("other"):
            work(1)
    done.set()
    for thread in threads:
        thread.join()


def forked():
    """A child goes on in its parent's operation: it did not enter it."""
    with rlscope.operation("parent"):
        child = os.fork()
        if not child:
            with rlscope.operation("child"):
                work()
            os._exit(0)
        os.waitpid(child, 0)


SHAPES = {"after_a_worker": after_a_worker, "after_main": after_main, "within_main": within_main,
          "own": own, "alone": lambda: entered(0), "helped": lambda: entered(3), "forked": forked}


def main():
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        found.clear()
        SHAPES[line.strip()]()
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
