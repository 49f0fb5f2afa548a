"""Special functions of float32 against those of float64."""

import numpy as np
import pytest

from torchlite_backends.array import special as shared
from torchlite_backends.numpy import float_special

EDGES = np.array(
    [0, -0.0, 1, -1, 2, 0.5, -0.5, 1e-45, -1e-45, 1e-38, 3e38, -3e38, np.inf, -np.inf, np.nan, -2, -3.5, 10.05, 13, 40],
    np.float32,
)
RANGES = {
    "erfc": [(-6, 12), (-1e-3, 1e-3)],
    "erfinv": [(-1, 1), (0.99, 1), (-1e-4, 1e-4)],
    "special_ndtr": [(-14, 6)],
    "special_ndtri": [(0, 1), (0, 1e-4), (0.4999, 0.5001)],
    "lgamma": [(0, 4), (0.999, 1.001), (1.999, 2.001), (0, 1e5), (-9, 0)],
}


def inputs(name):
    random = np.random.default_rng(7)
    ranges = [random.uniform(low, high, 20_000).astype(np.float32) for low, high in RANGES[name]]
    return np.concatenate([*ranges, random.integers(0, 1 << 32, 20_000, dtype=np.uint32).view(np.float32), EDGES])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", RANGES)
def test_error_is_below_one_unit(name):
    x = inputs(name)
    found, wide = getattr(float_special, name)(x), getattr(shared, name)(x.astype(np.float64))
    rounded = wide.astype(np.float32)
    finite = np.isfinite(rounded)
    assert found.dtype == np.float32 and np.array_equal(found[~finite], rounded[~finite], equal_nan=True)
    unit = np.spacing(np.abs(rounded[finite])).astype(np.float64)
    assert (np.abs(found[finite] - wide[finite]) <= 0.6 * unit).all()
    assert np.array_equal(np.signbit(found[found == 0]), np.signbit(rounded[found == 0]))


@pytest.mark.parametrize("name", RANGES)
def test_layouts(name):
    x = np.linspace(0.1, 0.9, 4000, dtype=np.float32).reshape(40, 100)
    function = getattr(float_special, name)
    expected = function(x)
    np.testing.assert_array_equal(function(x.T), expected.T)
    np.testing.assert_array_equal(function(x[:, ::2]), expected[:, ::2])
    np.testing.assert_allclose(function(x[0]), expected[0], rtol=3e-7, atol=1e-7)  # few elements
    assert function(x[:0]).shape == (0, 100)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", [*RANGES, "polygamma"])
@pytest.mark.parametrize("order", [(0, 3, 1, 2), (1, 0, 2, 3), (3, 2, 1, 0)])
def test_all_branches_in_other_layouts(name, order):
    x = inputs(name if name in RANGES else "lgamma")[::7][:5600].reshape(5, 10, 7, 16)
    x[0, 0, 0] = 1 - np.float32(2) ** -np.arange(4, 20)  # the tail of erfinv
    function = getattr(float_special, name)
    options = (1,) if name == "polygamma" else ()
    expected = function(x.reshape(-1), *options).reshape(x.shape)
    np.testing.assert_array_equal(function(x.transpose(order), *options), expected.transpose(order))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_trigamma():
    random = np.random.default_rng(7)
    ranges = [random.uniform(*limits, 20_000) for limits in ((0, 10), (-9, 0), (0, 1e-3), (1e-25, 1e-17), (1e15, 1e20))]
    x = np.concatenate([*ranges, EDGES]).astype(np.float32)
    found, wide = float_special.polygamma(x, 1), shared.polygamma(x.astype(np.float64), 1)
    rounded = wide.astype(np.float32)
    finite = np.isfinite(rounded)
    assert found.dtype == np.float32 and np.array_equal(found[~finite], rounded[~finite], equal_nan=True)
    unit = np.spacing(np.abs(rounded[finite])).astype(np.float64)
    assert (np.abs(found[finite] - wide[finite]) <= 0.6 * unit).all()
    np.testing.assert_array_equal(float_special.polygamma(x, 2), shared.polygamma(x, 2))
