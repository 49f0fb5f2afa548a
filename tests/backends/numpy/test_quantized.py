"""Products of levels by BLAS, and levels of many numbers, against whole numbers and one piece."""

import numpy as np
import pytest

import torchlite as torch
from torchlite_backends.numpy import quantized


@pytest.fixture(autouse=True, params=[1, 2])
def threads(request, monkeypatch):
    """Run with BLAS alone, on one thread and on two."""
    monkeypatch.setattr(quantized, "integer_products", lambda: None)
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def _levels(rng, *shape, high=256):
    return rng.integers(0, high, shape, np.uint8)


# Sums of 300 products of the largest levels exceed what float32 holds, and are added in parts.
@pytest.mark.parametrize("depth", [1, 64, 258, 300, 900, 3000])
@pytest.mark.parametrize("rows", [1, 20, 64, 500])
@pytest.mark.parametrize("high", [20, 256])
def test_products(rows, depth, high, rng):
    a, b = _levels(rng, rows, 1, depth), _levels(rng, depth, 300, high=high)
    a[0], b[:, 0] = 255, high - 1
    zero, other_zero = np.array(3, np.uint8), np.array(0, np.uint8)
    want = (a.astype(np.int64) - 3) @ b.astype(np.int64)
    bound = quantized.bind_quantized_matmul(b, other_zero)
    for given in (a, np.asfortranarray(a), np.broadcast_to(a, (2, *a.shape))):
        for found in (quantized._quantized_matmul(given, b, zero, other_zero), bound(given, zero, None, None, None)):
            assert found.dtype == np.int32
            assert np.array_equal(found, np.broadcast_to(want, found.shape))


@pytest.mark.parametrize("high", [20, 256])
def test_stacks_of_two_varying_matrices(high, rng):
    a, b = _levels(rng, 1, 6, 200, 400), _levels(rng, 1, 6, 400, 64, high=high)
    a[:, 0, 0], b[:, 0, :, 0] = 255, high - 1
    found = quantized._quantized_matmul(a, b, None, np.array(2, np.uint8))
    assert np.array_equal(found, a.astype(np.int64) @ (b.astype(np.int64) - 2))


def test_empty_products():
    for rows, depth, columns in ((0, 3, 4), (3, 0, 4), (3, 4, 0), (70, 0, 4)):
        a, b = np.zeros((rows, depth), np.uint8), np.zeros((depth, columns), np.uint8)
        assert np.array_equal(quantized._quantized_matmul(a, b), np.zeros((rows, columns)))


@pytest.mark.parametrize("size", [quantized._MANY - 1, quantized._MANY, 5 * quantized._MANY + 7])
def test_levels_of_many_numbers(size, rng):
    x = rng.standard_normal(size).astype(np.float32)
    found, scale, point = quantized._dynamic_quantize(x)
    low, high = min(x.min(), np.float32(0)), max(x.max(), np.float32(0))
    assert scale == (high - low) / np.float32(255) and point == np.rint(-low / scale)
    assert np.array_equal(found, np.clip(np.rint(x / scale) + np.float32(point), 0, 255).astype(np.uint8))
    turned = quantized._dynamic_quantize(np.stack([x, x]).T)
    assert np.array_equal(turned[0], np.stack([found, found], 1)) and turned[1] == scale and turned[2] == point


def test_extremes_of_many_numbers_with_nan(rng):
    x = rng.standard_normal(2 * quantized._MANY).astype(np.float32)
    x[quantized._MANY + 5] = np.nan
    assert np.isnan(quantized._find_extremes(x)).all()
