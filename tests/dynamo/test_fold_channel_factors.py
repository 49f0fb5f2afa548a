"""Products and sums with constants behind a loaded module's convolution are a part of its weights."""

from __future__ import annotations

import io

import pytest

import torchlite as torch
from torchlite import nn
from torchlite._dynamo.compiled_function import COMPILED_FUNCTIONS

from .loaded_programs import replay

CONVOLUTIONS = {
    "images": nn.Conv2d(3, 4, 3),
    "without a bias": nn.Conv2d(3, 4, 3, bias=False),
    "in groups": nn.Conv2d(4, 4, 3, groups=4),
    "signals": nn.Conv1d(3, 4, 3, bias=False),
    "volumes": nn.Conv3d(3, 4, 2),
}
OPS = {
    "product": lambda x, c: x * c,
    "product from the left": lambda x, c: c * x,
    "quotient": lambda x, c: x / c,
    "sum": lambda x, c: x + c,
    "difference": lambda x, c: x - c,
    "several": lambda x, c: (x * c + c) / c,
}


class Scaled(nn.Module):
    def __init__(self, layer, op, constant):
        super().__init__()
        self.layer, self.op = layer, op
        self.register_buffer("constant", constant)

    def forward(self, x):
        return torch.sigmoid(self.op(self.layer(x), self.constant))


def images(layer):
    return torch.randn(2, layer.in_channels, *(9, 8, 7)[: len(layer.kernel_size)])


def count_ops(text):
    return sum(text.count(f" {name}(") + text.count(f"={name}(") for name in ("mul", "add", "sub", "div"))


@pytest.mark.parametrize("shape", [(), (1,), (1, 1), "channels"])
@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("layer", CONVOLUTIONS)
def test_folded(layer, op, shape):
    layer = CONVOLUTIONS[layer]
    if shape == "channels":
        shape = (4, *[1] * len(layer.kernel_size))
    text = replay(Scaled(layer, OPS[op], torch.rand(shape) + 0.5), images(layer))
    assert not count_ops(text)


@pytest.mark.parametrize(
    ("op", "shape"),
    [
        (OPS["product"], (6,)),  # for each column
        (OPS["product"], (2, 1, 1, 1)),  # for each image
        (lambda x, c: c / x, (1,)),
        (lambda x, c: c - x, (1,)),
        (lambda x, c: x * c + torch.tanh(x), (1,)),  # another reader
    ],
)
def test_other_steps_stay(op, shape):
    layer = CONVOLUTIONS["images"]
    assert count_ops(replay(Scaled(layer, op, torch.rand(shape) + 0.5), images(layer)))


def test_transposed_stays():
    layer = nn.ConvTranspose2d(3, 4, 3)
    assert count_ops(replay(Scaled(layer, OPS["product"], torch.rand(4, 1, 1)), images(layer)))


@pytest.mark.parametrize(
    ("op", "left"),
    [
        (lambda x, c: x / c * 3.0, 1),
        (lambda x, c: 3.0 * (c * x), 1),
        (lambda x, c: x / c / 3.0, 1),
        (lambda x, c: x * c / 3.0 * c, 1),
        (lambda x, c: x * (c * 1e30) * 1e30, 2),  # the product of the numbers is infinite
        (lambda x, c: (c / x) * 3.0, 2),
        (lambda x, c: (x + c) * 3.0, 2),
    ],
)
@pytest.mark.parametrize("shape", [(3, 5), (300, 500)])
def test_numbers_of_products(op, left, shape):
    class Products(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("constant", torch.tensor([1.7]))

        def forward(self, x):
            return torch.tanh(op(torch.relu(x), self.constant))

    text = replay(Products(), torch.rand(shape))
    assert sum(text.count(f"{name}(") + text.count(f"{name}_") for name in ("mul", "add", "div")) == left


def test_weights_of_two_layers():
    """A layer that is called twice has two weights."""

    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Conv2d(3, 3, 3, padding=1)
            self.register_buffer("scale", torch.tensor([2.0]))

        def forward(self, x):
            return self.layer(torch.relu(self.layer(x) * self.scale))

    assert not count_ops(replay(Twice(), torch.randn(1, 3, 8, 8)))


@pytest.mark.parametrize("op", ["sum", "difference", "several"])
def test_devices(device, op):
    """Constants on devices are folded there."""
    layer = nn.Conv2d(3, 4, 3, bias=False)
    module, x = Scaled(layer, OPS[op], torch.tensor([1.5])).to(device), images(layer).to(device)
    held = io.BytesIO()
    torch.jit.save(torch.jit.trace(module, x), held)
    held.seek(0)
    loaded = torch.jit.load(held, map_location=device)
    with torch.no_grad():
        for _ in range(5):
            found = loaded(x)
        torch.testing.assert_close(found, module(x), rtol=1e-5, atol=2e-6)
    (function,) = [f for f in COMPILED_FUNCTIONS if getattr(f, "module", lambda: None)() is loaded]
    ((variant,),) = function.variants.values()
    assert function.replays > 0 and not count_ops(variant.replay.forward.text)
