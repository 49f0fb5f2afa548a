"""Kernels of small arrays: joining many of them, comparing, and the trace."""

from __future__ import annotations

import numpy as np
import pytest

from torchlite._dispatch import table_of
from torchlite._types.devices import device

KERNELS = table_of(device("cpu"))


@pytest.mark.parametrize("dtype", ["?", "u1", "f2", "f4", "i8", "c16"])
def test_many_vectors_are_joined(dtype):
    parts = [np.arange(k, k + 5 + k % 3).astype(dtype) for k in range(9)]
    found = KERNELS.cat(parts)
    assert found.dtype == dtype and found.flags.writeable and found.base is None
    assert np.array_equal(found, np.concatenate(parts))
    strided = [np.arange(10).astype(dtype)[::2]] * 9
    assert np.array_equal(KERNELS.cat(strided), np.concatenate(strided))


def test_vectors_beside_other_arrays_are_refused():
    for other in (np.ones((2, 2)), np.ones(())):
        with pytest.raises(ValueError):
            KERNELS.cat([np.ones(4)] * 5 + [other])


@pytest.mark.parametrize("shape", [(), (5,), (2, 3), (0,), (300,)])
def test_equal_arrays_are_stacked(shape):
    parts = [np.full(shape, k, "f4") for k in range(6)]
    for dim in (0, -1):
        found = KERNELS.stack(parts, dim)
        assert found.dtype == "f4" and np.array_equal(found, np.stack(parts, dim))


def test_a_stack_of_unequal_arrays_is_refused():
    with pytest.raises(RuntimeError, match=r"equal size, but got \[3\] at entry 0 and \[4\] at entry 2"):
        KERNELS.stack([np.ones(3), np.ones(3), np.ones(4)])
    with pytest.raises(RuntimeError, match="equal size"):
        KERNELS.stack([np.ones(3), np.ones(())])


@pytest.mark.parametrize("size", [3, 1000, 100_000])
@pytest.mark.parametrize("dtype", ["?", "f2", "f4", "i8", "c8"])
def test_arrays_are_equal_unless_one_element_differs(size, dtype):
    x = (np.arange(size) % 2).astype(dtype)
    assert KERNELS._equal(x, x.copy())
    for place in (0, size // 3, size - 1):
        other = x.copy()
        other[place] = not other[place]
        assert not KERNELS._equal(x, other)
        assert not KERNELS._equal(x[::-1], other[::-1])
    if dtype[0] == "f":
        x[size // 3] = np.nan
        assert not KERNELS._equal(x, x)
        assert KERNELS._equal(np.zeros(size, dtype), -np.zeros(size, dtype))


def test_the_trace_is_added_up_in_double_precision():
    x = np.full((1000, 1000), 0.1, "f4")
    assert KERNELS.trace(x) == np.float32(1000 * np.float64(np.float32(0.1)))
    assert not np.signbit(KERNELS.trace(np.full((1, 1), -0.0, "f4")))


@pytest.mark.parametrize("dtype", ["c8", "c16"])
@pytest.mark.parametrize("shape", [(257,), (70_001,), (316, 316), (300, 1), (1, 1000), (3, 40_000), (64, 5, 3)])
def test_complex_sums_have_the_precision_of_real_ones(dtype, shape):
    rng = np.random.default_rng(0)
    x = (rng.standard_normal(shape) + 3 + 1j * (rng.standard_normal(shape) - 2)).astype(dtype)
    limit = 16 * np.finfo(dtype).eps
    for dim in [None, 0, -1, tuple(range(len(shape)))]:
        for given in (x, x.T, x[::-1]):
            for keepdim in (False, True):
                found, want = KERNELS.sum(given, dim, keepdim), given.astype(np.clongdouble).sum(dim, keepdims=keepdim)
                assert found.dtype == dtype and found.shape == want.shape
                np.testing.assert_allclose(found, want, rtol=limit)
                found, want = (
                    KERNELS.mean(given, dim, keepdim),
                    given.astype(np.clongdouble).mean(dim, keepdims=keepdim),
                )
                assert found.dtype == dtype and found.shape == want.shape
                np.testing.assert_allclose(found, want, rtol=limit)
    assert KERNELS.sum(x, 0).base is None


def test_a_complex_sum_keeps_parts_that_are_not_finite_apart():
    x = np.ones(1000, "c8")
    x.real[3] = np.inf
    found = KERNELS.sum(x, None)
    assert found.real == np.inf and found.imag == 0
    x.imag[900] = np.nan
    found = KERNELS.sum(x, None)
    assert found.real == np.inf and np.isnan(found.imag)
