"""A PPO job that tells how many steps it makes per second of CPU time; see samples."""
import sys
import time

import gymnasium
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback

torch.set_num_threads(1)


class Tell(BaseCallback):
    def _on_step(self):
        if self.num_timesteps % 256 == 0:
            print(self.num_timesteps, time.process_time(), time.monotonic(), flush=True)
        return True


environment = gymnasium.make(sys.argv[1] if len(sys.argv) > 1 else "CartPole-v1")
PPO("MlpPolicy", environment, n_steps=512, batch_size=64, device="cpu").learn(
    10_000_000, callback=Tell())
