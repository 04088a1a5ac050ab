#!/usr/bin/python3
"""A job whose results depend on every step: inject_job.py threads|torch STEPS.

Says "ready" and works; prints what came of each part after STEPS steps and, once a line has said how
many steps are enough and those are done, how many there were. Same steps, same results.
"""

import ctypes
import os
import sys
import threading

if os.environ.get("FAKE_CUDART"):
    ctypes.CDLL(os.environ["FAKE_CUDART"]).cudaDeviceSynchronize()


class Goal:
    def __init__(self):
        self.steps = None
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        self.steps = int(sys.stdin.readline())

    def is_reached(self, step):
        return self.steps is not None and step >= self.steps


class Threads:
    """Four threads in step, each of which allocates, hashes and throws."""

    def __init__(self):
        self.sums = [0] * 4

    def part(self, number, step):
        value = self.sums[number]
        for turn in range(400):
            words = {str(key): key for key in range(12)}
            try:
                value = (value * 1103515245 + 12345 + step + len(words)) % 2 ** 48
                words[turn]
            except KeyError:
                value ^= len(repr(words))
        self.sums[number] = value

    def step(self, number):
        threads = [threading.Thread(target=self.part, args=(part, number)) for part in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def result(self):
        return self.sums


class Torch:
    """A network that learns, with the threads of PyTorch's own."""

    def __init__(self):
        import torch
        torch.manual_seed(6)
        self.torch = torch
        self.net = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.Tanh(),
                                       torch.nn.Linear(256, 8))
        self.optimizer = torch.optim.Adam(self.net.parameters())

    def step(self, number):
        torch = self.torch
        inputs = torch.sin(torch.arange(32 * 64).reshape(32, 64) * (number % 7 + 1))
        loss = (self.net(inputs) - inputs[:, :8]).square().mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

    def result(self):
        return [float(sum(p.double().sum() for p in self.net.parameters())).hex()]


def main():
    work = {"threads": Threads, "torch": Torch}[sys.argv[1]]()
    work.step(0)
    goal, step = Goal(), 0
    print("ready", flush=True)
    while step < int(sys.argv[2]) or not goal.is_reached(step):
        step += 1
        work.step(step)
        if step == int(sys.argv[2]):
            print(step, *work.result(), flush=True)
    print(*work.result(), step, flush=True)


if __name__ == "__main__":
    main()
