"""Tasks and generators that take turns inside their operations.

Each line of stdin is the name of a shape. The answer: [{operation: ns on a CPU in the simulator}, by the
job's own account]."""

import argparse
import asyncio
import ctypes
import json
import os
import sys
import time

import rlscope

parser = argparse.ArgumentParser()
parser.add_argument("--modules")
parser.add_argument("--libraries")
library = ctypes.CDLL(os.path.join(parser.parse_args().libraries, "libtruthc.so"))
truth = {}


def work(name, ms):
    start = time.thread_time_ns()
    library.truthc_spin(ms * 1000 * 1000)
    truth[name] = truth.get(name, 0) + time.thread_time_ns() - start


async def agent(name, ms):
    with rlscope.operation(name):
        for _ in range(20):
            work(name, ms)
            await asyncio.sleep(0)
            work(name, ms)


async def unnamed():
    for _ in range(20):
        work("", 1)
        await asyncio.sleep(0)


async def rollouts():
    await asyncio.gather(agent("a", 1), agent("b", 2), unnamed())


async def produce():
    with rlscope.operation("produce"):
        for _ in range(20):
            work("produce", 2)
            yield


async def consumed():
    async for _ in produce():
        work("", 1)


def generator(name, ms):
    with rlscope.operation(name):
        for _ in range(20):
            work(name, ms)
            yield


def generators():
    for _ in zip(generator("a", 1), generator("b", 2)):
        work("", 1)


print('{"ready"}', flush=True)
for line in sys.stdin:
    truth.clear()
    shape = globals()[line.strip()]
    asyncio.run(shape()) if asyncio.iscoroutinefunction(shape) else shape()
    print(json.dumps([truth]), flush=True)
