"""Constants and old constructors that programs still use."""

import math

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
