"""`equal` of many elements, which ends at the first difference."""

import pytest

import torchlite as torch


@pytest.mark.parametrize("place", [0, 1, 1023, 1024, 5119, 5120, 99_999])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.bool, torch.complex64, torch.bfloat16], ids=str)
def test_one_difference(device, dtype, place):
    x = torch.zeros(100_000, dtype=dtype, device=device)
    y = x.clone()
    assert torch.equal(x, y)
    y[place] = 1
    assert not torch.equal(x, y) and not torch.equal(y.reshape(100, 1000), x.reshape(100, 1000))


def test_values_that_equal_nothing_or_zero(device):
    x = torch.zeros(5000, device=device)
    assert torch.equal(x, -x)
    x[4000] = float("nan")
    assert not torch.equal(x, x)


def test_layouts_and_dtypes(device):
    x = torch.arange(10_000.0, device=device).reshape(100, 100)
    assert torch.equal(x.t(), x.t().contiguous()) and not torch.equal(x, x.t())
    assert torch.equal(x[:0], x[:0]) and not torch.equal(x, x[:99])
    assert torch.equal(
        torch.view_as_complex(x.reshape(-1, 2)).conj(), torch.complex(x.reshape(-1)[::2], -x.reshape(-1)[1::2])
    )
