"""Graphs passed to custom backends train as the program does; other programs do not reach them."""

from __future__ import annotations

import warnings

import pytest

import torchlite as torch
from torchlite import nn
from torchlite.utils.checkpoint import checkpoint


class Steep(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 100


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.norm = nn.Linear(3, 3), nn.BatchNorm1d(3)
        self.register_buffer("calls", torch.zeros(3))

    def without_gradient(self, x):
        with torch.no_grad():
            y = x * 2
        return y + x

    def inference(self, x):
        with torch.inference_mode():
            y = x * 2
        return y.clone() + x

    def there_and_back(self, x):
        with torch.no_grad():
            with torch.enable_grad():
                y = x * 3
            z = y * 2
        return y * z

    @torch.no_grad()
    def decorated(self, x):
        return x * 5

    def by_a_decorator(self, x):
        return self.decorated(x) * x

    def detached_in_place(self, x):
        y = x * 2
        y.detach_()
        return y * x

    def autocast(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = self.linear(x) @ x.T
            loss = nn.functional.mse_loss(y, torch.ones(4, 4))
        return y.float() * loss

    def normed(self, x):
        return self.norm(x).sin() * nn.functional.dropout(x, 0.5)

    def counting(self, x):
        self.calls += x.detach().sum(0)
        with torch.no_grad():
            self.calls.lerp_(x[0], 0.5)
        return x * self.calls

    def written_argument(self, x):
        y = x.clone()
        y.mul_(x)
        y[0] = 3.0
        return y

    def checkpointed(self, x):
        return checkpoint(lambda t: self.linear(t).sin(), x, use_reentrant=False)

    def twice_differentiated(self, x):
        (g,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
        return g * x

    def custom(self, x):
        return Steep.apply(x)

    def hooked(self, x):
        y = x * 2
        y.register_hook(lambda g: g * 7)
        return y

    def transformed(self, x):
        return torch.func.vmap(lambda row: row.dot(row))(x)


GRAPHS = [name for name in vars(Net) if not name.startswith("_") and name not in ("forward", "decorated")]
NO_GRAPHS = {"custom": "custom Function", "hooked": "hooks gradients", "transformed": "cannot be recorded"}


def outcome(net, call, seed):
    torch.manual_seed(seed)
    net.zero_grad()
    x = torch.randn(4, 3, requires_grad=True)
    found = call(x)
    found.sum().backward()
    grads = [None if t.grad is None else t.grad.tolist() for t in (x, *net.parameters())]
    return found.tolist(), grads, [b.tolist() for b in net.buffers()], torch.rand(1).item()


@pytest.mark.parametrize("name", GRAPHS)
def test_graphs_train_as_the_program_does(name):
    found, graphs = {}, []

    def compiler(graph, inputs):
        graphs.append(graph)
        return graph.forward

    for kind in ("eager", "compiled"):
        torch.manual_seed(0)
        net = Net()
        call = getattr(net, name) if kind == "eager" else torch.compile(getattr(net, name), backend=compiler)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            found[kind] = [outcome(net, call, seed) for seed in range(4)]
        found[kind, "told"] = [str(one.message) for one in told]
    assert found["compiled"] == found["eager"]
    assert len(graphs) == (1 if name == "hooked" else name not in NO_GRAPHS)
    assert [NO_GRAPHS[name] in text for text in found["compiled", "told"]] == [True] * (name in NO_GRAPHS)


def test_a_graph_within_a_region_of_autocast():
    net, graphs = Net(), []

    def compiler(graph, inputs):
        graphs.append(graph)
        return graph

    compiled = torch.compile(net.linear.forward, backend=compiler)
    x = torch.randn(4, 3)
    for dtype in (torch.bfloat16, torch.float32, torch.bfloat16):
        with torch.autocast("cpu", enabled=dtype is torch.bfloat16):
            found, wanted = compiled(x), net.linear(x)
        assert found.dtype is wanted.dtype is dtype and torch.equal(found, wanted)
    assert len(graphs) == 2
