"""pyro: variational inference and NUTS."""

import pyro
import pyro.distributions as D
import torch
from pyro.infer import MCMC, NUTS, SVI, Predictive, Trace_ELBO
from pyro.infer.autoguide import AutoNormal
from show import show

torch.set_default_dtype(torch.float64)
pyro.set_rng_seed(0)
data = torch.randn(20) + 3


def model(x):
    mean = pyro.sample("mean", D.Normal(0.0, 10.0))
    scale = pyro.sample("scale", D.LogNormal(0.0, 1.0))
    with pyro.plate("rows", len(x)):
        pyro.sample("x", D.Normal(mean, scale), obs=x)


guide = AutoNormal(model)
inference = SVI(model, guide, pyro.optim.Adam({"lr": 0.05}), Trace_ELBO())
losses = [inference.step(data) for _ in range(30)]
show("svi.losses", losses)
for name, value in pyro.get_param_store().items():
    show(f"svi.{name}", value)
show("svi.predicted", Predictive(model, guide=guide, num_samples=5)(data)["mean"])
chain = MCMC(NUTS(model), num_samples=15, warmup_steps=10, disable_progbar=True)
chain.run(data)
for name, value in chain.get_samples().items():
    show(f"nuts.{name}", value)
