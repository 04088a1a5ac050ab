"""A PPO job that finds out by itself what the ticks of a sampler cost it; see samples.

In its standard input: the sampler's process, and either the numbers of its timers there, or the
number of the map that holds which share of the scheduler's ticks it takes, and where in it. The job
has them too then, and while it trains it lets them tick in one of each two stretches of work, at
random in the first or the second; behind a semicolon: what ticks in the other of the two. A line for each pair: kind of work, seconds of its own CPU time
per unit of work without and with ticks, and how long both took.
"""
import ctypes
import fcntl
import mmap
import os
import random
import struct
import sys
import time

import gymnasium
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback

PIDFD_GETFD = 438
ENABLE, DISABLE = 0x2400, 0x2401  # PERF_EVENT_IOC_*

torch.set_num_threads(1)


def taken(pid, numbers):
    """Descriptors of another process."""
    call = ctypes.CDLL(None, use_errno=True).syscall
    process = os.pidfd_open(pid)
    found = [call(PIDFD_GETFD, process, number, 0) for number in numbers]
    if min(found) < 0:
        raise OSError(ctypes.get_errno(), "cannot have the sampler's descriptors")
    return found


class Timers:
    def __init__(self, pid, numbers):
        self.timers = taken(pid, numbers)

    def switch(self, ticks):
        for timer in self.timers:
            fcntl.ioctl(timer, ENABLE if ticks else DISABLE)


class Share:
    """Of the scheduler's ticks."""

    def __init__(self, pid, number, place):
        self.memory = mmap.mmap(taken(pid, [number])[0], (place // mmap.PAGESIZE + 1) * mmap.PAGESIZE)
        self.place = place
        self.share = self.memory[place:place + 4]

    def switch(self, ticks):
        self.memory[self.place:self.place + 4] = self.share if ticks else struct.pack("I", 0)


class Turns:
    """One ticks where the other does not."""

    def __init__(self, one, other):
        self.one, self.other = one, other

    def switch(self, ticks):
        self.one.switch(ticks)
        self.other.switch(not ticks)


def ticks_from(words):
    if ";" in words:
        middle = words.index(";")
        return Turns(ticks_from(words[:middle]), ticks_from(words[middle + 1:]))
    kind, pid, *numbers = words
    return (Timers(int(pid), [int(number) for number in numbers]) if kind == "timers" else
            Share(int(pid), *map(int, numbers)))


class Alternation:
    """Stretches of one kind of work, in pairs."""

    def __init__(self, kind, sampler, seconds):
        self.kind, self.sampler, self.seconds = kind, sampler, seconds
        self.pair = {}
        self.begin()

    def begin(self):
        if not self.pair:
            self.order = random.sample((False, True), 2)
        self.ticks = self.order[len(self.pair)]
        self.sampler.switch(self.ticks)
        self.units = 0
        self.start, self.start_cpu = time.monotonic(), time.process_time()

    def unit(self):
        """One more is done."""
        self.units += 1
        wall, cpu = time.monotonic() - self.start, time.process_time() - self.start_cpu
        if wall < self.seconds:
            return
        self.pair[self.ticks] = (cpu / self.units, wall)
        if len(self.pair) == 2:
            print(self.kind, self.pair[False][0], self.pair[True][0],
                  self.pair[False][1] + self.pair[True][1], flush=True)
            self.pair = {}
        self.begin()


class Steps(BaseCallback):
    def __init__(self, sampler, seconds):
        super().__init__()
        self.sampler, self.seconds = sampler, seconds

    def _on_rollout_start(self):
        self.work = Alternation("rollout", self.sampler, self.seconds)

    def _on_step(self):
        self.work.unit()
        return True

    def _on_rollout_end(self):
        self.work = Alternation("update", self.sampler, self.seconds)


def main():
    environment = gymnasium.make(sys.argv[1])
    model = PPO("MlpPolicy", environment, n_steps=2048, batch_size=64, device="cpu")
    model.learn(2048)
    print("ready", flush=True)
    steps = Steps(ticks_from(sys.stdin.readline().split()), float(sys.argv[2]))
    step = model.policy.optimizer.step

    def step_and_count(*arguments, **named):
        done = step(*arguments, **named)
        steps.work.unit()
        return done

    model.policy.optimizer.step = step_and_count
    model.learn(10_000_000, callback=steps)


if __name__ == "__main__":
    main()
