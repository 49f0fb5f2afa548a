"""The compiled kernels for arrays of any size: layer norm, gelu and attention of few numbers."""

from __future__ import annotations

import math
import os
import subprocess
import sys

import numpy as np
import pytest

from torchlite_backends.cc import cxx_compiler, native_small_arrays
from torchlite_backends.cc.device import Device

pytestmark = pytest.mark.skipif(bool(cxx_compiler.why_not()), reason=cxx_compiler.why_not())
FLOATS = "f4", "f8"


@pytest.fixture(scope="module")
def engine():
    return Device()


@pytest.fixture
def numbers():
    rng = np.random.default_rng(3)
    return lambda *shape, dtype="f4": rng.standard_normal(shape).astype(dtype)


def _near(dtype):
    return {"f4": {"rtol": 2e-6, "atol": 2e-6}, "f8": {"rtol": 1e-13, "atol": 1e-13}}[dtype]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("columns", [1, 3, 16, 31, 32, 100, 256, 1000])
@pytest.mark.parametrize("affine", ["both", "weight", "bias", "none"])
def test_layer_norm_of_few_rows(engine, numbers, dtype, columns, affine):
    x = numbers(2, 3, columns, dtype=dtype) * 3 + 100
    weight = numbers(columns, dtype=dtype) if affine in ("both", "weight") else None
    bias = numbers(columns, dtype=dtype) if affine in ("both", "bias") else None
    out, mean, rstd = native_small_arrays._layer_norm(engine, x, weight, bias, 1, 1e-5)
    wide = x.astype("f8")
    centre, factor = wide.mean(-1, keepdims=True), 1 / np.sqrt(wide.var(-1, keepdims=True) + 1e-5)
    expected = (wide - centre) * factor * (1 if weight is None else weight) + (0 if bias is None else bias)
    assert out.dtype == mean.dtype == rstd.dtype == x.dtype and mean.shape == rstd.shape == (2, 3, 1)
    near = {"rtol": 1e-4, "atol": 1e-4} if dtype == "f4" else {"rtol": 1e-10, "atol": 1e-10}
    np.testing.assert_allclose(out, expected, **near)
    np.testing.assert_allclose(mean, centre, **_near(dtype))
    if columns > 1:
        np.testing.assert_allclose(rstd, factor, rtol=1e-4 if dtype == "f4" else 1e-10)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("columns", [1, 16, 31, 100, 5000])
@pytest.mark.parametrize("weighted", [False, True])
def test_rms_norm_of_few_rows(engine, numbers, dtype, columns, weighted):
    x = numbers(2, 3, columns, dtype=dtype) * 3
    weight = numbers(columns, dtype=dtype) if weighted else None
    out, rstd = native_small_arrays._rms_norm(engine, x, weight, 1, 1e-5)
    factor = 1 / np.sqrt((x.astype("f8") ** 2).mean(-1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(out, x * factor * (1 if weight is None else weight), **_near(dtype))
    np.testing.assert_allclose(rstd, factor, **_near(dtype))
    assert native_small_arrays._rms_norm(engine, x * x.dtype.type(1e30) * 1e30, None, 1, 1e-5) is None or dtype == "f8"


def test_layer_norm_over_several_dimensions_and_declined_arguments(engine, numbers):
    x = numbers(4, 5, 6)
    out, mean, _ = native_small_arrays._layer_norm(engine, x, None, None, 2, 0.0)
    wide = x.reshape(4, 30).astype("f8")
    expected = (wide - wide.mean(1, keepdims=True)) / wide.std(1, keepdims=True)
    np.testing.assert_allclose(out.reshape(4, 30), expected, rtol=1e-5, atol=1e-5)
    assert mean.shape == (4, 1, 1)
    x[2, 1, 1] = np.nan
    assert native_small_arrays._layer_norm(engine, x, None, None, 2, 0.0) is None  # a variance that is no number
    x[2, 1, 1] = 1e20
    assert native_small_arrays._layer_norm(engine, x, None, None, 2, 0.0) is None
    for given in (x.swapaxes(0, 1), x[:0], x.astype("f2"), np.ones((4, 5, 6), "i4")):
        assert native_small_arrays._layer_norm(engine, given, None, None, 1, 0.0) is None
    assert native_small_arrays._layer_norm(engine, x, numbers(12)[::2], None, 1, 0.0) is None
    assert native_small_arrays._layer_norm(engine, x, None, numbers(6, dtype="f8"), 1, 0.0) is None


@pytest.mark.parametrize("count", [1, 15, 16, 17, 1000])
def test_gelu_of_few_numbers(engine, numbers, count):
    x = numbers(count) * 4
    expected = [v / 2 * (1 + math.erf(v / math.sqrt(2))) for v in x.astype("f8")]
    np.testing.assert_allclose(native_small_arrays.gelu(engine, x), expected, rtol=2e-6, atol=3e-7)


def test_gelu_of_nonfinite_values_and_declined_arguments(engine):
    x = np.array([np.nan, np.inf, 200, -200, 1e30, -0.0], "f4")
    np.testing.assert_array_equal(
        native_small_arrays.gelu(engine, x), np.array([np.nan, np.inf, 200, -0.0, 1e30, -0.0], "f4")
    )
    for given in (x[::2], x[:0], x.astype("f8")):
        assert native_small_arrays.gelu(engine, given) is None
    assert native_small_arrays.gelu(engine, x, approximate="tanh") is None


def _attention(query, key, value, causal, scale, mask=None):
    scores = query.astype("f8") @ key.swapaxes(-1, -2).astype("f8") * scale
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    if causal:
        scores[..., np.arange(key.shape[2]) > np.arange(query.shape[2])[:, None]] = -np.inf
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    total = weights.sum(-1, keepdims=True)
    return weights / total @ value, np.log(total) + scores.max(-1, keepdims=True)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize(("columns", "width", "features"), [(1, 1, 1), (7, 64, 64), (33, 40, 17), (500, 5, 80)])
def test_attention_of_few_queries(engine, numbers, dtype, causal, rows, columns, width, features):
    query = numbers(2, rows, 3, width, dtype=dtype).swapaxes(1, 2)
    key, value = numbers(2, 3, columns, width, dtype=dtype), numbers(2, columns, 3, features, dtype=dtype)
    out, lse = native_small_arrays._sdpa(engine, query, key, value.swapaxes(1, 2), None, causal, 0.3)
    expected, logs = _attention(query, key, value.swapaxes(1, 2), causal, 0.3)
    np.testing.assert_allclose(out, expected, **_near(dtype))
    np.testing.assert_allclose(lse, logs, **_near(dtype))
    assert out.dtype == query.dtype and (rows == 1 or out.strides[1] < out.strides[2])  # as the heads of the queries


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(40,), (1, 40), (3, 40), (2, 1, 1, 40), (2, 5, 3, 40), (5, 1, 1), (2, 1, 3, 1)])
def test_masked_attention_of_few_queries(engine, numbers, dtype, shape):
    query, key, value = (numbers(2, 5, n, 16, dtype=dtype) for n in (3, 40, 40))
    wide = numbers(*shape[:-1], 2 * shape[-1], dtype=dtype)
    seen = wide > 0
    seen[..., :2] = True
    for mask in (wide[..., ::2], np.ascontiguousarray(wide[..., ::2]), seen[..., ::2]):
        out, lse = native_small_arrays._sdpa(engine, query, key, value, mask, False, 0.3)
        expected, logs = _attention(query, key, value, False, 0.3, mask)
        np.testing.assert_allclose(out, expected, **_near(dtype))
        np.testing.assert_allclose(lse, logs, **_near(dtype))
    unseen = np.zeros((1, 40), bool)
    out, lse = native_small_arrays._sdpa(engine, query, key, value, unseen, False, 0.3)
    assert (out == 0).all() and (lse == 0).all()


