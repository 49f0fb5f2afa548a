"""torch.func: gradients for each sample, Jacobians, Hessians and an ensemble of models."""

import torchlite as torch
from torchlite import nn
from torchlite.func import functional_call, grad, grad_and_value, hessian, jacrev, jvp, stack_module_state, vjp, vmap

torch.manual_seed(0)
model = nn.Linear(3, 1)
params = {name: p.detach() for name, p in model.named_parameters()}
x, y = torch.randn(5, 3), torch.randn(5, 1)


def compute_loss(params, sample, target):
    prediction = functional_call(model, params, (sample.unsqueeze(0),))
    return nn.functional.mse_loss(prediction, target.unsqueeze(0))


per_sample = vmap(grad(compute_loss), in_dims=(None, 0, 0))(params, x, y)
assert per_sample["weight"].shape == (5, 1, 3)
grads, value = grad_and_value(compute_loss)(params, x[0], y[0])
assert torch.allclose(grads["weight"], per_sample["weight"][0], atol=1e-6) and value.ndim == 0


def f(v):
    return (v**3).sum()


point = torch.tensor([1.0, 2.0])
assert torch.allclose(hessian(f)(point), torch.diag(6 * point))
assert torch.allclose(jacrev(torch.sin)(point), torch.diag(torch.cos(point)))
out, tangent = jvp(f, (point,), (torch.ones(2),))
value, pullback = vjp(f, point)
(gradient,) = pullback(torch.tensor(1.0))
assert torch.allclose(tangent, gradient.sum()) and torch.allclose(out, value)

models = [nn.Linear(3, 2) for _ in range(4)]
stacked, buffers = stack_module_state(models)


def call(params, buffers, data):
    return functional_call(models[0], (params, buffers), (data,))


ensemble = torch.vmap(call, in_dims=(0, 0, None))(stacked, buffers, x)
print(ensemble.shape, gradient.tolist())
assert torch.allclose(ensemble[1], models[1](x), atol=1e-6)
