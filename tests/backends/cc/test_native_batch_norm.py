"""Batch norm and limits of the compiled kernels, against NumPy in double precision."""

from __future__ import annotations

import math

import numpy as np
import pytest

from torchlite_backends.cc import cxx_compiler, native_batch_norm
from torchlite_backends.cc.device import Device

pytestmark = pytest.mark.skipif(bool(cxx_compiler.why_not()), reason=cxx_compiler.why_not())
SHAPES = (2, 5, 4), (3, 7, 7, 7), (8, 33, 4, 4), (2, 3, 67, 61), (1, 2, 200, 301), (40, 6, 5, 5)


@pytest.fixture(scope="module")
def engine():
    return Device()


@pytest.fixture
def numbers():
    rng = np.random.default_rng(3)
    return lambda *shape: rng.standard_normal(shape).astype("f4")


def _over(x):
    return (0, *range(2, x.ndim))


def _column(v, x):
    return np.reshape(v, (1, -1) + (1,) * (x.ndim - 2)).astype("f8")


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("offset", [0.0, 100.0])
def test_train_and_backward(engine, numbers, shape, affine, offset):
    x, grad = numbers(*shape) + np.float32(offset), numbers(*shape)
    weight, bias = (numbers(shape[1]), numbers(shape[1])) if affine else (None, None)
    out, mean, var = native_batch_norm.batch_norm_train(engine, x, weight, bias, 1e-5)
    wide, axes = x.astype("f8"), _over(x)
    np.testing.assert_allclose(mean, wide.mean(axes), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(var, wide.var(axes), rtol=1e-4)
    rstd = 1 / np.sqrt(_column(wide.var(axes), x) + 1e-5)
    normalised = (wide - _column(wide.mean(axes), x)) * rstd
    scale = _column(np.ones(shape[1]) if weight is None else weight, x)
    expected = normalised * scale + (0 if bias is None else _column(bias, x))
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-4 * max(1, offset / 10))

    needs = True, affine, affine
    of_x, of_weight, of_bias = native_batch_norm.batch_norm_backward(engine, grad, x, weight, mean, var, 1e-5, needs)
    g = grad.astype("f8")
    wanted = scale * rstd * (
        g - _column(g.mean(axes), x) - normalised * _column((g * normalised).mean(axes), x)
    )  # fmt: skip
    np.testing.assert_allclose(of_x, wanted, rtol=1e-3, atol=1e-3)
    if affine:
        np.testing.assert_allclose(of_weight, (g * normalised).sum(axes), rtol=1e-3, atol=2e-2)
        np.testing.assert_allclose(of_bias, g.sum(axes), rtol=1e-4, atol=1e-3)
    alone = native_batch_norm.batch_norm_backward(engine, grad, x, weight, mean, var, 1e-5, (False, True, False))
    assert alone[0] is None and alone[2] is None and np.array_equal(alone[1], of_weight if affine else alone[1])


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("limits", [(-math.inf, math.inf), (0.0, math.inf), (-math.inf, 1.0), (0.0, 0.5)])
def test_eval(engine, numbers, shape, limits):
    x, weight, bias, mean, var = numbers(*shape), *(numbers(shape[1]) for _ in range(3)), numbers(shape[1]) ** 2
    x.flat[3], x.flat[5] = math.nan, math.inf
    with np.errstate(invalid="ignore"):
        scale = _column(weight, x) / np.sqrt(_column(var, x) + 1e-3)
        expected = np.clip((x - _column(mean, x)) * scale + _column(bias, x), *limits)
    found = native_batch_norm.batch_norm_eval(engine, x, weight, bias, mean, var, 1e-3, *limits)
    np.testing.assert_allclose(found, expected, rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("count", [1, 15, 16, 17, 4095, 4097, 70001])
def test_limits(engine, numbers, count):
    memory = numbers(count + 3)
    x, grad = memory[3:], numbers(count)  # where stores begin does not depend on what is read
    x[count // 2] = math.nan
    found = native_batch_norm.hardtanh(engine, x, -0.5, 0.5)
    np.testing.assert_array_equal(found, np.clip(x, np.float32(-0.5), np.float32(0.5)))
    found = native_batch_norm.hardtanh_backward(engine, grad, x, -0.5, 0.5)
    np.testing.assert_array_equal(found, np.where((x <= -0.5) | (x >= 0.5), 0, grad))
    found = native_batch_norm.relu_backward(engine, grad, x)
    np.testing.assert_array_equal(found, np.where(x <= 0, 0, grad))


def test_unsupported_arguments_are_declined(engine, numbers):
    x, v = numbers(4, 6, 5, 5), numbers(6)
    assert native_batch_norm.batch_norm_train(engine, x.transpose(0, 1, 3, 2), v, v, 1e-5) is None
    assert native_batch_norm.batch_norm_train(engine, x.astype("f8"), v.astype("f8"), None, 1e-5) is None
    assert native_batch_norm.batch_norm_train(engine, x[:, :, 0, :2].copy(), v, v, 1e-5) is None
    assert native_batch_norm.hardtanh(engine, x, 1.0, -1.0) is None
    assert native_batch_norm.hardtanh_backward(engine, x[:1], x, -1.0, 1.0) is None
