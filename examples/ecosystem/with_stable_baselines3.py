"""stable-baselines3: five algorithms learn for a moment; the weights."""

import torch
from show import show
from stable_baselines3 import A2C, DQN, PPO, SAC, TD3

SMALL = {"net_arch": [16]}
for algorithm, environment, more in (
    (PPO, "CartPole-v1", {"n_steps": 64, "batch_size": 32}), (A2C, "CartPole-v1", {}),
    (DQN, "CartPole-v1", {"learning_starts": 30}), (SAC, "Pendulum-v1", {"learning_starts": 30}),
    (TD3, "Pendulum-v1", {"learning_starts": 30}),
):  # fmt: skip
    model = algorithm("MlpPolicy", environment, seed=0, device="cpu", policy_kwargs=dict(SMALL), **more).learn(128)
    show(algorithm.__name__, torch.stack([p.detach().norm() for p in model.policy.parameters()]))
