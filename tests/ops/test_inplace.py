"""`equal` of many elements, of which it compares the first ones alone first."""

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


@pytest.mark.parametrize("place", [None, 0, 1500, 70_000, -1])
def test_equality_of_long_tensors(device, place):
    x = torch.arange(100_000, device=device) % 1000
    y = x.clone()
    if place is not None:
        y[place] += 1
    assert torch.equal(x, y) is (place is None) and torch.equal(x[::2], x[::2].clone())
    assert torch.equal(x.reshape(100, -1).t(), y.reshape(100, -1).t()) is (place is None)
    nan = torch.full((100_000,), torch.nan, device=device)
    assert not torch.equal(nan, nan)


def test_compiled_programs_read_what_equal_compares():
    @torch.compile
    def run(x, y):
        return x + 1 if torch.equal(x, y) else x - 1

    x = torch.arange(50_000)
    first, last = x.clone(), x.clone()
    first[0], last[-1] = 9, 9
    for y in (x.clone(), first, last, x.clone(), last):
        assert torch.equal(run(x, y), x + 1 if y[0] == 0 and y[-1] == x[-1] else x - 1)
