"""Squares that a loaded module writes as powers are products."""

from __future__ import annotations

import pytest

import torchlite as torch
from torchlite import nn

from .loaded_programs import replay


class Power(nn.Module):
    def __init__(self, exponent):
        super().__init__()
        self.register_buffer("exponent", torch.tensor(exponent))

    def forward(self, x):
        return torch.exp(torch.pow(torch.relu(x), self.exponent))


@pytest.mark.parametrize("exponent", [2.0, 2])
@pytest.mark.parametrize("shape", [(), (3, 5), (200, 300)])
def test_square(shape, exponent):
    text = replay(Power(exponent), torch.randn(shape))
    assert "pow" not in text and "square" in text


@pytest.mark.parametrize("exponent", [3.0, [2.0, 2.0], [2.0, 1.0]])
def test_other_powers_stay(exponent):
    assert "pow" in replay(Power(exponent), torch.rand(3, 2))


def test_integers_stay():
    class Whole(nn.Module):
        def forward(self, x):
            return torch.pow(x + 1, 2)

    assert "square" not in replay(Whole(), torch.arange(6))
