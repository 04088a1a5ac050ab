#!/usr/bin/env python3
"""Stable-Baselines3's PPO on Walker2d, as its users write it: no annotations at all.

Needs today's stack, which scripts/setup-sb3 installs.
"""
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback

import common


class WithinBudget(BaseCallback):
    def __init__(self, budget):
        super().__init__()
        self.budget = budget

    def _on_step(self):
        # The last step of --steps is left to learn(), which then still trains on it.
        return self.budget.step() or self.budget.steps == self.budget.most_steps


def main():
    arguments = common.parse_arguments(__doc__.splitlines()[0])
    common.seed_everything(arguments)
    model = PPO("MlpPolicy", common.make_environment(arguments.seed), device="cpu", seed=arguments.seed,
                n_steps=min(2048, max(2, arguments.steps or 2048)))
    budget = common.Budget(arguments)
    common.print_ready()
    model.learn(total_timesteps=arguments.steps or 2**62, callback=WithinBudget(budget))
    common.print_summary(budget, [model.policy])


if __name__ == "__main__":
    main()
