"""Poisson samples by NumPy's sampler: the values and the stream's position are those of the loop in Python."""

import numpy as np
import pytest

import torchlite as torch
from torchlite_backends.cpu_engines import engine_selection
from torchlite_backends.numpy import bulk_poisson, poisson_binomial
from torchlite_backends.numpy.mt19937 import Engine

N = 20_000
RATES = {
    "one small": np.full(N, 3.0),
    "below 1": np.linspace(0, 1, N),
    "about 10": np.linspace(0, 20, N),
    "large": np.geomspace(10, 1e8, N),
    "in turns": np.tile([0.0, 9.99, 10.0, 300.0], N // 4),
    "growing": np.repeat([1e-6, 9.9], N // 2),
}


@pytest.fixture(autouse=True)
def numpy_alone(monkeypatch):
    monkeypatch.setattr(engine_selection, "select_engine", lambda: type("None", (), {"engine": None}))


def drawn(rates, before):
    torch.manual_seed(11)
    torch.rand(before)
    return torch.poisson(torch.from_numpy(rates)).tolist(), torch.rand(3).tolist()


@pytest.mark.parametrize("before", [0, 7])
@pytest.mark.parametrize("name", RATES)
def test_values_and_position(name, before, monkeypatch):
    found = drawn(RATES[name], before)
    monkeypatch.setattr(poisson_binomial, "MIN_COUNT", N + 1)
    assert found == drawn(RATES[name], before)


def test_too_few_words_are_read_again(monkeypatch):
    expected = drawn(RATES["about 10"], 0)
    monkeypatch.setattr(bulk_poisson, "_DEVIATIONS", -20)
    assert drawn(RATES["about 10"], 0) == expected


def test_it_serves(monkeypatch):
    monkeypatch.setattr(poisson_binomial, "_sample_poisson", None)
    assert torch.poisson(torch.linspace(0, 30, N)).shape == (N,)


def test_an_unknown_layout_has_no_sampler(monkeypatch):
    fields = (bulk_poisson._PhiloxState._fields_[2], *bulk_poisson._PhiloxState._fields_)
    other = type("Other", (bulk_poisson.ctypes.Structure,), {"_fields_": fields})
    monkeypatch.setattr(bulk_poisson, "_PhiloxState", other)
    assert bulk_poisson.make_numpy_sampler.__wrapped__() is None


@pytest.mark.parametrize("count", [0, 1, 5, 311, 312, 313, 2000])
@pytest.mark.parametrize("before", [0, 1, 10, 620, 623, 624])
def test_pairs_of_words_are_the_words(before, count):
    one, other = Engine(7), Engine(7)
    one.words(before), other.words(before)
    words = one.words(2 * count).astype(np.uint64)
    assert (other.pairs_of_words(count) == (words[0::2] << np.uint64(32) | words[1::2])).all()
    assert one.words(5).tolist() == other.words(5).tolist()
