#!/usr/bin/env python3
"""A process that makes boundary calls as fast as it can for a while, and counts them.

The protocol is exact.py's; the command is {"do": "load", "kinds": ["group.name", …],
"workers": n, "threads": n, "seconds": s}: that many forked children (0: this process itself),
each with that many threads, each of which goes through the kinds until the time is up, or with "cpu": true its
CPU time; with
"pace": p, at p transitions a second.
"load.fastest" is the one with the most transitions a second that one core can make.
"""

import argparse
import json
import multiprocessing
import os
import sys
import threading
import time

import exact
import kinds

BATCH = 100
PACED_BATCH = 5
# What crosses most often: of all kinds this one's probes are the cheapest, and a hundred
# calls in a row keep the loop around them small.
FASTEST = kinds.kind("load", "fastest", "; ".join(["call()"] * 100), "call = sim.noargs",
                     entries=100)


def build(env, names):
    """[(kind, run)]; the setup is this thread's."""
    return [(k, kinds.build(k, env)) for k in [FASTEST, *kinds.usable(env)]
            if k.group + "." + k.name in names]


def transitions_of(runs, count):
    truth = {}
    for chosen, _ in runs:
        exact.flows_add(truth, kinds.truth_of(chosen, count))
    return truth


def body(runs, command, rows):
    """One thread's load: `pace` transitions a second, or with 0 all that it can."""
    seconds, pace = command["seconds"], command.get("pace", 0)
    clock = time.thread_time if command.get("cpu") else time.monotonic
    batch = PACED_BATCH if pace else BATCH
    round_seconds = sum(transitions_of(runs, batch).values()) / pace if pace else 0
    rounds, start, begin = 0, time.monotonic(), clock()
    while rounds == 0 or clock() < begin + seconds:
        for _, run in runs:
            run(batch)
        rounds += 1
        if pace:
            time.sleep(max(0.0, start + rounds * round_seconds - time.monotonic()))
    rows.append(exact.row("load", transitions_of(runs, rounds * batch)))


def in_threads(env, command):
    rows = []
    threads = [threading.Thread(target=body, args=(build(env, command["kinds"]), command, rows))
               for _ in range(command["threads"])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return rows


def worker_main(env, command, queue):
    queue.put(in_threads(env, command))


def in_workers(env, command):
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    workers = [context.Process(target=worker_main, args=(env, command, queue))
               for _ in range(command["workers"])]
    for worker in workers:
        worker.start()
    rows = [row for _ in workers for row in queue.get()]
    for worker in workers:
        worker.join()
    return rows


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--modules", required=True)
    parser.add_argument("--libraries", default="")
    options = parser.parse_args()
    env = exact.env_load(options)
    print(json.dumps({"ready": os.getpid()}), flush=True)
    for line in iter(sys.stdin.readline, ""):
        command = json.loads(line)
        if command["do"] == "quit":
            break
        rows = in_workers(env, command) if command["workers"] else in_threads(env, command)
        print(json.dumps(rows), flush=True)


if __name__ == "__main__":
    main()
