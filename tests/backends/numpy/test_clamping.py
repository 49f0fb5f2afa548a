"""Clamps by NumPy's `clip` equal those by `maximum` and `minimum`, with the signs of zeros."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from torchlite_backends.array import binary as shared
from torchlite_backends.numpy import clamping

BOUNDS = [None, 0.0, -0.0, 0, 1, -1, 6.5, math.nan, math.inf, -math.inf]
VALUES = [-0.0, 0.0, math.nan, -1, 7, 6.5, math.inf, -math.inf, 3.5]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32"])
def test_clamp(dtype):
    x = np.array([v for v in VALUES if dtype != "int32" or math.isfinite(v)], dtype)
    for low, high in itertools.product(BOUNDS, BOUNDS):
        if low is high is None or dtype == "int32" and {type(low), type(high)} & {float}:
            continue
        for x_or_number in (x, x[:1].reshape(())):
            got, want = clamping.clamp(x_or_number, low, high), shared.clamp(x_or_number, low, high)
            np.testing.assert_array_equal(got, want)
            np.testing.assert_array_equal(np.signbit(got), np.signbit(want))
            assert got.dtype == want.dtype


def test_one_bound():
    x = np.array(VALUES, "f4")
    for bound in BOUNDS[1:]:
        np.testing.assert_array_equal(clamping.clamp_min(x, bound), shared.clamp_min(x, bound))
        np.testing.assert_array_equal(clamping.clamp_max(x, bound), shared.clamp_max(x, bound))


def test_no_bound():
    with pytest.raises(RuntimeError, match="At least one"):
        clamping.clamp(np.ones(2, "f4"))
