"""Gamma samples in bulk: the values and the stream's position are those of the loop over single samples."""

import numpy as np
import pytest

import torchlite as torch
from torchlite_backends.cpu_engines import engine_selection
from torchlite_backends.numpy import bulk_gamma, gamma_dirichlet

N = 700
SHAPES = {
    "tiny": np.full(N, 1e-3),
    "below 1": np.full(N, 0.4),
    "1": np.full(N, 1.0),
    "2": np.full(N, 2.0),
    "large": np.full(N, 1e6),
    "all below 1": np.linspace(0.01, 0.99, N),
    "all above 1": np.linspace(1, 30, N),
    "mixed": np.linspace(0.05, 3, N),
    "in turns": np.tile([0.3, 4.0], N // 2),
}


@pytest.fixture
def numpy_alone(monkeypatch):
    monkeypatch.setattr(engine_selection, "select_engine", lambda: type("None", (), {"engine": None}))


def drawn(shapes, kept):
    """The samples and what the generator gives next."""
    torch.manual_seed(5)
    if kept:  # the second of a pair of normals
        torch.randn(1, dtype=torch.float64)
    found = torch._standard_gamma(torch.from_numpy(shapes)).numpy()
    return found, torch.randn(3, dtype=torch.float64).tolist(), torch.rand(2).tolist()


@pytest.mark.usefixtures("numpy_alone")
@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("piece", [1 << 14, 200])
@pytest.mark.parametrize("name", SHAPES)
def test_values_and_position(name, piece, kept, monkeypatch):
    monkeypatch.setattr(bulk_gamma, "PIECE", piece)
    values, *after = drawn(SHAPES[name], kept)
    monkeypatch.setattr(bulk_gamma, "MIN_COUNT", 1 << 60)
    single, *after_single = drawn(SHAPES[name], kept)
    np.testing.assert_allclose(values, single, rtol=1e-14)
    np.testing.assert_allclose(after[0], after_single[0], rtol=1e-12)  # a kept normal of the loop is NumPy's
    assert after[1] == after_single[1]


@pytest.mark.usefixtures("numpy_alone")
def test_bulk_serves(monkeypatch):
    def refuse(*of):
        raise AssertionError

    monkeypatch.setattr(gamma_dirichlet, "_consume_draws", refuse)
    assert torch._standard_gamma(torch.full((N,), 0.5)).shape == (N,)


@pytest.mark.usefixtures("numpy_alone")
@pytest.mark.parametrize("shape", [0.05, 0.5, 1.0, 1.4, 7.0, 3000.0])
def test_moments_and_distribution(shape):
    special = pytest.importorskip("scipy.special")
    torch.manual_seed(3)
    n = 40_000
    sample = torch._standard_gamma(torch.full((n,), shape, dtype=torch.float64)).numpy()
    assert abs(sample.mean() - shape) < 5 * np.sqrt(shape / n)
    assert abs(sample.var() - shape) < 5 * np.sqrt((6 * shape + 2 * shape**2) / n)
    ordered = special.gammainc(shape, np.sort(sample))
    distance = np.abs(ordered - np.arange(0.5, n) / n).max()
    assert distance < 1.63 / np.sqrt(n)  # Kolmogorov and Smirnov, 1%


@pytest.mark.usefixtures("numpy_alone")
def test_shapes_out_of_range_take_the_single_steps():
    shapes = torch.tensor([0.0, float("inf"), float("nan"), -1.0, 2.0, 1e-30, 1e30]).repeat(60)
    torch.manual_seed(0)
    found = torch._standard_gamma(shapes).reshape(-1, 7)
    tiny = torch.finfo(torch.float32).tiny
    assert (found[:, [0, 2, 3, 5]] == tiny).all() and (found[:, 1] == float("inf")).all()
    assert (found[:, 4] > 0).all() and torch.allclose(found[:, 6], torch.tensor(1e30))
    assert torch._standard_gamma(torch.empty(0)).shape == (0,)
