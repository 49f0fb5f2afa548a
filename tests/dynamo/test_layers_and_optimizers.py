"""Layers and optimizers of the tables of `tests/nn` and `tests/optim`, compiled: each gives what eager gives, bit for
bit, and is replayed.
"""

from __future__ import annotations

import warnings

import pytest

import torchlite as torch
from tests.nn.cases import LAYERS
from tests.optim.cases import OPTIMIZERS, problem
from torchlite import nn
from torchlite._dynamo.compiled_function import CompiledFunction

# It reads how many batches there were, after it counted one more.
READING = ("BatchNorm2d", True)
# Steps that call a closure run as they are written.
WITH_CLOSURES = frozenset(name for name in OPTIMIZERS if name.startswith("LBFGS"))


def numbers(values):
    """Return the values that two results must share."""
    return [
        (t.dtype, t.shape, t.requires_grad, t.tolist()) if isinstance(t, torch.Tensor) else t
        for t in torch.utils._pytree.tree_leaves(values)
    ]


def calls_of_a_layer(name, compiled, training):
    """Return the results and gradients of some calls, and the number of replays."""
    torch.manual_seed(0)
    make, inputs = LAYERS[name]
    layer = make(nn).train(training)
    frame = CompiledFunction(layer, name)
    found = []
    for _ in range(4):
        args = [t.requires_grad_() if t.dtype.is_floating_point else t for t in inputs(torch)]
        out = (frame if compiled else layer)(*args)
        leaves = [t for t in torch.utils._pytree.tree_leaves(out) if isinstance(t, torch.Tensor) and t.requires_grad]
        layer.zero_grad()
        if leaves:
            sum(t.square().sum() for t in leaves).backward()
        grads = [t.grad for t in (*args, *layer.parameters())]
        found.append(numbers([out, grads, list(layer.buffers())]))
    return found, frame.replays


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("name", LAYERS)
def test_layers(name, training):
    want, _ = calls_of_a_layer(name, False, training)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore" if (name, training) == READING else "error")
        found, replays = calls_of_a_layer(name, True, training)
    assert found == want and replays == (0 if (name, training) == READING else 2)


def steps_of_an_optimizer(name, compiled):
    """Return the parameters after each training step, and the number of replays."""
    params, loss = problem(torch, name)
    cls = getattr(torch.optim, name.split()[0])
    optimizer = cls(params, **OPTIMIZERS[name])

    def step():
        if name in WITH_CLOSURES:
            return optimizer.step(closure)
        closure()
        optimizer.step()

    def closure():
        optimizer.zero_grad()
        value = loss()
        value.backward()
        return value

    frame = CompiledFunction(step, name)
    found = []
    for _ in range(6):
        (frame if compiled else step)()
        found.append(numbers(params))
    return found, frame.replays


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers(name):
    want, _ = steps_of_an_optimizer(name, False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore" if name in WITH_CLOSURES else "error")
        found, replays = steps_of_an_optimizer(name, True)
    assert found == want and replays == (0 if name in WITH_CLOSURES else 3)  # the second has gradients of the first


def test_a_scaler_is_read_and_returned():
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    scaler.scale(torch.zeros(()))
    frame = CompiledFunction(lambda x: (scaler.scale(x * 2), scaler), "scaled", fullgraph=True)
    for k in range(5):
        if k == 3:
            scaler.update(16.0)
        found, same = frame(torch.full((2,), float(k)))
        assert same is scaler and found.tolist() == [2.0 * k * scaler.get_scale()] * 2
    assert frame.replays
