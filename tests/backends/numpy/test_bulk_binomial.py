"""Binomial samples: the values and the stream's position do not depend on how samples are grouped."""

import numpy as np
import pytest

import torchlite as torch
from torchlite_backends.cpu_engines import engine_selection
from torchlite_backends.numpy import bulk_binomial

N = 500


@pytest.fixture(autouse=True)
def numpy_alone(monkeypatch):
    monkeypatch.setattr(engine_selection, "select_engine", lambda: type("None", (), {"engine": None}))


def drawn(counts, probs):
    torch.manual_seed(5)
    return torch.binomial(counts, probs), torch.rand(2).tolist()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("count", "p"), [(1, 0.5), (7, 0.9), (1000, 0.01), (1000, 0.003), (100, 0.3), (10_000, 0.7), (1e9, 0.5), (3, 1e-30)]
)
def test_equal_samples_are_those_of_the_loop(count, p, dtype, monkeypatch):
    arguments = torch.full((N,), count, dtype=dtype), torch.full((N,), p, dtype=dtype)
    equal, after = drawn(*arguments)
    monkeypatch.setattr(bulk_binomial, "MIN_EQUAL", 1 << 60)
    single, after_single = drawn(*arguments)
    assert torch.equal(equal, single) and after == after_single


@pytest.mark.parametrize("piece", [64, 1 << 14])
def test_different_samples_do_not_depend_on_the_pieces(piece, monkeypatch):
    counts, probs = torch.arange(float(N)), torch.linspace(0, 1, N)
    expected, after = drawn(counts, probs)
    monkeypatch.setattr(bulk_binomial, "PIECE", piece)
    found, after_pieces = drawn(counts, probs)
    assert torch.equal(found, expected) and after == after_pieces


@pytest.mark.parametrize("different", [False, True])
@pytest.mark.parametrize(("count", "p"), [(1, 0.3), (9, 0.5), (9, 0.95), (40, 0.02), (200, 0.4), (5000, 0.999)])
def test_moments_and_distribution(count, p, different, monkeypatch):
    stats = pytest.importorskip("scipy.stats")
    if different:
        monkeypatch.setattr(bulk_binomial, "MIN_EQUAL", 1 << 60)
    n = 20_000
    torch.manual_seed(11)
    sample = torch.binomial(torch.full((n,), float(count)).double(), torch.full((n,), p).double()).numpy()
    spread = np.sqrt(count * p * (1 - p))
    assert abs(sample.mean() - count * p) < 5 * spread / np.sqrt(n)
    values = np.arange(count + 1)
    share = np.searchsorted(np.sort(sample), values, side="right") / n
    assert np.abs(share - stats.binom.cdf(values, count, p)).max() < 1.63 / np.sqrt(n)


def test_edges():
    nan = float("nan")
    counts = torch.tensor([0.0, 5.0, 5.0, -1.0, nan, 5.0, 5.0, 1e30])
    probs = torch.tensor([0.5, 0.0, 1.0, 0.5, 0.5, nan, 1e-45, 1e-38])
    found = torch.binomial(counts.repeat(100), probs.repeat(100)).reshape(-1, 8)
    assert (found[:, [0, 1, 3, 6, 7]] == 0).all() and (found[:, 2] == 5).all() and found[:, [4, 5]].isnan().all()
    tiny = torch.tensor([3.0, 4.0]).double().repeat(50), torch.tensor([1e-320, 5e-324]).double().repeat(50)
    assert (torch.binomial(*tiny) == 0).all()
    assert torch.binomial(torch.empty(0), torch.empty(0)).shape == (0,)
