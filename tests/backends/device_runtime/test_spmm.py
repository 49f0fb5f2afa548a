"""The kernels of sparse products against the composites of the same records, with a work-item a row and laid out as on
GPUs.
"""

import numpy as np
import pytest

import torchlite as torch
from torchlite._dispatch import table_of
from torchlite_backends.device_runtime.core.host_transfer import from_numpy, to_numpy

from . import test_row_kernels as test_rows

check = test_rows.check


@pytest.fixture(params=[True, False], ids=["item a row", "group a row"])
def laid(request, opencl):
    return test_rows.laid_out(request.param)


def places(check, rows, columns, count, kind):
    """(starts, columns) of `count` elements, some rows of which have none."""
    where = np.sort(check.rng.integers(0, rows, count)) // 2 * 2 % max(rows, 1)
    starts = np.searchsorted(np.sort(where), np.arange(rows + 1))
    return [from_numpy(a.astype(kind), check.device) for a in (starts, check.rng.integers(0, columns, count))]


def test_rows_times(check):
    kind = "int32" if check.dtype == "float32" else "int64"
    for rows, columns, count, width in (
        (5, 7, 20, 1),
        (5, 7, 20, 3),
        (1, 3, 200, 9),
        (3, 40, 900, 1),
        (300, 50, 900, 70),
    ):
        starts, at = places(check, rows, columns, count, kind)
        values, dense = check.numbers((count,)), check.numbers((columns, width))
        check.agree("_csr_mm", at, starts, values, dense, slack=8)
        check.agree("_csr_mm_extremes", at, starts, values, dense, bool(check.rng.integers(2)))
    for rows, columns, count, width in ((0, 3, 0, 2), (3, 3, 0, 2), (3, 3, 4, 0)):
        starts, at = places(check, rows, columns, count, kind)
        out = check.table._csr_mm(at, starts, check.numbers((count,)), check.numbers((columns, width)))
        assert out.shape == (rows, width) and not to_numpy(out).any()
        best = check.table._csr_mm_extremes(at, starts, check.numbers((count,)), check.numbers((columns, width)), True)
        assert best.shape == (rows, width) and (to_numpy(best) == count).all()


def test_products_at(check):
    kind = "int32" if check.dtype == "float32" else "int64"
    for left, right, count, width in ((5, 7, 20, 1), (3, 4, 9, 33), (2, 90, 300, 100), (4, 4, 0, 3)):
        rows, columns = (check.integers(high, count, kind) for high in (left, right))
        check.agree("_sampled_mm", rows, columns, check.numbers((left, width)), check.numbers((right, width)), slack=8)


def test_indices_that_do_not_fit_read_nothing(laid, opencl):
    table = table_of(torch.device(opencl))
    ones = from_numpy(np.ones((3, 2), np.float32), laid)
    far = from_numpy(np.array([0, 1 << 40, -1, 2]), laid)
    starts = from_numpy(np.array([-5, 2, 1 << 40]), laid)
    out = table._csr_mm(far, starts, from_numpy(np.ones(4, np.float32), laid), ones)
    assert to_numpy(out).tolist() == [[1.0, 1.0], [1.0, 1.0]]
    best = table._csr_mm_extremes(far, starts, from_numpy(np.ones(4, np.float32), laid), ones, True)
    assert to_numpy(best).tolist() == [[0, 0], [3, 3]]
    assert to_numpy(table._sampled_mm(far, far, ones, ones)).tolist() == [2.0, 0.0, 0.0, 2.0]


@pytest.mark.parametrize("kind", ["int8", "uint8", "int16", "int32", "int64", "complex64"])
def test_other_types(laid, opencl, kind):
    table = table_of(torch.device(opencl))
    cpu = table_of(torch.device("cpu"))
    starts, columns = np.array([0, 2, 2, 5]), np.array([1, 0, 2, 1, 1])
    values, dense = (np.array(n).astype(kind) for n in ([3, 5, 1, 2, 7], np.arange(15).reshape(3, 5)))
    if kind == "complex64":
        values, dense = values * 1j + 2, dense - 3j
    for name, given in (
        ("_csr_mm", (columns, starts, values, dense)),
        ("_sampled_mm", (columns % 3, columns, dense, dense)),
    ):
        mine = getattr(table, name)(*(from_numpy(a, laid) for a in given))
        np.testing.assert_array_equal(to_numpy(mine), getattr(cpu, name)(*given))
