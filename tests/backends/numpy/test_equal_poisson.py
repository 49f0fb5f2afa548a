"""Poisson samples of one rate at once: the values and the stream's position are those of the loop in Python."""

import math

import numpy as np
import pytest

import torchlite as torch
from torchlite_backends.cpu_engines import engine_selection
from torchlite_backends.numpy import equal_poisson, poisson_binomial

N = 3000


@pytest.fixture(autouse=True)
def numpy_alone(monkeypatch):
    monkeypatch.setattr(engine_selection, "select_engine", lambda: type("None", (), {"engine": None}))


def drawn(rate, dtype=torch.float32):
    torch.manual_seed(11)
    return torch.poisson(torch.full((N,), rate, dtype=dtype)).tolist(), torch.rand(3).tolist()


@pytest.mark.parametrize("piece", [1 << 15, 90])
@pytest.mark.parametrize("rate", [10.0, 11.5, 100.0, 9e4])
def test_values_and_position(rate, piece, monkeypatch):
    monkeypatch.setattr(equal_poisson, "PIECE", piece)
    found = drawn(rate)
    monkeypatch.setattr(equal_poisson, "MIN_COUNT", N + 1)
    monkeypatch.setattr(poisson_binomial, "MIN_COUNT", N + 1)
    assert found == drawn(rate)


def test_all_dtypes():
    assert drawn(30.0, torch.float64)[0] == drawn(30.0)[0] == drawn(30.0, torch.float16)[0]


def test_it_serves(monkeypatch):
    def refuse(*of):
        raise AssertionError

    monkeypatch.setattr(equal_poisson, "sample_poisson", refuse)
    torch.poisson(torch.linspace(1, 2, N))
    with pytest.raises(AssertionError):
        torch.poisson(torch.full((N,), 30.0))


def test_logarithms_of_factorials_far_from_the_rate():
    x = np.array([0.0, 1.0, 19.0, 5000.0, 1e9])
    found = equal_poisson._log_factorials(x, 20.0)
    np.testing.assert_allclose(found, [math.lgamma(k + 1) for k in x.tolist()], rtol=1e-14)
