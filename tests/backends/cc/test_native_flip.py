"""The compiled reversal along dimensions."""

from __future__ import annotations

import numpy as np
import pytest

from torchlite_backends.cc import cxx_compiler, native_flip
from torchlite_backends.cc.device import Device

pytestmark = pytest.mark.skipif(bool(cxx_compiler.why_not()), reason=cxx_compiler.why_not())


@pytest.mark.parametrize("dtype", ["u1", "i2", "f2", "f4", "i8", "f8", "c8"])
@pytest.mark.parametrize(
    "shape, dims",
    [
        ((40_000,), (0,)), ((30, 41), (1,)), ((30, 41), (0, 1)), ((4, 5, 30), (0, 2)), ((4, 5, 30), (-1, 1)),
        ((3, 4, 5), (0, 1, 2)),
    ],
)  # fmt: skip
def test_flip(dtype, shape, dims):
    x = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    found = native_flip.flip(Device(), x, dims)
    assert found.dtype == x.dtype and np.array_equal(found, np.flip(x, dims))


@pytest.mark.parametrize("dims", [(0,), (), (1, 1), (2,), (1.0,)])
def test_other_dimensions_are_declined(dims):
    assert native_flip.flip(Device(), np.ones((30, 41), "f4"), dims) is None


def test_other_arrays_are_declined():
    for x in (np.ones((9, 5), "f4"), np.ones((30, 0)), np.ones((30, 40)).T, np.ones((30, 40), "c16")):
        assert native_flip.flip(Device(), x, (1,)) is None
