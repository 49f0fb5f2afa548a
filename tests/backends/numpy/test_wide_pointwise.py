"""Quotients, hypotenuses, sums of exponentials and next numbers of float32 by loops of float64 and of bits."""

import numpy as np
import pytest

from torchlite_backends.array import binary as shared
from torchlite_backends.numpy import wide_pointwise

EDGES = np.array([0, -0.0, 1, -1, 0.3, -0.3, 1e-45, -1e-38, 3e38, -3e38, np.inf, -np.inf, np.nan, 5, -7.5], np.float32)
OPS = ["fmod", "remainder", "floor_divide", "hypot", "logaddexp", "logaddexp2", "nextafter"]


def pairs(kind):
    random = np.random.default_rng(3)
    if kind == "edges":
        x, y = (a.ravel() for a in np.meshgrid(np.tile(EDGES, 8), EDGES))
    elif kind == "bits":
        x, y = random.integers(0, 1 << 32, (2, 60_000), dtype=np.uint32).view(np.float32)
    elif kind == "integers":
        x, y = random.integers(-50, 50, (2, 60_000)).astype(np.float32)
    else:
        x, y = random.normal(0, {"near": 1, "far": 1e4}[kind], (2, 60_000)).astype(np.float32)
        y = y / np.float32(1e3) if kind == "far" else y
    return x, y


def same_bits(a, b):
    return np.array_equal(a, b, equal_nan=True) and np.array_equal(np.signbit(a)[a == a], np.signbit(b)[b == b])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("kind", ["edges", "bits", "integers", "near", "far"])
@pytest.mark.parametrize("op", OPS)
def test_values(op, kind):
    x, y = pairs(kind)
    found, plain = getattr(wide_pointwise, op)(x, y), getattr(shared, op)(x, y)
    assert found.dtype == np.float32
    if op in ("fmod", "remainder", "floor_divide", "nextafter"):
        assert same_bits(found, plain)
    else:
        wide = getattr(np, op)(x.astype(np.float64), y.astype(np.float64)).astype(np.float32)
        finite = np.isfinite(wide) & np.isfinite(found)
        assert np.array_equal(found[~finite], wide[~finite], equal_nan=True)
        limit = 1 if op == "hypot" else 4  # logaddexp near 0 loses digits, as NumPy's does
        error = np.abs(found[finite].astype(np.float64) - wide[finite])
        assert (error <= limit * np.maximum(np.spacing(np.abs(wide[finite])), 1e-7 if limit == 4 else 0)).all()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("op", OPS)
def test_numbers_and_broadcasts(op):
    x = np.linspace(-9, 9, 3000, dtype=np.float32).reshape(30, 100)
    function, plain = getattr(wide_pointwise, op), getattr(shared, op)
    for other in (0.3, -2, np.float32(1.5), np.array(0.7, np.float32), x[:1] + 20, x[:, :1] - 30, x.T[:1, :30].T):
        found, expected = function(x, other), plain(x, other)
        assert found.shape == expected.shape and found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
    strided = x[:, ::2]
    np.testing.assert_allclose(function(strided, strided), plain(strided, strided), rtol=1e-6)
    assert function(x[:0], 2.0).shape == (0, 100)


def test_quotients_just_below_an_integer():
    """The quotient of the numbers next to a multiple has the multiple's integral part or one less."""
    y = np.random.default_rng(0).uniform(0.5, 1, 20_000).astype(np.float32)
    multiple = (y * np.float32(12_345)).astype(np.float32)
    for x in (multiple, np.nextafter(multiple, np.float32(0)), np.nextafter(multiple, np.float32(np.inf))):
        assert same_bits(wide_pointwise.fmod(x, y), np.fmod(x, y))
        assert same_bits(wide_pointwise.remainder(-x, y), shared.remainder(-x, y))
