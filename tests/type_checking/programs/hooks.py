"""Hooks on modules and tensors: activations, gradients, and a parametrization."""

from functools import partial

import torchlite as torch
from torchlite import nn
from torchlite.nn.utils import parametrize, prune

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 2))
activations: dict[str, torch.Tensor] = {}
gradients: dict[nn.Module, torch.Tensor] = {}


def save_activation(name, module, inputs, output):
    activations[name] = output.detach()


def save_gradient(module, grad_input, grad_output):
    gradients[module] = grad_output[0]


handles = [m.register_forward_hook(partial(save_activation, name)) for name, m in model.named_modules() if name]
handles.append(model[2].register_full_backward_hook(save_gradient))
model.register_forward_pre_hook(lambda module, args: (args[0] * 2,))

x = torch.ones(4, 3, requires_grad=True)
x.register_hook(lambda grad: grad.clamp(-1, 1))
out = model(x)
hidden = out * 1
hidden.retain_grad()
hidden.sum().backward()
assert set(activations) == {"0", "1", "2"} and gradients[model[2]].shape == (4, 2)
assert hidden.grad is not None and x.grad is not None and x.grad.abs().max() <= 1
for handle in handles:
    handle.remove()


class Symmetric(nn.Module):
    def forward(self, X):
        return X.triu() + X.triu(1).transpose(-1, -2)


layer = nn.Linear(3, 3)
parametrize.register_parametrization(layer, "weight", Symmetric())
assert torch.equal(layer.weight, layer.weight.T)
pruned = nn.Linear(4, 4)
prune.l1_unstructured(pruned, name="weight", amount=0.5)
sparsity = float((pruned.weight == 0).float().mean())
print(sparsity, sorted(activations), sum(p.numel() for p in model.parameters()))
assert sparsity == 0.5
for name, child in model.named_children():
    print(name, type(child).__name__, [k for k, _ in child.named_parameters()])
