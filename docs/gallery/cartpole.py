"""CartPole by policy gradients

A network learns to balance a pole on a cart of gymnasium, from nothing but the time until the pole falls.

The method is REINFORCE with a baseline (Williams, 1992): actions that were followed by more reward than usual become
more probable. A state is the cart's place and speed and the pole's angle and speed. Each step earns 1, until the pole
leans by 12 degrees or the cart leaves the track; an episode ends after 500 steps.

Needs gymnasium.
"""

import sys

import gymnasium
import matplotlib.pyplot as plt
import numpy as np

import torchlite as torch
from torchlite import nn
from torchlite.distributions import Categorical

ROUNDS = 1 if "--quick" in sys.argv else 40
ENVIRONMENTS, DISCOUNT = 16, 0.99

torch.manual_seed(0)
environments = [gymnasium.make("CartPole-v1") for _ in range(ENVIRONMENTS)]
policy = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 2))
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)

# %%
# Sixteen environments run at the same time, so that the network chooses sixteen actions at once.


@torch.no_grad()
def play(seed):
    """One episode of each environment: states (time, environment, 4), actions, and which steps belong to it."""
    states = np.stack([env.reset(seed=seed + i)[0] for i, env in enumerate(environments)])
    alive = np.ones(ENVIRONMENTS, dtype=bool)
    record = []
    while alive.any():
        inputs = torch.from_numpy(states)
        actions = Categorical(logits=policy(inputs)).sample()
        record.append((inputs, actions, torch.tensor(alive)))
        states = states.copy()
        for i in np.flatnonzero(alive):
            states[i], _, fell, late, _ = environments[i].step(int(actions[i]))
            alive[i] = not (fell or late)
    return map(torch.stack, zip(*record, strict=True))


def returns_of(alive):
    """Discounted sums of the rewards from each step on."""
    total, sums = torch.zeros(ENVIRONMENTS), []
    for rewards in alive.float().flip(0):
        total = rewards * (1 + DISCOUNT * total)
        sums.append(total)
    return torch.stack(sums).flip(0)


# %%
# The advantage of a step is its return less the mean of all, in standard deviations.

lengths = []
for number in range(ROUNDS):
    states, actions, alive = play(seed=1000 * number)
    returns = returns_of(alive)[alive]
    advantages = (returns - returns.mean()) / returns.std()
    scores = Categorical(logits=policy(states[alive])).log_prob(actions[alive])
    optimizer.zero_grad()
    (-(scores * advantages).mean()).backward()
    optimizer.step()
    lengths.append(alive.sum(0))
    if number % 8 == 7:
        print(f"round {number + 1:2d}  mean length of an episode {lengths[-1].float().mean():.0f}")

# %%
# The left picture has one point for each episode. The right one shows an episode in which the policy takes its more
# probable action.

environment = environments[0]
state, _ = environment.reset(seed=7)
path, done = [state], False
while not done:
    with torch.no_grad():
        state, _, fell, late, _ = environment.step(policy(torch.from_numpy(state)).argmax().item())
    path.append(state)
    done = fell or late
path = np.array(path)
print(f"the pole stands for {len(path) - 1} steps")

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4))
table = torch.stack(lengths)
rounds = np.arange(1, ROUNDS + 1)
left.plot(rounds.repeat(ENVIRONMENTS), table.flatten(), ".", color="0.75")
left.plot(rounds, table.float().mean(1), "C0", label="mean")
left.set(title="Length of episodes", xlabel="round of 16 episodes", ylabel="steps")
left.legend()
right.plot(path[:, 0], label="place of the cart")
right.plot(np.degrees(path[:, 2]), label="angle of the pole in degrees")
right.set(title="An episode afterwards", xlabel="step")
right.legend()
figure.tight_layout()
