"""A physics-informed network solves the heat equation

A network learns a function of place and time whose derivatives satisfy a differential equation, without any data.

The equation is $u_t = \\alpha u_{xx}$ on $0 \\le x \\le 1$, with $u = 0$ at both ends and
$u(x, 0) = \\sin \\pi x + \\tfrac12 \\sin 3 \\pi x$. Its solution is known, so that the error can be measured:
$u = e^{-\\alpha \\pi^2 t} \\sin \\pi x + \\tfrac12 e^{-9 \\alpha \\pi^2 t} \\sin 3 \\pi x$. The method is that of
Raissi, Perdikaris and Karniadakis (2019).
"""

import math
import sys

import matplotlib.pyplot as plt

import torchlite as torch
from torchlite import nn

STEPS = 5 if "--quick" in sys.argv else 2000
ALPHA = 0.1

torch.manual_seed(0)


def initial(x):
    return torch.sin(math.pi * x) + 0.5 * torch.sin(3 * math.pi * x)


def solution(x, t):
    slow, fast = torch.exp(-ALPHA * math.pi**2 * t), torch.exp(-9 * ALPHA * math.pi**2 * t)
    return slow * torch.sin(math.pi * x) + 0.5 * fast * torch.sin(3 * math.pi * x)


# %%
# The network is multiplied and shifted such that it has the initial and boundary values by construction. Only the
# equation is left to learn. `create_graph=True` keeps the graph of the derivatives, so that the loss can be
# differentiated by the weights.

network = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))


def u(x, t):
    correction = network(torch.stack([2 * x - 1, 2 * t - 1], dim=1)).squeeze(1)
    return initial(x) + t * x * (1 - x) * correction


def residual(x, t):
    x, t = x.requires_grad_(), t.requires_grad_()
    value = u(x, t)
    u_x, u_t = torch.autograd.grad(value.sum(), (x, t), create_graph=True)
    (u_xx,) = torch.autograd.grad(u_x.sum(), x, create_graph=True)
    return u_t - ALPHA * u_xx


# %%
# Each step draws new points in the square, and minimises the mean squared residual there.

optimizer = torch.optim.Adam(network.parameters(), lr=1e-2)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
losses = []
for step in range(STEPS):
    optimizer.zero_grad()
    loss = residual(torch.rand(256), torch.rand(256)).square().mean()
    loss.backward()
    optimizer.step()
    schedule.step()
    losses.append(loss.item())
    if step % 500 == 499:
        print(f"step {step + 1:4d}  mean squared residual {losses[-1]:.2e}")

# %%
# The largest error against the exact solution, on a grid of 101 by 101 points.

axis = torch.linspace(0, 1, 101)
x, t = (part.flatten() for part in torch.meshgrid(axis, axis, indexing="ij"))
with torch.no_grad():
    found, exact = u(x, t).reshape(101, 101), solution(x, t).reshape(101, 101)
print(f"largest error {(found - exact).abs().max():.4f}; the solution reaches {exact.max():.3f}")

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4))
picture = left.pcolormesh(axis, axis, found, cmap="inferno", rasterized=True)
figure.colorbar(picture, ax=left)
left.set(title="The network's u", xlabel="t", ylabel="x")
for column, colour in zip((0, 10, 30, 100), ("C0", "C1", "C2", "C3"), strict=True):
    right.plot(axis, found[:, column], colour, label=f"t = {axis[column]:.1f}")
    right.plot(axis[::5], exact[::5, column], colour + "o", markersize=3)
right.set(title="Lines: network; points: exact", xlabel="x")
right.legend(loc="lower center")
figure.tight_layout()
