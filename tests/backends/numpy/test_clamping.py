"""Clamps by NumPy's `clip` equal those by `maximum` and `minimum`, with the signs of zeros."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import torchlite as torch
from torchlite_backends.array import binary as shared
from torchlite_backends.numpy import clamping

BOUNDS = [None, 0.0, -0.0, 0, 1, -1, 6.5, math.nan, math.inf, -math.inf]
VALUES = [-0.0, 0.0, math.nan, -1, 7, 6.5, math.inf, -math.inf, 3.5]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32"])
def test_clamp(dtype):
    x = np.array([v for v in VALUES if dtype != "int32" or math.isfinite(v)], dtype)
    for low, high in itertools.product(BOUNDS, BOUNDS):
        if low is high is None or dtype == "int32" and {type(low), type(high)} & {float}:
            continue
        for x_or_number in (x, x[:1].reshape(())):
            got, want = clamping.clamp(x_or_number, low, high), shared.clamp(x_or_number, low, high)
            np.testing.assert_array_equal(got, want)
            np.testing.assert_array_equal(np.signbit(got), np.signbit(want))
            assert got.dtype == want.dtype


def test_one_bound():
    x = np.array(VALUES, "f4")
    for bound in BOUNDS[1:]:
        np.testing.assert_array_equal(clamping.clamp_min(x, bound), shared.clamp_min(x, bound))
        np.testing.assert_array_equal(clamping.clamp_max(x, bound), shared.clamp_max(x, bound))


def test_no_bound():
    with pytest.raises(RuntimeError, match="At least one"):
        clamping.clamp(np.ones(2, "f4"))


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int32, torch.uint8]
)
@pytest.mark.parametrize("size", [0, 9, 70_000])
def test_in_place(dtype, size):
    torch.manual_seed(0)
    x = torch.randint(0, 9, (size,)).to(dtype)
    if dtype.is_floating_point and size:
        x[1::3], x[2::7] = math.nan, -math.inf
    bounds = [(2, 5), (5, 2), (2, None), (None, 5)]
    if dtype.is_floating_point:
        bounds += [(2.5, 5), (-0.0, 0.0), (None, math.inf), (1e300 if dtype is torch.float64 else 3e4, None)]
    for low, high in bounds:
        expected = x.clamp(low, high)
        strided = torch.stack([x, x], 1)
        for target in (x.clone(), strided[:, 0], x.clone().flip(0).flip(0)):
            assert target.clamp_(low, high) is target
            torch.testing.assert_close(target, expected, rtol=0, atol=0, equal_nan=True)
        assert torch.equal(strided[:, 1].nan_to_num(), x.nan_to_num())
        torch.testing.assert_close(x.clone().clamp_(min=low, max=high), expected, rtol=0, atol=0, equal_nan=True)
    torch.testing.assert_close(x.clone().clamp_min_(3), x.clamp_min(3), rtol=0, atol=0, equal_nan=True)
    torch.testing.assert_close(x.clone().clamp_max_(3), x.clamp_max(3), rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x: x.clamp_(), RuntimeError, "At least one of 'min' or 'max' must not be None"),
        (lambda x: x.long().clamp_(0.5), RuntimeError, "result type Float can't be cast"),
        (lambda x: x.bool().clamp_(0, 1), RuntimeError, "result type Long can't be cast"),
        (lambda x: x.clamp_(0, min=1), TypeError, "invalid combination of arguments"),
        (lambda x: x.clamp_(0, low=1), TypeError, "invalid combination of arguments"),
        (lambda x: x.expand(3, 2).clamp_(0), RuntimeError, "more than one element"),
        (lambda x: x.requires_grad_().clamp_(0), RuntimeError, "a leaf Variable that requires grad"),
    ],
)
def test_refused_in_place(call, error, words):
    with pytest.raises(error, match=words):
        call(torch.ones(2))


def test_in_place_with_history():
    x = torch.tensor([-2.0, 0.5, 3.0], requires_grad=True)
    y = x * 2
    version = y._version
    y.clamp_(-1, 4)
    assert y._version == version + 1 and y.tolist() == [-1.0, 1.0, 4.0]
    y.sum().backward()
    assert x.grad.tolist() == [0.0, 2.0, 0.0]
    z = torch.ones(2)
    version = z._version
    assert z.clamp_(0, 0.5)._version == version + 1
