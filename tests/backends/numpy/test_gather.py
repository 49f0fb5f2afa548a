"""Rows of NumPy's arrays by index."""

from __future__ import annotations

import numpy as np
import pytest

from torchlite_backends.array.index import _setitem_ as shared
from torchlite_backends.numpy.gather import _setitem_

_rng = np.random.default_rng(6)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "c16", "i8", "?"])
@pytest.mark.parametrize("shape", [(50, 1), (50, 3, 4), (50, 40), (50, 200)])
def test_rows_are_written_as_by_indexing(dtype, shape):
    x = (_rng.standard_normal(shape) * 9).astype(dtype)
    places = _rng.integers(-50, 50, 100)  # many twice: the last one counts
    value = (_rng.standard_normal((100, *shape[1:])) * 9).astype(dtype)
    for given in (value, value[::-1], value[:, :1], value[:1], value.astype("c16"), value[0]):
        if given.dtype != dtype and dtype != "c16":
            continue
        want = x.copy()
        want[places] = given
        found = x.copy()
        _setitem_(found, (places,), given)
        assert found.tobytes() == want.tobytes()
        turned = np.asfortranarray(x)
        _setitem_(turned, (places,), given)
        assert turned.tobytes() == want.tobytes()


def test_rows_of_the_array_itself():
    x = _rng.standard_normal((100, 8))
    want, order = x.copy(), np.arange(99, -1, -1)
    want[order] = want.copy()
    _setitem_(x, (order,), x)
    assert (x == want).all()


@pytest.mark.parametrize("bad", [-51, 50])
def test_a_place_that_is_none_leaves_everything(bad):
    x, places = np.zeros((50, 8)), np.arange(70) % 50
    places[60] = bad
    with pytest.raises(IndexError, match=f"index {bad} is out of bounds for dimension 0 with size 50"):
        _setitem_(x, (places,), np.ones((70, 8)))
    assert not x.any()


def test_errors_are_the_shared_kernels():
    x, places = np.zeros((50, 8)), np.arange(70) % 50
    x.flags.writeable = False
    for kernel in (_setitem_, shared):
        with pytest.raises(RuntimeError, match="may not be written"):
            kernel(x, (places,), np.ones((70, 8)))
    for kernel in (_setitem_, shared):
        with pytest.raises(RuntimeError, match="shape mismatch"):
            kernel(np.zeros((50, 8)), (places,), np.ones((69, 8)))
