#!/usr/bin/env python3
"""TD3 (Fujimoto et al., 2018) on Walker2d: one environment step, one update.

Operations: inference, simulation, backpropagation, replay, all inside training_loop.
Phases: warmup (random actions fill the replay buffer), then training.
"""
import copy

import numpy
import torch
from torch import nn

import common

DISCOUNT, TARGET_RATE, LEARNING_RATE = 0.99, 0.005, 3e-4
EXPLORATION_NOISE, TARGET_NOISE, TARGET_NOISE_LIMIT = 0.1, 0.2, 0.5
ACTOR_DELAY, BATCH, HIDDEN, CAPACITY, WARMUP_STEPS = 2, 64, 64, 100_000, 500


def network(inputs, outputs, *last):
    return nn.Sequential(nn.Linear(inputs, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, HIDDEN), nn.ReLU(),
                         nn.Linear(HIDDEN, outputs), *last)


class Replay:
    """The last CAPACITY transitions, in arrays: state, action, reward, next state, alive."""

    def __init__(self, state_size, action_size, random):
        widths = (state_size, action_size, 1, state_size, 1)
        self.columns = [numpy.zeros((CAPACITY, width), dtype=numpy.float32) for width in widths]
        self.random = random
        self.added = 0

    def add(self, *transition):
        for column, value in zip(self.columns, transition):
            column[self.added % CAPACITY] = value
        self.added += 1

    def sample(self):
        rows = self.random.integers(min(self.added, CAPACITY), size=BATCH)
        return [torch.from_numpy(column[rows]) for column in self.columns]


class Agent:
    def __init__(self, state_size, action_size):
        self.actor = network(state_size, action_size, nn.Tanh())
        self.critics = nn.ModuleList(network(state_size + action_size, 1) for _ in range(2))
        self.target_actor = copy.deepcopy(self.actor)
        self.target_critics = copy.deepcopy(self.critics)
        self.actor_optimizer = torch.optim.Adam(self.actor.parameters(), lr=LEARNING_RATE)
        self.critic_optimizer = torch.optim.Adam(self.critics.parameters(), lr=LEARNING_RATE)
        self.updates = 0

    @torch.no_grad()
    def act(self, state):
        action = self.actor(torch.as_tensor(state, dtype=torch.float32))
        return (action + EXPLORATION_NOISE * torch.randn_like(action)).clamp(-1, 1).numpy()

    @torch.no_grad()
    def targets(self, reward, next_state, alive):
        action = self.target_actor(next_state)
        noise = (TARGET_NOISE * torch.randn_like(action)).clamp(-TARGET_NOISE_LIMIT, TARGET_NOISE_LIMIT)
        pair = torch.cat([next_state, (action + noise).clamp(-1, 1)], dim=1)
        return reward + alive * DISCOUNT * torch.min(*[critic(pair) for critic in self.target_critics])

    def update(self, state, action, reward, next_state, alive):
        targets = self.targets(reward, next_state, alive)
        pair = torch.cat([state, action], dim=1)
        loss = sum(nn.functional.mse_loss(critic(pair), targets) for critic in self.critics)
        self.critic_optimizer.zero_grad()
        loss.backward()
        self.critic_optimizer.step()
        self.updates += 1
        if self.updates % ACTOR_DELAY == 0:
            self.update_actor(state)

    def update_actor(self, state):
        loss = -self.critics[0](torch.cat([state, self.actor(state)], dim=1)).mean()
        self.actor_optimizer.zero_grad()
        loss.backward()
        self.actor_optimizer.step()
        with torch.no_grad():
            for module, target in ((self.actor, self.target_actor), (self.critics, self.target_critics)):
                for weight, follower in zip(module.parameters(), target.parameters()):
                    follower.lerp_(weight, TARGET_RATE)


def train(environment, agent, replay, budget, rlscope, seed):
    state, _ = environment.reset(seed=seed)
    rlscope.set_phase("warmup")
    warm = False
    while budget.left():
        if not warm and budget.steps == WARMUP_STEPS:
            warm = True
            rlscope.set_phase("training")
            common.print_ready()
        with rlscope.operation("inference"):
            action = agent.act(state) if warm else environment.action_space.sample()
        with rlscope.operation("simulation"):
            next_state, reward, terminated, truncated, _ = environment.step(action)
        with rlscope.operation("replay"):
            replay.add(state, action, reward, next_state, not terminated)
            batch = replay.sample() if warm else None
        if warm:
            with rlscope.operation("backpropagation"):
                agent.update(*batch)
        state = next_state
        if terminated or truncated:
            with rlscope.operation("simulation"):
                state, _ = environment.reset()
        budget.step()


def main():
    arguments = common.parse_arguments(__doc__.splitlines()[0])
    rlscope = common.annotations(wanted=not arguments.no_annotate)
    random = common.seed_everything(arguments)
    environment = common.make_environment(arguments.seed)
    sizes = environment.observation_space.shape[0], environment.action_space.shape[0]
    agent, replay = Agent(*sizes), Replay(*sizes, random)
    budget = common.Budget(arguments)
    with rlscope.operation("training_loop"):
        train(environment, agent, replay, budget, rlscope, arguments.seed)
    common.print_summary(budget, [agent.actor, agent.critics])


if __name__ == "__main__":
    main()
