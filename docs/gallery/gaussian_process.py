"""A Gaussian process by gpytorch

Gaussian process regression fits noisy points, and says how uncertain it is where there are none.

gpytorch imports `torch`; after `torch.as_torch()` it finds torchlite by that name. The model's kernel is a scaled
Gaussian one. Its length scale, its variance and the noise are learned by maximising the marginal likelihood.

Needs gpytorch.
"""

import sys

import matplotlib.pyplot as plt

import torchlite as torch

torch.as_torch()
import gpytorch

STEPS = 2 if "--quick" in sys.argv else 120

torch.manual_seed(0)
torch.set_default_dtype(torch.float64)
x = torch.cat([torch.linspace(0, 0.45, 25), torch.linspace(0.7, 1, 15)])
y = torch.sin(10 * x) * (1 + x) + 0.15 * torch.randn(len(x))

# %%
# A model of gpytorch returns the prior distribution in training, and the posterior afterwards.


class Model(gpytorch.models.ExactGP):
    def __init__(self, x, y, likelihood):
        super().__init__(x, y, likelihood)
        self.mean = gpytorch.means.ConstantMean()
        self.kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean(x), self.kernel(x))


likelihood = gpytorch.likelihoods.GaussianLikelihood()
model = Model(x, y, likelihood)
objective = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)  # the likelihood's parameters are among them
for step in range(STEPS):
    optimizer.zero_grad()
    loss = -objective(model(x), y)
    loss.backward()
    optimizer.step()
    if step % 40 == 39:
        print(f"step {step + 1:3d}  negative log likelihood per point {loss.item():.3f}")
print(f"length scale {model.kernel.base_kernel.lengthscale.item():.3f}")
print(f"noise {likelihood.noise.sqrt().item():.3f} (0.150 was used)")

# %%
# The band is the mean and two standard deviations of the function. It is wide in the gap of the data. The thin
# lines are samples of the posterior: functions that the data allows.

model.eval()
likelihood.eval()
places = torch.linspace(-0.1, 1.1, 200)
with torch.no_grad():
    posterior = model(places)
    lower, upper = posterior.confidence_region()
    samples = posterior.rsample(torch.Size([5]))
figure, axis = plt.subplots(figsize=(8, 4))
axis.fill_between(places, lower, upper, alpha=0.25, label="two standard deviations")
axis.plot(places, samples.T, "C0", linewidth=0.6)
axis.plot(places, posterior.mean, "C0", linewidth=2, label="mean")
axis.plot(places, torch.sin(10 * places) * (1 + places), "k--", linewidth=1, label="true function")
axis.plot(x, y, "k.", label="data")
axis.set(title="Posterior of the Gaussian process", xlabel="x")
axis.legend(loc="lower left", ncols=2)
