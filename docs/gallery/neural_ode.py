"""A neural ordinary differential equation by torchdiffeq

A network is the right-hand side of a differential equation; it learns a vector field from points of one trajectory.

`odeint` of torchdiffeq solves $\\dot y = f(y)$, and gradients pass through the solver's steps to the weights of $f$
(Chen, Rubanova, Bettencourt and Duvenaud, 2018).

Needs torchdiffeq.
"""

import sys

import matplotlib.pyplot as plt

import torchlite as torch

torch.as_torch()
from torchdiffeq import odeint

from torchlite import nn

STEPS = 2 if "--quick" in sys.argv else 300

# %%
# The truth is a spiral whose speed depends on the third power of the place: $\dot y = A^T y^3$.

torch.manual_seed(0)
times = torch.linspace(0, 10, 200)
matrix = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]])
start = torch.tensor([2.0, 0.0])
truth = odeint(lambda t, y: y**3 @ matrix, start, times, rtol=1e-7, atol=1e-7)

# %%
# The network sees $y^3$, scaled to about one. Each step draws 32 short pieces of the trajectory. It integrates from
# their first points by Runge-Kutta's method of fourth order, and compares the next nine points.


class Field(nn.Module):
    def __init__(self):
        super().__init__()
        self.network = nn.Sequential(nn.Linear(2, 64), nn.SiLU(), nn.Linear(64, 2))

    def forward(self, t, y):
        return 4 * self.network(y**3 / 4)


field = Field()
optimizer = torch.optim.Adam(field.parameters(), lr=1e-2)
pieces = truth.unfold(0, 10, 1).permute(2, 0, 1)  # time, piece, coordinate
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
losses = []
for step in range(STEPS):
    chosen = pieces[:, torch.randint(pieces.shape[1], (32,))]
    found = odeint(field, chosen[0], times[:10], method="rk4")
    loss = (found - chosen).abs().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    losses.append(loss.item())
    if step % 100 == 99:
        print(f"step {step + 1:3d}  mean error of short pieces {losses[-1]:.4f}")

# %%
# The learned field is integrated over the whole time, by a solver with adaptive steps. The arrows show its direction.

with torch.no_grad():
    learned = odeint(field, start, times)
    axis = torch.linspace(-2.2, 2.2, 18)
    grid = torch.cartesian_prod(axis, axis)
    arrows = nn.functional.normalize(field(None, grid), dim=1)
print(f"mean error over the whole time {(learned - truth).abs().mean():.3f}")
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4))
left.quiver(*grid.T, *arrows.T, color="0.7", pivot="mid")
left.plot(*truth.T, "k.", markersize=3, label="data")
left.plot(*learned.T, "C1", label="learned")
left.set(title="The plane", xlabel="$y_1$", ylabel="$y_2$", aspect="equal")
left.legend(loc="upper right")
right.plot(times, truth, "k.", markersize=3)
right.plot(times, learned, label=["learned $y_1$", "learned $y_2$"])
right.set(title="Over time", xlabel="t")
right.legend(loc="upper right")
figure.tight_layout()
