"""Maxima of few large windows, one by one, against the passes along each axis."""

import numpy as np
import pytest

from torchlite_backends.array import pooling

random = np.random.default_rng(2)


def image(shape, dtype, nans):
    x = random.integers(-20, 20, shape).astype(dtype)  # with equal elements
    if nans:
        x.reshape(-1)[::317] = np.nan
    return x


CALLS = {
    "1d": lambda x: pooling._max_pool_with_indices(x(2, 3, 5000), (1900,), (1500,), (0,), (1,), False),
    "2d": lambda x: pooling._max_pool_with_indices(x(2, 3, 90, 100), (50, 40), (40, 60), (0, 0), (1, 1), False),
    "3d": lambda x: pooling._max_pool_with_indices(x(2, 24, 25, 26), (12,) * 3, (12,) * 3, (0,) * 3, (1,) * 3, False),
    "ceil": lambda x: pooling._max_pool_with_indices(x(2, 90, 100), (40, 40), (40, 40), (0, 0), (1, 1), True),
    "no batch": lambda x: pooling._max_pool_with_indices(x(90, 100), (50, 40), (40, 60), (0, 0), (1, 1), False),
    "adaptive": lambda x: pooling._adaptive_max_pool(x(2, 3, 91, 100), (2, 3)),
    "adaptive 3d": lambda x: pooling._adaptive_max_pool(x(3, 20, 21, 22), (1, 2, 3)),
    "fractional": lambda x: pooling._fractional_max_pool(
        x(2, 3, 90, 100), np.full((2, 3, 2), 0.3, np.float32), (30, 41), (2, 2)
    ),
    "fractional 3d": lambda x: pooling._fractional_max_pool(
        x(1, 2, 30, 31, 32), np.full((1, 2, 3), 0.7, np.float32), (10, 11, 12), (2, 1, 2)
    ),
}


@pytest.mark.parametrize("nans", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", CALLS)
def test_blocks_are_the_passes(name, dtype, nans, monkeypatch):
    made = {}

    def x(*shape):
        return made.setdefault(shape, image(shape, dtype, nans))

    monkeypatch.setattr(pooling, "_FOR_EACH_WINDOW", 1)
    blocks = CALLS[name](x)
    monkeypatch.setattr(pooling, "_FOR_EACH_WINDOW", 1 << 40)
    passes = CALLS[name](x)
    for block, along in zip(blocks, passes, strict=True):
        assert block.dtype == along.dtype
        np.testing.assert_array_equal(block, along)


def test_integers_and_strided_images(monkeypatch):
    x = random.integers(-9, 9, (60, 3, 70)).transpose(1, 0, 2)[:, ::2]
    monkeypatch.setattr(pooling, "_FOR_EACH_WINDOW", 1)
    values, index = pooling._adaptive_max_pool(x, (2, 2))
    for c, i, j in np.ndindex(3, 2, 2):
        block = x[c, 15 * i : 15 * (i + 1), 35 * j : 35 * (j + 1)]
        assert values[c, i, j] == block.max() == x[c].reshape(-1)[index[c, i, j]]
    assert pooling._adaptive_max_pool(x[:0], (2, 2))[1].shape == (0, 2, 2)
