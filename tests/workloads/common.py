"""What the workloads share: the command line, annotations, the environment, the ending.

The annotations are rlscope's when it can be imported and nothing otherwise, as in any
user's script. Results depend on the seed alone, so that two runs can be compared.
"""
import argparse
import contextlib
import hashlib
import signal
import sys
import time

import gymnasium
import numpy
import torch


class NoAnnotations:
    """Stands in for rlscope where that is absent or not wanted."""

    @staticmethod
    def operation(name):
        return contextlib.nullcontext()

    @staticmethod
    def set_phase(name):
        pass


def annotations(wanted):
    if wanted:
        try:
            import rlscope
            return rlscope
        except ImportError:
            pass
    return NoAnnotations


def parse_arguments(description):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--steps", type=int, help="environment steps to run (default: no limit)")
    parser.add_argument("--seconds", type=float, help="time to run for (default: no limit)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1, help="PyTorch's own threads")
    parser.add_argument("--no-annotate", action="store_true", help="run as if rlscope were not there")
    return parser.parse_args()


def make_environment(seed):
    name = next(name for name in ("Walker2d-v5", "Walker2d-v4") if name in gymnasium.registry)
    environment = gymnasium.make(name)
    environment.action_space.seed(seed)
    return environment


def seed_everything(arguments):
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(arguments.seed)
    return numpy.random.default_rng(arguments.seed)


class Budget:
    """Counts steps and says when to stop: --steps, --seconds, Ctrl-C or SIGTERM."""

    def __init__(self, arguments):
        self.steps = 0
        self.most_steps = arguments.steps
        self.began = time.monotonic()
        self.most_seconds = arguments.seconds
        self.stopped = False
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self.stop)

    def stop(self, *_):
        self.stopped = True

    def step(self):
        """One step more was done; whether another may be."""
        self.steps += 1
        return self.left()

    def left(self):
        if self.stopped or self.steps == self.most_steps:
            return False
        return self.most_seconds is None or self.elapsed() < self.most_seconds

    def elapsed(self):
        return time.monotonic() - self.began


def print_ready():
    """The line that scripts wait for: from here on every second is a training second."""
    print("training", flush=True)


def print_summary(budget, modules):
    digest = hashlib.sha256()
    for module in modules:
        for tensor in module.state_dict().values():
            digest.update(tensor.numpy().tobytes())
    seconds = budget.elapsed()
    print(f"steps {budget.steps} seconds {seconds:.3f} steps/s {budget.steps / seconds:.1f}")
    print(f"checksum {digest.hexdigest()[:16]}")
    sys.stdout.flush()
