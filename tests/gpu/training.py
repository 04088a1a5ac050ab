"""A training step and an inference that waits for the GPU, a turn of them for each line of input: to be held against other
processes that do the same by turns. Prints, for each turn, how many ns the quicker half of each part took."""

import json
import os
import sys
import time

import torch

REPETITIONS = 150
WIDTH = 64
DEVICE = os.environ.get("RLS_TRAINING_DEVICE", "cuda")


def quicker_half(times):
    kept = sorted(times)[:max(1, len(times) // 2)]
    return sum(kept) / len(kept)


class Job:
    def __init__(self):
        torch.set_num_threads(1)
        torch.manual_seed(0)
        self.model = torch.nn.Sequential(torch.nn.Linear(WIDTH, WIDTH), torch.nn.ReLU(),
                                         torch.nn.Linear(WIDTH, WIDTH), torch.nn.ReLU()).to(DEVICE)
        self.optimizer = torch.optim.Adam(self.model.parameters())
        self.data, self.target = (torch.randn(WIDTH, WIDTH, device=DEVICE) for _ in range(2))
        self.observation = torch.randn(1, WIDTH).numpy()

    def forward(self):
        self.loss = torch.nn.functional.mse_loss(self.model(self.data), self.target)

    def backward(self):
        self.optimizer.zero_grad()
        self.loss.backward()

    def step(self):
        self.optimizer.step()

    def infer(self):
        with torch.no_grad():
            mean = self.model(torch.as_tensor(self.observation, device=DEVICE))
            torch.distributions.Normal(mean, torch.ones_like(mean)).sample().clamp(-1, 1).cpu()

    def times(self, *parts):
        """By part."""
        reported = {part.__name__: [] for part in parts}
        for _ in range(REPETITIONS):
            for part in parts:
                begin_ns = time.perf_counter_ns()
                part()
                reported[part.__name__].append(time.perf_counter_ns() - begin_ns)
        if DEVICE == "cuda":
            torch.cuda.synchronize()
        return {name: quicker_half(values) for name, values in reported.items()}

    def turn(self):
        return {**self.times(self.forward, self.backward, self.step), **self.times(self.infer)}


def main():
    job = Job()
    job.turn()
    print("ready", flush=True)
    for _ in sys.stdin:
        print(json.dumps(job.turn()), flush=True)


if __name__ == "__main__":
    main()
