"""Native GRU steps against NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

from torchlite_backends.cc import cxx_compiler, native_gru
from torchlite_backends.cc.device import Device
from torchlite_backends.numpy import gru

pytestmark = pytest.mark.skipif(bool(cxx_compiler.why_not()), reason=cxx_compiler.why_not() or "there is a compiler")


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize(
    ("steps", "batch", "features", "hidden"),
    [(1, 1, 3, 5), (7, 1, 6, 32), (4, 3, 5, 17), (5, 16, 8, 16), (3, 70, 4, 400), (2, 1, 1, 1)],
)
def test_equal(steps, batch, features, hidden, biased, reverse, dtype):
    rng = np.random.default_rng(0)
    x, h = (
        rng.standard_normal((steps, batch, features)).astype(dtype),
        rng.standard_normal((batch, hidden)).astype(dtype),
    )
    weights = [(rng.standard_normal((3 * hidden, n)) / np.sqrt(n)).astype(dtype) for n in (features, hidden)]
    weights += [rng.standard_normal(3 * hidden).astype(dtype) if biased else None for _ in range(2)]
    got = native_gru._gru_layer(Device(), x, h, *weights, reverse)
    for a, b in zip(got, gru._gru_layer(x, h, *weights, reverse), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4 if dtype == "f4" else 1e-11, atol=1e-5 if dtype == "f4" else 1e-12)


def test_one_bias_and_odd_layouts():
    rng = np.random.default_rng(1)
    x, h = rng.standard_normal((4, 6, 8)).astype("f4")[:, ::2, ::-1], rng.standard_normal((5, 3)).astype("f4").T
    weights = [rng.standard_normal((n, 15)).astype("f4").T for n in (8, 5)]
    given = (x, h, *weights, rng.standard_normal(15).astype("f4"), None, False)
    for a, b in zip(native_gru._gru_layer(Device(), *given), gru._gru_layer(*given), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_left_to_numpy():
    ones = np.ones((3, 1), "f2")
    given = (np.ones((1, 1, 1), "f2"), np.ones((1, 1), "f2"), ones, ones, None, None, False)
    assert native_gru._gru_layer(Device(), *given) is None
