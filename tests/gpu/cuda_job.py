#!/usr/bin/env python3
"""The job of gpu_check.py: launches kernels for a while, and says as JSON what it knows itself.

RLS_JOB says with what: torch (PyTorch), jax, triton, or fakes (stand-ins for CUDA). Prints `ready` when
CUDA is there and all that is compiled once has been.
"""

import argparse
import ctypes
import json
import os
import select
import statistics
import sys
import threading
import time

try:
    import rlscope
    operation = rlscope.operation
except ImportError:
    import contextlib
    operation = contextlib.nullcontext


class Fakes:
    """One kernel of the stand-ins' own."""

    def __init__(self):
        class Kernel(ctypes.Structure):
            _fields_ = [("name", ctypes.c_char_p), ("duration_ns", ctypes.c_uint64)]

        class Dim3(ctypes.Structure):
            _fields_ = [(axis, ctypes.c_uint) for axis in "xyz"]

        self.cudart = ctypes.CDLL("libcudart.so.13")
        self.kernel = Kernel(b"a_kernel", 20000)
        one = Dim3(1, 1, 1)
        self.arguments = (ctypes.byref(self.kernel), one, one, None, ctypes.c_size_t(0), None)
        self.wait()

    def step(self):
        self.cudart.cudaLaunchKernel(*self.arguments)

    empty = long = step

    def graph(self, nodes):
        """Launches a graph of so many kernels, whenever it is called."""
        class Graph(ctypes.Structure):
            _fields_ = [("id", ctypes.c_uint32), ("count", ctypes.c_uint32), ("nodes", ctypes.c_void_p)]
        kernels = (type(self.kernel) * nodes)(*[self.kernel] * nodes)
        made = Graph(1, nodes, ctypes.cast(kernels, ctypes.c_void_p))
        return lambda: self.cudart.cudaGraphLaunch(ctypes.byref(made), None) or kernels and None

    def wait(self):
        self.cudart.cudaDeviceSynchronize()

    def event(self):
        return None

    def profiler(self):
        return None


class Torch:
    """A multiplication: one kernel a step, however often it has run before."""

    def __init__(self):
        import torch
        self.torch = torch
        self.a = torch.rand(1024, 1024, device="cuda")
        self.b = torch.empty_like(self.a)
        self.large = torch.rand(4096, 4096, device="cuda")
        self.product = torch.empty_like(self.large)
        self.one = torch.zeros(1, device="cuda")
        for _ in range(10):
            self.step()
        self.wait()

    def step(self):
        self.torch.mm(self.a, self.a, out=self.b)

    def empty(self):
        self.one.add_(1)

    def long(self):
        """Takes milliseconds, beside which the microsecond between two kernels is little."""
        self.torch.mm(self.large, self.large, out=self.product)

    def graph(self, nodes):
        graph = self.torch.cuda.CUDAGraph()
        with self.torch.cuda.graph(graph):
            for _ in range(nodes):
                self.step()
        graph.replay()
        self.wait()
        return graph.replay

    def wait(self):
        self.torch.cuda.synchronize()

    def event(self):
        event = self.torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def profiler(self):
        return self.torch.profiler.profile(activities=[self.torch.profiler.ProfilerActivity.CUDA])


class Jax:
    """A compiled function, the same kernels at each call; without graphs, which XLA makes of itself."""

    def __init__(self):
        os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_gpu_enable_command_buffer="
        os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
        import jax
        self.call = jax.jit(lambda value: jax.numpy.sin(value @ value))
        self.value = jax.numpy.ones((512, 512))
        for _ in range(3):
            self.step()
        self.wait()

    def step(self):
        self.last = self.call(self.value)

    def wait(self):
        self.last.block_until_ready()


class Triton:
    """A kernel of Triton's own, launched by the driver."""

    def __init__(self):
        import torch
        from triton_kernel import add_one
        self.torch, self.kernel = torch, add_one
        self.values = torch.zeros(1024, device="cuda")
        for _ in range(3):
            self.step()
        self.wait()

    def step(self):
        self.kernel[(1,)](self.values, 1024)

    def wait(self):
        self.torch.cuda.synchronize()


class Switch:
    """Arms and disarms a bridge that has no profiler (RLS_ALONE), at times that it reports afterwards."""

    def __init__(self, path, turns):
        self.library = ctypes.CDLL(path)
        self.spans = [float(part) for part in turns.split(",")]
        self.turns = []
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        for i, seconds in enumerate(self.spans):
            if i % 2:
                self.turns.append([time.monotonic_ns()])
            self.library.sink_watch(i % 2)
            time.sleep(seconds)
            if i % 2:
                self.library.sink_watch(0)
                self.turns[-1].append(time.monotonic_ns())

    def reported(self):
        self.thread.join()
        return {"turns": self.turns}


