"""gpytorch: exact Gaussian processes, kernels, a variational one with inducing points, several tasks."""

import math

import gpytorch
import torch
from show import gradients, show

torch.manual_seed(0)
torch.set_default_dtype(torch.float64)
x = torch.linspace(0, 1, 40)
y = torch.sin(x * 2 * math.pi) + torch.randn(40) * 0.2


class Exact(gpytorch.models.ExactGP):
    def __init__(self, likelihood, kernel):
        super().__init__(x, y, likelihood)
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(kernel)

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


def train(name, model, likelihood, objective, inputs, targets, steps=6):
    model.train()
    likelihood.train()
    optimizer = torch.optim.Adam([*model.parameters(), *likelihood.parameters()], lr=0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        loss = -objective(model(inputs), targets)
        loss.backward()
        optimizer.step()
    show(f"{name}.loss", loss)
    show(f"{name}.gradients", gradients(model))
    model.eval()
    likelihood.eval()


kernels = {
    "rbf": gpytorch.kernels.RBFKernel(),
    "matern": gpytorch.kernels.MaternKernel(nu=1.5),
    "periodic": gpytorch.kernels.PeriodicKernel(),
    "sum": gpytorch.kernels.RQKernel() + gpytorch.kernels.LinearKernel(),
    "interpolated": gpytorch.kernels.GridInterpolationKernel(gpytorch.kernels.RBFKernel(), grid_size=20, num_dims=1),
}
for name, kernel in kernels.items():
    likelihood = gpytorch.likelihoods.GaussianLikelihood()
    model = Exact(likelihood, kernel)
    train(name, model, likelihood, gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model), x, y)
    with torch.no_grad(), gpytorch.settings.fast_pred_var():
        found = likelihood(model(torch.linspace(-0.2, 1.2, 11)))
        show(f"{name}.mean", found.mean)
        show(f"{name}.variance", found.variance)
        show(f"{name}.bounds", torch.stack(found.confidence_region()))


class Variational(gpytorch.models.ApproximateGP):
    def __init__(self, points):
        distribution = gpytorch.variational.CholeskyVariationalDistribution(len(points))
        super().__init__(gpytorch.variational.VariationalStrategy(self, points, distribution))
        self.mean_module = gpytorch.means.LinearMean(1)
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


model, likelihood = Variational(torch.linspace(0, 1, 8)[:, None]), gpytorch.likelihoods.GaussianLikelihood()
train("variational", model, likelihood, gpytorch.mlls.VariationalELBO(likelihood, model, 40), x[:, None], y)
show("variational.mean", model(x[::5, None]).mean)
likelihood = gpytorch.likelihoods.BernoulliLikelihood()
labels = (y > 0).double()
train("labels", model, likelihood, gpytorch.mlls.VariationalELBO(likelihood, model, 40), x[:, None], labels)
show("labels.probabilities", likelihood(model(x[::5, None])).probs)
