"""torch.distributions: sampling, log probabilities, divergences, REINFORCE."""

import torchlite as torch
import torchlite.distributions as D
from torchlite.distributions import Categorical, Normal, kl_divergence

torch.manual_seed(0)
mean = torch.zeros(2, requires_grad=True)
scale = torch.ones(2)
posterior, prior = Normal(mean, scale), Normal(torch.ones(2), 2 * scale)
sample = posterior.rsample((100,))
loss = kl_divergence(posterior, prior).sum() - posterior.log_prob(sample).mean()
loss.backward()
assert mean.grad is not None and sample.shape == (100, 2)

logits = torch.zeros(3, requires_grad=True)
policy = Categorical(logits=logits)
action = policy.sample()
reward = 1.0 if action.item() == 1 else -1.0
objective = -policy.log_prob(action) * reward
objective.backward()
assert logits.grad is not None and abs(logits.grad.sum().item()) < 1e-6

mixture = D.MixtureSameFamily(Categorical(torch.ones(2)), D.Normal(torch.tensor([-1.0, 1.0]), torch.ones(2)))
multivariate = D.MultivariateNormal(torch.zeros(2), covariance_matrix=torch.eye(2))
independent = D.Independent(Normal(torch.zeros(4, 2), 1.0), 1)
transformed = D.TransformedDistribution(Normal(0.0, 1.0), [D.transforms.ExpTransform()])
assert independent.log_prob(torch.zeros(4, 2)).shape == (4,) and multivariate.entropy() > 0
with torch.no_grad():
    draws = [d.sample((3,)) for d in (mixture, multivariate, transformed, D.Beta(2.0, 3.0), D.Bernoulli(0.3))]
print([tuple(d.shape) for d in draws], policy.probs.tolist(), prior.mean.tolist(), prior.stddev.tolist())
assert transformed.log_prob(torch.tensor(1.0)).item() < 0
