#!/usr/bin/env python3
"""PPO (Schulman et al., 2017) on Walker2d: collect a rollout, learn from it, repeat.

Operations: inference, simulation, advantages, backpropagation, all inside training_loop.
Phases, one after the other in every iteration: data_collection, update.
"""
import torch
from torch import nn
from torch.distributions import Normal

import common

DISCOUNT, TRACE_DECAY, CLIP, LEARNING_RATE = 0.99, 0.95, 0.2, 3e-4
VALUE_WEIGHT, GRADIENT_LIMIT = 0.5, 0.5
ROLLOUT, EPOCHS, MINIBATCH, HIDDEN = 512, 4, 64, 64


def network(inputs, outputs):
    return nn.Sequential(nn.Linear(inputs, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, HIDDEN), nn.Tanh(),
                         nn.Linear(HIDDEN, outputs))


class Agent(nn.Module):
    def __init__(self, state_size, action_size):
        super().__init__()
        self.mean = network(state_size, action_size)
        self.value = network(state_size, 1)
        self.log_deviation = nn.Parameter(torch.zeros(action_size))
        self.optimizer = torch.optim.Adam(self.parameters(), lr=LEARNING_RATE)

    def policy(self, states):
        return Normal(self.mean(states), self.log_deviation.exp())

    @torch.no_grad()
    def act(self, state):
        policy = self.policy(state)
        action = policy.sample()
        return action, policy.log_prob(action).sum(), self.value(state).squeeze()

    def update(self, states, actions, old_log_probs, advantages, returns):
        log_probs = self.policy(states).log_prob(actions).sum(dim=1)
        ratio = (log_probs - old_log_probs).exp()
        advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
        gain = torch.min(ratio * advantages, ratio.clamp(1 - CLIP, 1 + CLIP) * advantages).mean()
        value_loss = nn.functional.mse_loss(self.value(states).squeeze(1), returns)
        self.optimizer.zero_grad()
        (VALUE_WEIGHT * value_loss - gain).backward()
        nn.utils.clip_grad_norm_(self.parameters(), GRADIENT_LIMIT)
        self.optimizer.step()


def as_state(observation):
    return torch.as_tensor(observation, dtype=torch.float32)


def collect(environment, agent, state, budget, rlscope):
    """ROLLOUT steps from `state` on (fewer when the budget ends) and the state after them."""
    rows = []
    for _ in range(ROLLOUT):
        with rlscope.operation("inference"):
            action, log_prob, value = agent.act(state)
        with rlscope.operation("simulation"):
            observation, reward, terminated, truncated, _ = environment.step(action.clamp(-1, 1).numpy())
            if terminated or truncated:
                observation, _ = environment.reset()
        ended = float(terminated or truncated)
        rows.append((state, action, log_prob, value, torch.tensor(float(reward)), torch.tensor(ended)))
        state = as_state(observation)
        if not budget.step():
            break
    return [torch.stack(column) for column in zip(*rows)], state


@torch.no_grad()
def estimate_advantages(values, rewards, ends, last_value):
    """Generalised advantage estimation, from the last step back to the first."""
    advantages = torch.zeros_like(rewards)
    following, advantage = last_value, torch.tensor(0.0)
    for step in reversed(range(len(rewards))):
        goes_on = 1 - ends[step]
        error = rewards[step] + DISCOUNT * following * goes_on - values[step]
        advantage = error + DISCOUNT * TRACE_DECAY * goes_on * advantage
        advantages[step] = advantage
        following = values[step]
    return advantages


def learn(agent, states, actions, log_probs, advantages, returns):
    for _ in range(EPOCHS):
        for rows in torch.randperm(len(states)).split(MINIBATCH):
            if len(rows) > 1:
                agent.update(states[rows], actions[rows], log_probs[rows], advantages[rows], returns[rows])


def train(environment, agent, budget, rlscope, seed):
    observation, _ = environment.reset(seed=seed)
    state = as_state(observation)
    common.print_ready()
    while budget.left():
        rlscope.set_phase("data_collection")
        (states, actions, log_probs, values, rewards, ends), state = \
            collect(environment, agent, state, budget, rlscope)
        rlscope.set_phase("update")
        with rlscope.operation("advantages"):
            advantages = estimate_advantages(values, rewards, ends, agent.value(state).squeeze())
        with rlscope.operation("backpropagation"):
            learn(agent, states, actions, log_probs, advantages, advantages + values)


def main():
    arguments = common.parse_arguments(__doc__.splitlines()[0])
    rlscope = common.annotations(wanted=not arguments.no_annotate)
    common.seed_everything(arguments)
    environment = common.make_environment(arguments.seed)
    agent = Agent(environment.observation_space.shape[0], environment.action_space.shape[0])
    budget = common.Budget(arguments)
    with rlscope.operation("training_loop"):
        train(environment, agent, budget, rlscope, arguments.seed)
    common.print_summary(budget, [agent])


if __name__ == "__main__":
    main()
