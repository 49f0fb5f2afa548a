"""Layer and RMS norms of single ops become one step of a loaded module's program."""

from __future__ import annotations

import pytest

import torchlite as torch
from torchlite import nn

from .loaded_programs import replay


class Norm(nn.Module):
    """A layer norm as converters write it. Each option is another way to write a part, or another function."""

    def __init__(self, square=lambda d: d.pow(2), eps=1e-5, dim=-1, affine=True, swapped=False, keeps=False):
        super().__init__()
        self.square, self.eps, self.dim, self.swapped, self.keeps = square, eps, dim, swapped, keeps
        self.weight = nn.Parameter(torch.randn(24)) if affine else None
        self.bias = nn.Parameter(torch.randn(24)) if affine else None

    def forward(self, x):
        difference = x - x.mean(self.dim, keepdim=True)
        variance = self.square(difference).mean(self.dim, keepdim=True)
        out = difference / torch.sqrt(self.eps + variance if self.swapped else variance + self.eps)
        if self.weight is not None:
            out = self.bias + self.weight * out if self.swapped else out * self.weight + self.bias
        return (torch.tanh(out), difference * 2) if self.keeps else torch.tanh(out)


@pytest.mark.parametrize("shape", [(5, 24), (2, 7, 24), (1, 24), (3, 4, 5, 24), (80, 40, 24)])
@pytest.mark.parametrize(
    "options",
    [{}, {"square": lambda d: d * d}, {"square": torch.square}, {"affine": False}, {"swapped": True}],
    ids=["power", "product", "square", "without affine part", "swapped"],
)
def test_fused(shape, options):
    text = replay(Norm(**options), torch.randn(shape) * 3 + 1)
    assert "_layer_norm(" in text and "sqrt" not in text and "mean" not in text


def test_dimension_by_its_number():
    assert "_layer_norm(" in replay(Norm(dim=2), torch.randn(2, 7, 24))


def test_other_reader_of_the_difference():
    text = replay(Norm(keeps=True), torch.randn(5, 24))
    assert "_layer_norm(" in text and "sqrt" not in text


@pytest.mark.parametrize(
    "options",
    [{"dim": 1}, {"square": lambda d: d.pow(3).abs()}, {"square": torch.abs}, {"dim": (1, 2), "affine": False}],
    ids=["dimension within", "cube", "size", "two dimensions"],
)
def test_other_functions_stay(options):
    assert "_layer_norm(" not in replay(Norm(**options), torch.randn(2, 7, 24))


def test_square_of_something_else():
    class Other(nn.Module):
        def forward(self, x, y):
            difference = x - x.mean(-1, keepdim=True)
            return difference / torch.sqrt((y * y).mean(-1, keepdim=True) + 1e-3)

    assert "_layer_norm(" not in replay(Other(), torch.randn(5, 24), torch.randn(5, 24))


def test_weights_of_another_shape_stay_apart():
    class Wide(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.weight = Norm(affine=False), nn.Parameter(torch.randn(5, 24))

        def forward(self, x):
            return self.norm(x) * self.weight

    assert "_layer_norm(" in replay(Wide(), torch.randn(5, 24))


class RootMeanSquare(nn.Module):
    """An RMS norm as models write it."""

    def __init__(self, form, weighted=True):
        super().__init__()
        self.form, self.weight = form, nn.Parameter(torch.randn(24)) if weighted else None

    def forward(self, x):
        out = self.form(x)
        return torch.tanh(out if self.weight is None else self.weight * out)


RMS_NORMS = {
    "power": lambda x: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5),
    "swapped": lambda x: torch.rsqrt(1e-5 + (x * x).mean(-1, keepdim=True)) * x,
    "quotient": lambda x: x / torch.sqrt(x.square().mean(-1, keepdim=True) + 1e-5),
}


@pytest.mark.parametrize("shape", [(5, 24), (1, 1, 24), (80, 40, 24)])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("form", RMS_NORMS.values(), ids=RMS_NORMS)
def test_rms_norm(form, weighted, shape):
    text = replay(RootMeanSquare(form, weighted), torch.randn(shape) * 3)
    assert "_rms_norm(" in text and "sqrt" not in text and "mean" not in text


OTHERS = {
    "another dimension": lambda x: x * torch.rsqrt(x.square().mean(0, keepdim=True) + 1e-5),
    "another factor": lambda x: (x + 1) * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-5),
    "cube": lambda x: x * torch.rsqrt(x.pow(3).abs().mean(-1, keepdim=True) + 1e-5),
}


@pytest.mark.parametrize("form", OTHERS.values(), ids=OTHERS)
def test_what_is_no_rms_norm_stays(form):
    assert "_rms_norm(" not in replay(RootMeanSquare(form), torch.randn(24, 24))
