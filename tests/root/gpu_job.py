#!/usr/bin/python3
"""A Python job that uses CUDA: the fakes of tests/cupti_bridge/fakes, so no GPU does anything.

Commands are JSON lines, each answered by a JSON array:
{"do": "launch", "count": n, "operation": name, "device": d, "sync_every": n}
{"do": "graph", "count": n, "nodes": n, "operation": name}
{"do": "begin"} / {"do": "finish"}     launches in a thread of its own until it is finished: how many
{"do": "spawn"} / {"do": "fork"}       a child that launches 100 kernels / one that uses no CUDA
With --script it launches 1000 kernels in "forward" once the bridge is armed, and ends; with --at-once 10 before;
with --graphs a graph of four 50 times in "graph" after that.
"""

import ctypes
import json
import os
import subprocess
import sys
import threading
import time

try:
    import rlscope
except ImportError:
    rlscope = None


class Kernel(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("duration_ns", ctypes.c_uint64)]


class Graph(ctypes.Structure):
    _fields_ = [("id", ctypes.c_uint32), ("count", ctypes.c_uint32), ("nodes", ctypes.POINTER(Kernel))]


class Dim3(ctypes.Structure):
    _fields_ = [(axis, ctypes.c_uint) for axis in "xyz"]


cudart = ctypes.CDLL(os.environ.get("FAKE_CUDART", "libcudart.so.13"))
KERNEL = Kernel(b"a_kernel", 1000)
LAUNCH = (ctypes.byref(KERNEL), Dim3(1, 1, 1), Dim3(1, 1, 1), None, ctypes.c_size_t(0), None)


def operation(name):
    return rlscope.operation(name)


def launch(count, sync_every=1000):
    call = cudart.cudaLaunchKernel
    for done in range(1, count + 1):
        if call(*LAUNCH):
            raise RuntimeError("a launch failed")
        if done % sync_every == 0:
            cudart.cudaDeviceSynchronize()
    cudart.cudaDeviceSynchronize()
    return count


def graph(count, nodes):
    kernels = (Kernel * nodes)(*[Kernel(b"a_node", 1000) for _ in range(nodes)])
    made = Graph(1, nodes, kernels)
    for _ in range(count):
        cudart.cudaGraphLaunch(ctypes.byref(made), None)
    cudart.cudaDeviceSynchronize()
    return count * nodes


class Worker:
    """Launches all the time, as a job in mid-life does."""

    def __init__(self):
        self.count, self.over = 0, False
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        with operation("loop"):
            while not self.over:
                self.count += launch(20)
                time.sleep(0.001)

    def finish(self):
        self.over = True
        self.thread.join()
        return self.count


def answer(command, state):
    do = command["do"]
    if do == "launch":
        cudart.cudaSetDevice(command.get("device", 0))
        with operation(command["operation"]):
            return [launch(command["count"], command.get("sync_every", 1000))]
    if do == "graph":
        with operation(command["operation"]):
            return [graph(command["count"], command["nodes"])]
    if do == "begin":
        state["worker"] = Worker()
    if do == "finish":
        return [state.pop("worker").finish()]
    if do == "spawn":
        child = subprocess.run([sys.executable, __file__, "--script"], check=False)
        return [child.returncode]
    if do == "fork":
        pid = os.fork()
        if not pid:
            os._exit(0)
        return [os.waitpid(pid, 0)[1]]
    return [0]


def await_bridge(seconds=120):
    """Where there is one: until it asks CUPTI for records, which the fake one writes down."""
    flush, end = "%d cuptiActivityFlushAll\n" % os.getpid(), time.monotonic() + seconds
    if not os.path.exists(os.environ.get("CUDA_INJECTION64_PATH", "")):
        return
    while time.monotonic() < end:
        if os.path.exists(os.environ["FAKE_CUPTI_LOG"]):
            with open(os.environ["FAKE_CUPTI_LOG"], encoding="utf-8") as log:
                if flush in log:
                    return
        time.sleep(0.02)


def main():
    cudart.cudaDeviceSynchronize()  # CUDA is initialised by the first call
    if "--at-once" in sys.argv:
        launch(10)
    if "--script" in sys.argv:
        await_bridge()
        with operation("forward"):
            launch(1000)
        if "--graphs" in sys.argv:
            with operation("graph"):
                graph(50, 4)
        return
    state = {}
    print('{"ready": %d}' % os.getpid(), flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line), state)), flush=True)


if __name__ == "__main__":
    main()
