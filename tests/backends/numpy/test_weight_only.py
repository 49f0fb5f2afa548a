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
