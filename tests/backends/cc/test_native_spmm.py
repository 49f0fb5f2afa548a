"""The compiled kernels of sparse matrices over ndarrays: what they compute, decline and refuse."""

from __future__ import annotations

import numpy as np
import pytest

from torchlite_backends.cc import cxx_compiler, native_spmm
from torchlite_backends.cc.device import Device
from torchlite_backends.numpy import spmm

pytestmark = pytest.mark.skipif(bool(cxx_compiler.why_not()), reason=cxx_compiler.why_not())


@pytest.fixture(scope="module")
def engine():
    return Device()


def _matrix(rng, height, columns, count, dtype):
    """The row, column and value of elements row by row, and where rows begin."""
    rows = np.sort(rng.integers(0, height, count))
    starts = np.searchsorted(rows, np.arange(height + 1))
    return rows, rng.integers(0, columns, count), starts, rng.standard_normal(count).astype(dtype)


@pytest.mark.parametrize(("dtype", "near"), [("f4", 1e-5), ("f8", 1e-13)])
@pytest.mark.parametrize("width", [1, 8, 17, 64, 151])
def test_products(engine, dtype, near, width):
    rng = np.random.default_rng(5)
    for height, columns, count in ((1, 1, 1), (9, 4, 0), (300, 7, 500), (5, 900, 3000)):
        rows, at, starts, values = _matrix(rng, height, columns, count, dtype)
        left, right = (rng.standard_normal((n, width)).astype(dtype) for n in (height, columns))
        for dense in (right, right.T.copy().T):
            out = native_spmm._csr_mm(engine, at, starts, values, dense)
            np.testing.assert_allclose(out, spmm._csr_mm(at, starts, values, right), near, 20 * near)
            out = native_spmm._sampled_mm(engine, rows, at, left, dense)
            np.testing.assert_allclose(out, spmm._sampled_mm(rows, at, left, right), 10 * near, 10 * near)


def test_of_nan_and_infinity(engine):
    dense = np.array([[np.nan, np.inf], [1, -np.inf], [0, 2]], "f4")
    columns, starts, values = np.array([0, 1, 2]), np.array([0, 0, 2, 3]), np.array([0, 1, np.inf], "f4")
    out = native_spmm._csr_mm(engine, columns, starts, values, dense)
    np.testing.assert_array_equal(out, [[0, 0], [np.nan, np.nan], [np.nan, np.inf]])


def test_order(engine):
    rng = np.random.default_rng(6)
    for count, size in ((0, 0), (0, 3), (1, 1), (2000, 5), (50, 1000)):
        rows = rng.integers(0, size, count) if size else np.zeros(0, int)
        for mine, numpys in zip(
            native_spmm._stable_argsort_rows(engine, rows, size), spmm._stable_argsort_rows(rows, size), strict=True
        ):
            assert mine.dtype == numpys.dtype and (mine == numpys).all()


@pytest.mark.parametrize("bad", [-1, 4, 1 << 40])
def test_indices_that_do_not_fit_are_refused(engine, bad):
    dense, values = np.ones((4, 3), "f4"), np.ones(2, "f4")
    good, wrong, starts = np.array([1, 3]), np.array([1, bad]), np.array([0, 1, 2])
    assert native_spmm._csr_mm(engine, wrong, starts, values, dense) is None
    assert native_spmm._csr_mm(engine, good, np.array([0, 1, bad]), values, dense) is None
    assert native_spmm._csr_mm(engine, good, np.array([bad, 1, 2]), values, dense) is None
    assert native_spmm._sampled_mm(engine, wrong, good, dense, dense) is None
    assert native_spmm._sampled_mm(engine, good, wrong, dense, dense) is None
    assert native_spmm._stable_argsort_rows(engine, wrong, 4) is None


def test_unsupported_operands_are_declined(engine):
    dense, values, at, starts = np.ones((4, 3), "f4"), np.ones(2, "f4"), np.array([1, 3]), np.array([0, 1, 2])
    for given in (
        (at.astype("i4"), starts, values, dense),
        (at, starts, values.astype("f8"), dense),
        (at, starts, values[:1], dense),
        (at, starts, values.astype("c8"), dense.astype("c8")),
    ):
        assert native_spmm._csr_mm(engine, *given) is None
    assert native_spmm._sampled_mm(engine, at, at, dense.astype("f2"), dense) is None
    assert native_spmm._sampled_mm(engine, at, at[:1], dense, dense) is None
    assert native_spmm._stable_argsort_rows(engine, at.astype("i4"), 4) is None
