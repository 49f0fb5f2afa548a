"""Kernels of searches that NumPy and CuPy share."""

from __future__ import annotations

import numpy as np
import pytest

import torchlite as torch


@pytest.mark.parametrize("kind", [torch.uint8, torch.int32, torch.int64, torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("shape", [(), (0,), (1,), (7,), (3, 4)])
def test_one_value_is_looked_for_as_several_are(device, kind, shape):
    """A comparison answers for one value, of any number of dimensions; a value given twice takes the general way."""
    elements = torch.arange(int(np.prod(shape)), device=device).reshape(shape).to(kind)
    for invert in (False, True):
        want = torch.isin(elements, torch.tensor([3, 3], device=device).to(kind), invert=invert)
        for form in ((), (1,), (1, 1)):
            value = torch.full(form, 3, device=device).to(kind)
            got = torch.isin(elements, value, invert=invert)
            assert got.dtype is torch.bool and got.shape == elements.shape and got.stride() == want.stride()
            assert torch.equal(got, want)


def test_nan_is_no_element(device):
    nan = torch.tensor([float("nan")], device=device)
    assert torch.isin(nan, nan).tolist() == [False]
    assert torch.isin(nan, nan, invert=True).tolist() == [True]


def test_the_result_is_row_major(device):
    turned = torch.arange(6, device=device).reshape(2, 3).t()
    found = torch.isin(turned, torch.tensor([2], device=device))
    assert found.stride() == (2, 1)
    assert found.tolist() == [[False, False], [False, False], [True, False]]


def test_dtypes_differ(device):
    """A float32 number is no double that rounds to it."""
    element = torch.tensor([0.1], device=device)
    assert torch.isin(element, torch.tensor([0.1], dtype=torch.float64, device=device)).tolist() == [False]
