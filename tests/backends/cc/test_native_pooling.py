"""Compiled pooling against NumPy's kernels, over windows of all kinds."""

from __future__ import annotations

import numpy as np
import pytest

from torchlite_backends.array import pooling as plain
from torchlite_backends.cc import cxx_compiler, native_pooling
from torchlite_backends.cc.device import Device

pytestmark = pytest.mark.skipif(bool(cxx_compiler.why_not()), reason=cxx_compiler.why_not() or "there is a compiler")


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(native_pooling, "_MIN_SIZE", 0)


def random_case(rng, dtype):
    count = int(rng.integers(1, 3))
    shape = (int(rng.integers(1, 4)), int(rng.integers(1, 5)), *map(int, rng.integers(4, 60, count)))
    x = rng.standard_normal(shape).astype(dtype)
    kernel, stride = tuple(map(int, rng.integers(1, 6, count))), tuple(map(int, rng.integers(1, 5, count)))
    padding = tuple(int(rng.integers(0, k // 2 + 1)) for k in kernel)
    return x, kernel, stride, padding, tuple(map(int, rng.integers(1, 3, count))), bool(rng.integers(2))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_max_pool(dtype):
    device, rng, compared = Device(), np.random.default_rng(1), 0
    for number in range(300):
        x, *window = random_case(rng, dtype)
        if number % 4 == 0:
            x.flat[:: int(rng.integers(3, 50))] = np.nan
        try:
            want = plain._max_pool(x, *window)
        except RuntimeError:  # the window does not fit
            continue
        np.testing.assert_array_equal(native_pooling.max_pool(device, x, *window), want)
        compared += 1
    assert compared > 200


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_avg_pool(dtype):
    device, rng, compared = Device(), np.random.default_rng(2), 0
    for number in range(300):
        x, kernel, stride, padding, _, ceil_mode = random_case(rng, dtype)
        options = (kernel, stride, padding, ceil_mode, bool(number % 2), [None, 3, -2][number % 3])
        try:
            want = plain._avg_pool(x, *options)
        except RuntimeError:
            continue
        got = native_pooling.avg_pool(device, x, *options)
        np.testing.assert_allclose(got, want, rtol=2e-5 if dtype == "float32" else 1e-12, atol=1e-5)
        compared += 1
    assert compared > 200


def test_images_in_another_order():
    x = np.random.default_rng(3).standard_normal((2, 9, 8, 3)).astype("f4").transpose(0, 3, 1, 2)
    window = (2, 2), (2, 2), (0, 0), (1, 1), False
    np.testing.assert_array_equal(native_pooling.max_pool(Device(), x, *window), plain._max_pool(x, *window))


@pytest.mark.parametrize("x", [np.ones((1, 4, 4), "i4"), np.ones((1, 1, 4, 4, 4), "f4")], ids=["integers", "volumes"])
def test_left_to_numpy(x):
    ones = (1,) * (x.ndim - 2)
    assert native_pooling.max_pool(Device(), x, ones, ones, (0,) * len(ones), ones, False) is None


def test_window_that_does_not_fit():
    with pytest.raises(RuntimeError, match="does not fit"):
        native_pooling.max_pool(Device(), np.ones((1, 3), "f4"), (5,), (1,), (0,), (1,), False)
