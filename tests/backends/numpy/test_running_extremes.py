"""Running maxima and minima of large arrays: the shared kernels' values, bits and places."""

import numpy as np
import pytest

from torchlite_backends.array import scan
from torchlite_backends.numpy import running_extremes

SHAPES = [((316, 316), 1), ((5, 2000), 1), ((100_001,), 0), ((30, 700, 3), 1), ((64, 65), 0), ((10, 513), 1),
          ((5000, 1), 1), ((2, 3, 1024), -1)]  # fmt: skip


@pytest.mark.parametrize("op", ["cummax", "cummin"])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i8", "i4", "i2", "u1", "f2"])
@pytest.mark.parametrize(("shape", "dim"), SHAPES)
def test_values_and_places(op, dtype, shape, dim):
    rng = np.random.default_rng(0)
    for x in (rng.integers(0, 50, shape), np.sort(rng.integers(0, 1 << 7, shape), -1), np.zeros(shape)):
        x = x.astype(dtype)
        if x.dtype.kind == "f":
            x -= 25
            x[x == 0] = -0.0
            x.reshape(-1)[::777] = np.nan
            x.reshape(-1)[5::301] = np.inf
        for given in (x, np.asfortranarray(x), x[..., ::-1]):
            found, plain = getattr(running_extremes, op)(given, dim), getattr(scan, op)(given, dim)
            assert found[0].dtype == x.dtype and found[1].dtype == np.int64
            np.testing.assert_array_equal(found[0], plain[0])
            np.testing.assert_array_equal(found[1], plain[1])
            if x.dtype.kind == "f":
                same = ~np.isnan(x)
                assert (np.signbit(found[0])[same] == np.signbit(plain[0])[same]).all()


def test_empty():
    assert running_extremes.cummax(np.zeros((0, 5000), "f4"), 1)[1].shape == (0, 5000)
