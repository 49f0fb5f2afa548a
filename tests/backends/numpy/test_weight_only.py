"""Products with weights of eight and four bits: blocks of weights, and memory."""

import tracemalloc

import numpy as np
import pytest

import torchlite as torch
from torchlite_backends.numpy import weight_only


@pytest.fixture(autouse=True)
def without_engine(monkeypatch):
    monkeypatch.setattr(weight_only, "integer_products", lambda: None)


@pytest.mark.parametrize("block", [1, 500, 1 << 18])
@pytest.mark.parametrize("columns", [16, 64, 200, 208])
def test_blocks_of_weights(monkeypatch, block, columns):
    monkeypatch.setattr(weight_only, "_BLOCK", block)
    rng = np.random.default_rng(3)
    x, scales = rng.normal(size=(3, 64)).astype("f4"), rng.random(columns, "f4")
    weight = rng.integers(-128, 127, (columns, 64), "i1")
    expected = (x.astype("f8") @ weight.T) * scales
    np.testing.assert_allclose(weight_only._int8_weight_product(x, weight, scales), expected, rtol=1e-5, atol=1e-3)
    if columns % 16:
        return
    levels, factors = rng.integers(0, 16, (columns, 64), "i4"), rng.normal(size=(2, columns, 2)).astype("f4")
    packed = torch._convert_weight_to_int4pack_for_cpu(torch.from_numpy(levels), 2).numpy()
    scale, zero = (np.repeat(factors[..., i], 32, 0).T.astype("f8") for i in (0, 1))
    expected = x @ ((levels - 8) * scale + zero).T
    np.testing.assert_allclose(weight_only._int4_weight_product(x, packed, 32, factors), expected, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("name", ["int8", "int4"])
def test_weights_do_not_become_floats_at_once(name):
    x, n = np.ones((2, 2048), "f4"), 2048
    tracemalloc.start()
    if name == "int8":
        weight_only._int8_weight_product(x, np.ones((n, 2048), "i1"), np.ones(n, "f4"))
        own = n * 2048
    else:
        weight_only._int4_weight_product(x, np.ones((n, 1024), "u1"), 128, np.ones((16, n, 2), "f4"))
        own = n * 1024
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak - own < 4 * n * 2048 / 3


def quantized_row_product(x, numbers, scales, bias):
    """The product of one row, in float64: levels of int8 by the row's range, and weights (number - 8) * scale."""
    low, high = min(x.min(), 0.0), max(x.max(), 0.0)
    factor = 1.0 if low == high else 255 / (high - low)
    zero = -128 - low * factor if (low + high) * factor > 1 else 127 - high * factor
    zero = np.rint(np.clip(zero, -128, 127))
    product = x * factor
    levels = np.clip(np.sign(product) * np.floor(abs(product) + 0.5) + zero, -128, 127) - zero
    return ((numbers - 8) * scales) @ levels / factor + bias


@pytest.mark.parametrize("block", [1, 1000, 1 << 18])
@pytest.mark.parametrize(("columns", "depth", "group"), [(1, 32, 32), (30, 96, 32), (7, 6, 6), (5, 9000, 9000)])
@pytest.mark.parametrize("with_bias", [False, True])
def test_inputs_that_are_quantized(monkeypatch, block, columns, depth, group, with_bias):
    monkeypatch.setattr(weight_only, "_BLOCK", block)
    rng = np.random.default_rng(columns)
    x = rng.normal(size=(4, depth)).astype("f4")
    x[1], x[2] = abs(x[1]), 0
    numbers, scales = rng.integers(0, 16, (columns, depth)), rng.random((columns, depth // group), "f4")
    bias = rng.normal(size=columns).astype("f4") if with_bias else np.zeros(columns, "f4")
    parts = numbers[:, ::2] | numbers[:, 1::2] << 4, scales, *([bias] if with_bias else [])
    packed = np.concatenate([part.reshape(-1) for part in parts]).astype("f4")
    got = weight_only._quantized_int4_product(x, packed, group, depth, columns)
    assert got.dtype == "f4"
    for row, found in zip(x.astype("f8"), got, strict=True):
        expected = quantized_row_product(row, numbers, np.repeat(scales, group, 1), bias)
        np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-4)


def test_a_row_with_nan_gives_nan():
    packed = np.ones(2 * 16 + 2, "f4")
    x = np.ones((2, 32), "f4")
    x[0, 3] = np.nan
    with np.errstate(invalid="ignore"):
        got = weight_only._quantized_int4_product(x, packed, 32, 32, 2)
    assert np.isnan(got[0]).all() and np.isfinite(got[1]).all()
