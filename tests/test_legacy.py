"""Constants and old constructors that programs still use."""

import math

import numpy as np
import pytest

import torchlite as torch


def test_constants():
    assert (torch.pi, torch.e, torch.inf, torch.newaxis) == (math.pi, math.e, math.inf, None) and math.isnan(torch.nan)


def test_typed_constructors():
    x = torch.LongTensor([1, 2])
    assert (
        x.dtype is torch.int64
        and x.tolist() == [1, 2]
        and isinstance(x, torch.LongTensor)
        and not isinstance(x, torch.FloatTensor)
    )
    assert torch.FloatTensor(2, 3).shape == (2, 3) and torch.DoubleTensor([1.5]).dtype is torch.float64
    assert torch.is_signed(x) and torch.get_device(x) == -1


def test_new():
    x = torch.ones(2, dtype=torch.int64)
    for made, shape in (
        (x.new(), (0,)), (x.new(2, 3), (2, 3)), (x.new([1, 2]), (2,)), (x.new((2, 3)), (2,)), (x.new(size=(2,)), (2,)),
        (x.new(torch.Size([2, 3])), (2, 3)), (x.new(np.array([1, 2])), (2,)), (x.new([1.5]), (1,)),
    ):  # fmt: skip
        assert made.dtype is torch.int64 and made.shape == shape
    assert torch.ones(1, device="meta").new(2).is_meta and not torch.nn.Parameter(torch.ones(1)).new(3).requires_grad
    with pytest.raises(RuntimeError, match="legacy constructor expects device type: cpu but device type: meta was"):
        x.new(2, device="meta")
    for wrong in (1.5, "a"):
        with pytest.raises(TypeError, match=r"new\(\): "):
            x.new(wrong)
