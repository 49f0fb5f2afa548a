"""Sparse matrices that are nearly full are multiplied as dense ones."""

import numpy as np
import pytest

from torchlite_backends.numpy import spmm


def matrix(count, dtype="f4", width=20):
    rng = np.random.default_rng(0)
    rows = np.sort(rng.integers(0, 40, count))
    starts, columns = np.searchsorted(rows, np.arange(41)), rng.integers(0, 30, count)
    values, dense = rng.standard_normal(count).astype(dtype), rng.standard_normal((30, width)).astype(dtype)
    return columns, starts, values, dense


@pytest.mark.parametrize(("dtype", "near"), [("f4", 1e-4), ("f8", 1e-12)])
def test_values(dtype, near):
    columns, starts, values, dense = matrix(5000, dtype)
    assert spmm.fills_matrix(columns, starts, values, dense)
    expected = np.add.reduceat(values[:, None].astype("f8") * dense[columns], starts[:-1], 0)
    found = spmm._csr_mm(columns, starts, values, dense)
    assert found.dtype == dense.dtype
    np.testing.assert_allclose(found, expected, near, near)


def test_infinities_stay_in_their_rows():
    columns, starts, values, dense = matrix(5000)
    dense[3, 5] = np.inf
    columns[columns == 3] = 4
    assert not spmm.fills_matrix(columns, starts, values, dense)
    assert np.isfinite(spmm._csr_mm(columns, starts, values, dense)).all()
    dense[3, 5], values[0] = 1, np.nan
    found = spmm._csr_mm(columns, starts, values, dense)
    assert np.isnan(found[0]).all() and np.isfinite(found[1:]).all()


def test_few_elements_and_narrow_matrices_are_not_filled():
    assert not spmm.fills_matrix(*matrix(50))
    assert not spmm.fills_matrix(*matrix(5000, width=3))
    assert not spmm.fills_matrix(*matrix(5000, "c8"))


def test_a_matrix_without_rows():
    columns, values = np.empty(0, np.int64), np.empty(0, "f4")
    for height in 0, 3:
        assert spmm._csr_mm(columns, np.zeros(1, np.int64), values, np.ones((height, 2), "f4")).shape == (0, 2)
