#!/usr/bin/python3
"""A Python process that hands over batches as a CUPTI bridge would, on request.

The numbers are made up: nothing here says anything about a GPU. Commands are JSON lines:
{"do": "armed"}                          what the semaphore says
{"do": "load"}                           loads the stand-in library, when it did not at first
{"do": "work", "launches": n, ...}       n launches with a kernel each, in an operation
{"do": "raw", "hex": "..."}              these bytes, whatever they are
{"do": "serve", "seconds": s}            sends what a bridge sends when there is nothing to tell
{"do": "status", "status": k, "said": s}
{"do": "fork", "how": "fork" | "exec"}   a child that answers `armed` and ends
Each is answered by a JSON array.
"""

import ctypes
import itertools
import json
import os
import struct
import subprocess
import sys
import threading
import time

MAGIC = 0x31545055434C5352
KERNEL, MEMCPY, MEMSET, SYNC, GRAPH, OVERHEAD, API, STATUS = range(1, 9)
ARMED = 1
RECORDS_MAX = 128

try:
    import rlscope
except ImportError:
    rlscope = None


def record(kind, subkind=0, correlation=0, start=0, end=0, device=0, context=1, stream=7, tid=0,
           value=0, node=0, graph=0, name=0):
    return struct.pack("<BBHIQQIIIIQQII", kind, subkind, 0, correlation, start, end, device, context,
                       stream, tid, value, node, graph, name)


class Bridge:
    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        self.sequence = 0
        self.lock = threading.Lock()
        self.left_out = [0, 0, 0, 0]
        self.correlations = itertools.count(1)

    def armed(self):
        return self.library.standin_armed()

    def send(self, data):
        self.library.standin_send(data, len(data))

    def batch(self, records=(), strings=b""):
        with self.lock:
            self.sequence += 1
            now = time.monotonic_ns()
            head = struct.pack("<QHHHHIIQQQQQQQQQ", MAGIC, 1, 64, len(records), 0, len(strings), 24,
                               self.sequence, now, now + 40, 80, *self.left_out, now)
            self.send(head + b"".join(records) + strings)

    def status(self, status, said=""):
        strings = said.encode() + b"\0" if said else b""
        self.batch([record(STATUS, status, name=1 if said else 0)], strings)

    def work(self, launches, kernel_ns=1000, tid=None, device=0, operation=None, graph=0):
        """Each launch takes a microsecond, and its kernel begins one after that."""
        strings = b"cudaLaunchKernel\0" b"a_kernel\0"
        tid = tid or threading.get_native_id()
        done = 0
        while done < launches:
            records = []
            first = time.monotonic_ns()
            pairs = min(launches - done, RECORDS_MAX // 2)
            while time.monotonic_ns() < first + pairs * (kernel_ns + 3000):
                pass  # so that nothing lies in the future
            for i in range(pairs):
                at = first + i * (kernel_ns + 3000)
                correlation = next(self.correlations)
                records.append(record(API, 1, correlation, at, at + 1000, tid=tid, name=1))
                records.append(record(KERNEL, 0, correlation, at + 2000, at + 2000 + kernel_ns,
                                      device=device, name=18))
            self.batch(records, strings)
            done += pairs
        return [launches, launches * kernel_ns]


def work_and_stay(bridge, launches):
    """Nothing here is probed: only the thread itself shows that it is there."""
    bridge.work(launches)
    time.sleep(0.3)


def in_operation(name, body):
    """In a thread of its own, whose end tells the recorder what it was in: nothing here is probed."""
    results = []

    def run():
        with rlscope.operation(name):
            results.append(body())

    if not name:
        return body()
    before = len(os.listdir("/proc/self/task"))
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    while len(os.listdir("/proc/self/task")) > before:
        time.sleep(0.01)
    return results[0]


def child_armed(bridge, how):
    """What the semaphore says in a child, forked or after it has become a program of its own."""
    if how == "exec":
        out = subprocess.run([sys.executable, __file__, sys.argv[1]], input='{"do": "armed"}\n',
                             stdout=subprocess.PIPE, encoding="utf-8", check=True).stdout
        return json.loads(out.splitlines()[-1])
    reader, writer = os.pipe()
    pid = os.fork()
    if not pid:
        bridge.status(8)
        os.write(writer, json.dumps([bridge.armed()]).encode())
        os._exit(0)
    os.waitpid(pid, 0)
    return json.loads(os.read(reader, 100))


def serve(bridge, seconds):
    """As a bridge does: looks at its semaphore, says when it is armed, and flushes."""
    end, answered = time.monotonic() + seconds, False
    while time.monotonic() < end:
        armed = bridge.armed() > 0
        if armed and not answered:
            bridge.status(ARMED)
        elif armed:
            bridge.batch()
        answered = armed
        time.sleep(0.1)


def answer(command, state):
    bridge, do = state.get("bridge"), command["do"]
    if do == "load":
        state["bridge"] = Bridge(sys.argv[1])
        return [0]
    if do == "armed":
        return [bridge.armed()]
    if do == "work":
        return in_operation(command.get("operation"), lambda: bridge.work(
            command["launches"], command.get("kernel_ns", 1000), command.get("tid"),
            command.get("device", 0)))
    if do == "threads":
        before = len(os.listdir("/proc/self/task"))
        threads = [threading.Thread(target=in_operation, args=(
            "op%d" % i, lambda: work_and_stay(bridge, command["launches"]))) for i in range(
                command["count"])]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        while len(os.listdir("/proc/self/task")) > before:
            time.sleep(0.01)  # their operations are reported as they end, a moment after join
        return [command["count"] * command["launches"]]
    if do == "raw":
        bridge.send(bytes.fromhex(command["hex"]))
    elif do == "serve":
        threading.Thread(target=serve, args=(bridge, command["during"]), daemon=True).start()
    elif do == "status":
        bridge.status(command["status"], command.get("said", ""))
    elif do == "empty":
        bridge.batch()
    elif do == "skip":
        bridge.sequence += command["batches"]
    elif do == "left_out":
        bridge.left_out = command["totals"]
    elif do == "fork":
        return child_armed(bridge, command["how"])
    return [0]


def main():
    state = {}
    if "--later" not in sys.argv:
        state["bridge"] = Bridge(sys.argv[1])
    print('{"ready": %d}' % os.getpid(), flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line), state)), flush=True)


if __name__ == "__main__":
    main()
