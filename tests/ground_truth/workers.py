#!/usr/bin/env python3
"""A process that starts children, each of which makes its calls from its first moment on.

The protocol is exact.py's; the command is {"do": METHOD, "workers": n, "count": n} with
METHOD one of fork, inside (a fork from within a callback of the simulator), exec,
subprocess, mp_fork, mp_spawn, mp_forkserver.
"""

import argparse
import json
import multiprocessing
import os
import subprocess
import sys
import threading


def row(kind, there):
    return {"pid": os.getpid(), "tid": threading.get_native_id(), "kind": kind,
            "truth": {"python->simulator": there, "simulator->python": there}}


def calls(count):
    import truthsim
    for _ in range(count):
        truthsim.noargs()


def worker_main(kind, count, queue):
    calls(count)
    queue.put(row(kind, count))


def forked(body):
    """The line that body() wrote to its file descriptor in a forked child."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.close(reader)
            body(writer)
            status = 0
        finally:
            os._exit(status)
    os.close(writer)
    with os.fdopen(reader) as stream:
        line = stream.read()
    os.waitpid(pid, 0)
    return json.loads(line)


def do_fork(count):
    def body(writer):
        calls(count)
        os.write(writer, json.dumps(row("fork", count)).encode())
    return forked(body)


def do_inside(count):
    """The child comes out of the callback, and of the simulator, that its parent went into."""
    import truthsim
    parent = os.getpid()
    box = []
    reader, writer = os.pipe()

    def fork():
        box.append(os.fork())
    truthsim.callback("call_object", fork, 1)
    if os.getpid() != parent:
        calls(count)
        os.write(writer, json.dumps(row("inside", count + 1)).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as stream:
        line = stream.read()
    os.waitpid(box[0], 0)
    return json.loads(line)


def self_command(count):
    return [sys.executable, os.path.abspath(__file__), "--modules", sys.path[0],
            "--once", str(count)]


def do_exec(count):
    def body(writer):
        calls(5)  # before exec, in the same process: part of its truth
        os.dup2(writer, 1)
        os.execv(sys.executable, self_command(count))
    answer = forked(body)
    for flow in answer["truth"]:
        answer["truth"][flow] += 5
    return answer


def do_subprocess(count):
    return json.loads(subprocess.run(self_command(count), stdout=subprocess.PIPE,
                                     check=True).stdout)


def do_multiprocessing(method, workers, count):
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    processes = [context.Process(target=worker_main, args=("mp_" + method, count, queue))
                 for _ in range(workers)]
    for process in processes:
        process.start()
    rows = [queue.get(timeout=600) for _ in processes]
    for process in processes:
        process.join()
    return rows


def answer(command):
    method, workers, count = command["do"], command["workers"], command["count"]
    if method.startswith("mp_"):
        return do_multiprocessing(method[3:], workers, count)
    single = {"fork": do_fork, "inside": do_inside, "exec": do_exec,
              "subprocess": do_subprocess}[method]
    return [single(count) for _ in range(workers)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--modules", required=True)
    parser.add_argument("--once", type=int)
    options = parser.parse_args()
    sys.path.insert(0, options.modules)
    if options.once is not None:
        calls(options.once)
        print(json.dumps(row("once", options.once)), flush=True)
        return
    calls(1)
    print(json.dumps({"ready": os.getpid()}), flush=True)
    for line in iter(sys.stdin.readline, ""):
        command = json.loads(line)
        if command["do"] == "quit":
            break
        print(json.dumps(answer(command)), flush=True)


if __name__ == "__main__":
    main()
