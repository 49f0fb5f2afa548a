"""Layer norm's compiled backward pass: its numbers, for any threads, past the caches, and what it leaves to others."""

from __future__ import annotations

import numpy as np
import pytest

import torchlite as torch
from torchlite_backends.cc import cxx_compiler, native_layer_norm_backward
from torchlite_backends.cc.device import Device

pytestmark = pytest.mark.skipif(bool(cxx_compiler.why_not()), reason=cxx_compiler.why_not())


@pytest.fixture(scope="module")
def engine():
    return Device()


def _given(rows, columns, dtype, weighted=True):
    rng = np.random.default_rng(5)
    x, grad = rng.standard_normal((2, rows, columns)) * 3 + 2
    weight = rng.standard_normal(columns) if weighted else None
    mean, rstd = x.mean(1, keepdims=True), 1 / np.sqrt(x.var(1, keepdims=True) + 1e-5)
    return [None if a is None else np.ascontiguousarray(a, dtype) for a in (grad, x, weight, mean, rstd)]


def _expected(grad, x, weight, mean, rstd):
    grad, x, mean, rstd = (a.astype("f8") for a in (grad, x, mean, rstd))
    normal = (x - mean) * rstd
    scaled = grad if weight is None else grad * weight
    of_x = scaled - scaled.mean(1, keepdims=True) - normal * (scaled * normal).mean(1, keepdims=True)
    return of_x * rstd, (grad * normal).sum(0), grad.sum(0)


def _backward(engine, given, needs=(True, True, True)):
    return native_layer_norm_backward._layer_norm_backward(engine, *given, 1, 1e-5, needs)


@pytest.mark.parametrize("cached", [0, 1 << 25])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("shape", [(700, 64), (129, 331), (9, 5003), (1, 1 << 14), (1 << 14, 1)])
@pytest.mark.parametrize("dtype, near", [("f4", 2e-5), ("f8", 1e-12)])
def test_gradients(engine, monkeypatch, cached, weighted, shape, dtype, near):
    monkeypatch.setattr(Device, "cached", cached)
    given = _given(*shape, dtype, weighted)
    for found, want in zip(_backward(engine, given), _expected(*given), strict=True):
        assert found.dtype == dtype
        np.testing.assert_allclose(
            found, want, rtol=0, atol=near * max(1, abs(want).max(), 1e-3 * given[4].max() * abs(given[0]).max())
        )


def test_several_normalised_dimensions(engine):
    grad, x, weight, mean, rstd = _given(60, 35 * 16, "f4")
    given = grad.reshape(20, 3, 35, 16), x.reshape(20, 3, 35, 16), weight.reshape(35, 16), mean, rstd
    found = native_layer_norm_backward._layer_norm_backward(engine, *given, 2, 1e-5, (True, True, True))
    assert [a.shape for a in found] == [(20, 3, 35, 16), (35, 16), (35, 16)]
    want = _backward(engine, [grad, x, weight, mean, rstd])
    assert [a.tobytes() for a in found] == [a.tobytes() for a in want]


def test_gradients_are_the_same_for_any_threads(engine):
    given, before = _given(2000, 300, "f4"), torch.get_num_threads()
    try:
        found = []
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            found.append([a.tobytes() for a in _backward(engine, given)])
        assert found[0] == found[1] == found[2]
    finally:
        torch.set_num_threads(before)


def test_unsupported_operands_are_declined(engine):
    given = _given(300, 100, "f4")
    grad, x, weight, mean, rstd = given
    assert _backward(engine, given, (True, False, True)) is None
    assert _backward(engine, [a.astype("f2") for a in given]) is None
    assert _backward(engine, [grad[:, :1], *given[1:]]) is None
    assert _backward(engine, [np.asfortranarray(grad), *given[1:]]) is None
    assert _backward(engine, [grad, x, weight.astype("f8"), mean, rstd]) is None
    assert _backward(engine, _given(0, 100, "f4")) is None