def test_attention_of_distant_and_nonfinite_scores(engine, numbers):
    query, key, value = numbers(1, 1, 1, 8) * 100, numbers(1, 1, 30, 8) * 100, numbers(1, 1, 30, 8)
    out, _ = native_small_arrays._sdpa(engine, query, key, value, None, False, 1.0)
    np.testing.assert_allclose(out, _attention(query, key, value, False, 1.0)[0], rtol=1e-5, atol=1e-5)
    query[...], key[...] = 1, -np.inf
    out, lse = native_small_arrays._sdpa(engine, query, key, value, None, False, 1.0)
    assert (out == 0).all() and (lse == 0).all()
    key[0, 0, 3] = np.nan
    assert np.isnan(native_small_arrays._sdpa(engine, query, key, value, None, False, 1.0)[0]).all()


def test_unsupported_attention_is_declined(engine, numbers):
    query, key = numbers(2, 3, 1, 8), numbers(2, 3, 5, 8)
    many = numbers(2, 3, 9, 8)
    assert native_small_arrays._sdpa(engine, many, many, many, None, False, 1.0) is None
    for mask in (np.zeros((1, 5), "f8"), np.zeros((2, 2, 3, 1, 5), "f4"), np.zeros((4, 5), "f4")):
        assert native_small_arrays._sdpa(engine, query, key, key, mask, False, 1.0) is None
    assert native_small_arrays._sdpa(engine, query, key[:1], key[:1], None, False, 1.0) is None
    assert native_small_arrays._sdpa(engine, query, key[:, :, :0], key[:, :, :0], None, False, 1.0) is None
    assert native_small_arrays._sdpa(engine, query[0], key[0], key[0], None, False, 1.0) is None
    assert native_small_arrays._sdpa(engine, query, key.astype("f8"), key, None, False, 1.0) is None
    assert native_small_arrays._sdpa(engine, query, numbers(2, 3, 5, 16)[..., ::2], key, None, False, 1.0) is None


def test_the_engine_serves_arrays_of_any_size():
    code = (
        "import torchlite as torch\n"
        "from torchlite_backends.cc import native_small_arrays\n"
        "called = []\n"
        "def noting(name, kernel):\n"
        "    def call(*args, **options):\n"
        "        out = kernel(*args, **options)\n"
        "        called.append(name) if out is not None else None\n"
        "        return out\n"
        "    return call\n"
        "native_small_arrays.kernels.update({n: noting(n, k) for n, k in native_small_arrays.kernels.items()})\n"
        "F, x = torch.nn.functional, torch.randn(1, 2, 1, 8)\n"
        "F.layer_norm(x, (8,)), F.gelu(x), F.scaled_dot_product_attention(x, x, x), F.gelu(x.double())\n"
        "print(*called)\n"
    )
    environment = {**os.environ, "TORCHLITE_CPU_KERNELS": "cc"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert done.stdout.split() == ["_layer_norm", "gelu", "_sdpa"], done.stderr
