#!/usr/bin/env python3
"""The job of gpu_check.py: launches kernels for a while, and says as JSON what it knows itself.

With PyTorch on a GPU, or, when RLS_JOB is "fakes", on stand-ins for CUDA. Prints `ready` when
CUDA is there.
"""

import argparse
import ctypes
import json
import os
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

    empty = step

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
        for _ in range(10):
            self.step()
        self.wait()

    def step(self):
        self.torch.mm(self.a, self.a, out=self.b)

    def empty(self):
        self.b[:1, :1].zero_()

    def wait(self):
        self.torch.cuda.synchronize()

    def event(self):
        event = self.torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def profiler(self):
        return self.torch.profiler.profile(activities=[self.torch.profiler.ProfilerActivity.CUDA])


def launch_for(cuda, seconds, step, dense):
    """How many, what a launch took at best, and the time of the device by its own events."""
    end, count, best_ns, device_ns = time.monotonic() + seconds, 0, 1e9, 0
    while time.monotonic() < end:
        begun = cuda.event()
        start = time.perf_counter_ns()
        for _ in range(200):
            step()
        best_ns = min(best_ns, (time.perf_counter_ns() - start) / 200)
        ended = cuda.event()
        cuda.wait()
        count += 200
        if begun:
            device_ns += int(begun.elapsed_time(ended) * 1e6)
        if not dense:
            time.sleep(0.002)
    return {"launches": count, "launch_ns": best_ns, "events_ns": device_ns}


def profiled(cuda, seconds):
    profiler = cuda.profiler()
    if not profiler:
        return {}
    with profiler:
        launch_for(cuda, seconds, cuda.step, False)
    return {"profiler": sum(event.count for event in profiler.key_averages()
                            if getattr(event, "device_type", None) is not None)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--wait", type=float, default=0, help="before the first launch")
    parser.add_argument("--empty", action="store_true", help="the smallest kernel there is")
    parser.add_argument("--dense", action="store_true", help="keep the device busy")
    parser.add_argument("--profiler", choices=["before", "after"], help="than the recorder")
    options = parser.parse_args()
    cuda = Fakes() if os.environ.get("RLS_JOB") == "fakes" else Torch()
    told = {}
    if options.profiler == "before":
        profiler = cuda.profiler()
        if profiler:
            with profiler:
                cuda.step()
    print("ready", flush=True)
    time.sleep(options.wait)
    if options.profiler == "after":
        time.sleep(3)
    with operation("loop"):
        if options.profiler:
            told.update(profiled(cuda, options.seconds / 2))
        told.update(launch_for(cuda, options.seconds, cuda.empty if options.empty else cuda.step,
                               options.dense))
    print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
