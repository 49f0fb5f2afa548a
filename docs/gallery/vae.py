"""A variational autoencoder's latent plane

A variational autoencoder maps digits to points of a plane and back; a grid of points shows the digits in between.

The encoder gives a normal distribution in the plane for each image. The decoder gives the probability of each pixel.
Training maximises the evidence lower bound of Kingma and Welling (2013): the log likelihood of the image minus the
Kullback-Leibler divergence of the encoder's distribution from the standard normal one.
"""

import sys

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

import torchlite as torch
from torchlite import nn
from torchlite.distributions import Normal, kl_divergence

EPOCHS = 1 if "--quick" in sys.argv else 60

torch.manual_seed(0)
digits = load_digits()
images = torch.tensor(digits.data, dtype=torch.float32) / 16

# %%
# `rsample` draws points in such a way that gradients reach the encoder's mean and scale.


class VAE(nn.Module):
    def __init__(self, pixels=64, width=128):
        super().__init__()
        self.encode = nn.Sequential(
            nn.Linear(pixels, width), nn.GELU(), nn.Linear(width, width), nn.GELU(), nn.Linear(width, 4)
        )
        self.decode = nn.Sequential(
            nn.Linear(2, width), nn.GELU(), nn.Linear(width, width), nn.GELU(), nn.Linear(width, pixels)
        )

    def posterior(self, images):
        mean, log_scale = self.encode(images).chunk(2, dim=1)
        return Normal(mean, log_scale.exp())

    def forward(self, images):
        """The negative evidence lower bound of each image."""
        posterior = self.posterior(images)
        scores = self.decode(posterior.rsample())
        error = nn.functional.binary_cross_entropy_with_logits(scores, images, reduction="none").sum(1)
        divergence = kl_divergence(posterior, Normal(0.0, 1.0)).sum(1)
        return error + divergence, divergence


model = VAE()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(EPOCHS):
    bounds, divergences = [], []
    for batch in images[torch.randperm(len(images))].split(128):
        bound, divergence = model(batch)
        optimizer.zero_grad()
        bound.mean().backward()
        optimizer.step()
        bounds.append(bound.detach())
        divergences.append(divergence.detach())
    if epoch % 15 == 14:
        bound, divergence = torch.cat(bounds).mean(), torch.cat(divergences).mean()
        print(f"epoch {epoch + 1:2d}  -ELBO {bound:.2f} nats, of which KL {divergence:.2f}")

# %%
# Images of the same digit lie together, although no label was used. Similar digits are neighbours.

with torch.no_grad():
    plane = model.posterior(images).mean
figure, axis = plt.subplots(figsize=(5.5, 4.2))
points = axis.scatter(plane[:, 0], plane[:, 1], c=digits.target, cmap="tab10", s=5, vmin=-0.5, vmax=9.5)
figure.colorbar(points, ax=axis, ticks=range(10))
axis.set(title="Means of the encoder", xlabel="$z_1$", ylabel="$z_2$")

# %%
# The decoder turns every point into an image. The grid's steps are quantiles of the normal distribution, so that each
# image stands for the same share of the prior.

with torch.no_grad():
    steps = Normal(0.0, 1.0).icdf(torch.linspace(0.03, 0.97, 14))
    grid = torch.cartesian_prod(steps.flip(0), steps)
    decoded = model.decode(grid.flip(1)).sigmoid().reshape(14, 14, 8, 8)
    decoded = nn.functional.pad(decoded, (1, 1, 1, 1))
figure, axis = plt.subplots(figsize=(4.5, 4.5))
axis.imshow(decoded.permute(0, 2, 1, 3).reshape(140, 140), cmap="gray_r", interpolation="nearest")
axis.set(title="The decoder over the plane", xticks=[], yticks=[])
