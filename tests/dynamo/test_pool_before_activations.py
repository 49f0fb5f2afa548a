"""Functions that keep the order of numbers run behind the pooling of a loaded module."""

from __future__ import annotations

import pytest

import torchlite as torch
from torchlite import nn
from torchlite._dispatch.kernel_recorder import table_of
from torchlite.nn import functional as F

from .loaded_programs import replay


class Pooled(nn.Module):
    """A product, functions of it, and the maximum of windows. more: and another reader of the functions' result."""

    def __init__(self, function, more=False, pool=None):
        super().__init__()
        self.function, self.more = function, more
        self.pool = pool or nn.MaxPool2d(2)
        self.register_buffer("floor", torch.tensor(-0.1))

    def forward(self, x):
        found = self.function(x * 1.5, self)
        out = self.pool(found)
        return (out, found + 1) if self.more else out


def leaky(x, module):
    return F.leaky_relu(x, 0.1)


CASES = {
    "leaky": (leaky, ["leaky_relu"]),
    "clamp": (lambda x, module: x.clamp(-0.5, 0.7), ["clamp"]),
    "relu": (lambda x, module: x.relu(), ["relu"]),
    "maximum": (lambda x, module: torch.maximum(module.floor, x), ["maximum"]),
    "two": (lambda x, module: torch.minimum(F.leaky_relu(x, 0.3), module.floor), ["leaky_relu", "minimum"]),
}
STAYS = {
    "falls": lambda x, module: F.leaky_relu(x, -0.1),
    "silu": lambda x, module: F.silu(x),
    "two arrays": lambda x, module: torch.maximum(x, x.flip(0)),
    "negated": lambda x, module: -x,
}
POOLS = [nn.MaxPool2d(2), nn.MaxPool2d(3, 2, 1), nn.MaxPool2d((1, 4)), nn.MaxPool2d(2, ceil_mode=True)]


def is_numpy():
    return table_of(torch.device("cpu")).backend.engine() == "numpy"


@pytest.mark.parametrize("pool", POOLS, ids=str)
@pytest.mark.parametrize("case", CASES)
def test_behind(case, pool):
    function, names = CASES[case]
    x = torch.randn(2, 3, 9, 11)
    x[0, 0, 0, 0] = -torch.inf
    lines = [line.split("#")[0] for line in replay(Pooled(function, pool=pool), x).splitlines()]
    order = [next(at for at, line in enumerate(lines) if name in line) for name in ("_max_pool", *names)]
    if is_numpy():
        assert order == sorted(order)


@pytest.mark.parametrize("case", STAYS)
def test_other_functions_stay(case):
    text = replay(Pooled(STAYS[case]), torch.randn(2, 3, 8, 8))
    lines = text.splitlines()
    pool = next(at for at, line in enumerate(lines) if "_max_pool(" in line)
    assert not any("= " in line for line in lines[pool + 1 :])


def test_functions_with_another_reader_stay():
    text = replay(Pooled(leaky, more=True), torch.randn(2, 3, 8, 8))
    assert text.index("leaky_relu(") < text.index("_max_pool(")