class Watch:
    """Is there time left, and is our input still open? Closing it asks us to end."""

    def __init__(self, seconds, until_input_ends):
        self.end, self.until_input_ends = time.monotonic() + seconds, until_input_ends

    def goes_on(self):
        if self.until_input_ends and select.select([sys.stdin], [], [], 0)[0]:
            return False
        return time.monotonic() < self.end


JOBS = {"torch": Torch, "jax": Jax, "triton": Triton, "fakes": Fakes}


def launch_fixed(cuda, count):
    begin_ns = time.monotonic_ns()
    for _ in range(count):
        cuda.step()
    cuda.wait()
    end_ns = time.monotonic_ns()
    time.sleep(1)  # the recorder's last look is at a process that lives
    return {"launches": count, "begin_ns": begin_ns, "end_ns": end_ns}


def launch_graphs(cuda, launch, count, nodes):
    with operation("graphs"):
        for _ in range(count):
            launch()
        cuda.wait()
    time.sleep(1)
    return {"graphs": count, "nodes": nodes}


def launch_without_rest(cuda, watch):
    """There are always some hundred launches that have not run; the last of them is waited for."""
    count, marks = 0, []
    while watch.goes_on():
        for _ in range(100):
            cuda.step()
        count += 100
        marks.append(cuda.event())
        if len(marks) > 2:
            mark = marks.pop(0)
            mark.synchronize() if mark else cuda.wait()
    cuda.wait()
    return {"launches": count}


def launch_for(cuda, watch, step, dense):
    """How many, what a launch took at best and mostly, and the time of the device by its own events."""
    count, took_ns, device_ns = 0, [], 0
    begin_ns = time.monotonic_ns()
    while watch.goes_on():
        begun = cuda.event()
        start = time.perf_counter_ns()
        for _ in range(200):
            step()
        took_ns.append((time.perf_counter_ns() - start) / 200)
        ended = cuda.event()
        cuda.wait()
        count += 200
        if begun:
            device_ns += int(begun.elapsed_time(ended) * 1e6)
        if not dense:
            time.sleep(0.002)
    return {"launches": count, "launch_ns": min(took_ns), "median_ns": statistics.median(took_ns),
            "events_ns": device_ns, "begin_ns": begin_ns, "end_ns": time.monotonic_ns()}


def profiled(cuda, seconds):
    """How many kernels torch.profiler reported, or what it said instead: the job goes on."""
    try:
        profiler = cuda.profiler()
        if not profiler:
            return {}
        with profiler:
            launch_for(cuda, Watch(seconds, False), cuda.step, False)
        return {"profiler": sum(event.count for event in profiler.key_averages()
                                if "CUDA" in str(getattr(event, "device_type", "")))}
    except Exception as error:  # whatever it is: it is the answer
        return {"profiler": "%s: %s" % (type(error).__name__, error)}


def work(cuda, graph, options):
    if graph:
        return launch_graphs(cuda, graph, options.graphs, 4)
    with operation("loop"):
        if options.fixed:
            return launch_fixed(cuda, options.fixed)
        watch = Watch(options.seconds, options.until_input_ends)
        if options.no_idle:
            return launch_without_rest(cuda, watch)
        step = cuda.empty if options.empty else cuda.long if options.dense else cuda.step
        return launch_for(cuda, watch, step, options.dense)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=120, help="at most")
    parser.add_argument("--await-go", action="store_true", help="a line of input, before the first launch")
    parser.add_argument("--until-input-ends", action="store_true", help="end early when the input does")
    parser.add_argument("--empty", action="store_true", help="the smallest kernel there is")
    parser.add_argument("--dense", action="store_true", help="keep the device busy, with long kernels")
    parser.add_argument("--fixed", type=int, help="so many steps, and no more")
    parser.add_argument("--graphs", type=int, help="so many launches of a graph of four kernels")
    parser.add_argument("--no-idle", action="store_true", help="never let the device rest")
    parser.add_argument("--profiler", choices=["before", "after"], help="than the recorder")
    parser.add_argument("--turns", help="seconds unarmed, armed, unarmed, …: with RLS_ALONE")
    options = parser.parse_args()
    cuda = JOBS[os.environ.get("RLS_JOB", "torch")]()
    graph = cuda.graph(4) if options.graphs else None
    reported = {}
    if options.profiler == "before":
        reported.update(profiled(cuda, 1))
    print("ready", flush=True)
    if options.await_go:
        sys.stdin.readline()
    switch = Switch(os.environ["RLS_ALONE"], options.turns) if options.turns else None
    if options.profiler == "after":
        reported.update(profiled(cuda, options.seconds / 2))
    reported.update(work(cuda, graph, options))
    if switch:
        reported.update(switch.reported())
    print(json.dumps(reported), flush=True)


if __name__ == "__main__":
    main()
