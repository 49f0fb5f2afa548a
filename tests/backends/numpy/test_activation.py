"""Activations of several pieces on arrays of all sizes: values at the borders, infinities, NaN and signs of zeros."""

import numpy as np
import pytest

import torchlite as torch

F = torch.nn.functional
inf, nan = float("inf"), float("nan")
NUMBERS = [0.0, -0.0, 0.5, -0.5, 2.0, -2.0, inf, -inf, nan, 0.25]
SIZES = [1, 100, 10_000]  # repetitions: small arrays, large ones, and those of an engine


def repeated(values, times, dtype=torch.float32):
    return torch.tensor(values, dtype=dtype).repeat(times)


def check(found, expected, times, dtype=torch.float32):
    expected = repeated(expected, times, dtype)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found.float().numpy(), expected.float().numpy())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("times", SIZES)
def test_pieces(times, dtype):
    x = repeated(NUMBERS, times, dtype)
    check(F.threshold(x, 0.25, -3.0), [-3, -3, 0.5, -3, 2, -3, inf, -3, nan, -3], times, dtype)
    check(F.hardshrink(x, 0.5), [0, 0, 0, 0, 2, -2, inf, -inf, nan, 0], times, dtype)
    check(F.hardshrink(x, -1.0), NUMBERS, times, dtype)
    for slope in (0.25, 1.0, 0.0, -2.0, 4.0):
        expected = [v if v > 0 else v * slope for v in NUMBERS]
        check(F.prelu(x, torch.tensor([slope], dtype=dtype)), expected, times, dtype)
    check(torch.sgn(x), [0, 0, 1, -1, 1, -1, 1, -1, 0, 1], times, dtype)
    check(torch.sign(x), [0, 0, 1, -1, 1, -1, 1, -1, 0, 1], times, dtype)


@pytest.mark.parametrize("times", SIZES)
def test_angle(times):
    pi = float(np.float32(np.pi))
    check(torch.angle(repeated(NUMBERS, times)), [0, 0, 0, pi, 0, pi, 0, pi, nan, 0], times)
    check(torch.angle(repeated([-1.0, 2.0], times)), [pi, 0], times)


@pytest.mark.parametrize("times", SIZES)
def test_integers(times):
    x = repeated([-3, 0, 5], times, torch.int64)
    check(F.threshold(x, 0, 7), [7, 7, 5], times, torch.int64)
    check(torch.sign(x), [-1, 0, 1], times, torch.int64)
    check(torch.sgn(x), [-1, 0, 1], times, torch.int64)


@pytest.mark.parametrize("times", SIZES)
def test_prelu_has_a_slope_for_each_channel(times):
    x = torch.tensor([[1.0, -1.0], [inf, -inf]]).repeat(times, 1)
    found = F.prelu(x, torch.tensor([0.5, 3.0]))
    np.testing.assert_array_equal(found[:2].numpy(), [[1, -3], [inf, -inf]])
    found = F.prelu(x, torch.tensor([0.5, 0.0]))
    np.testing.assert_array_equal(found[:2].numpy(), [[1, 0], [inf, nan]])


@pytest.mark.parametrize("times", SIZES)
@pytest.mark.parametrize("name", ["elu", "selu", "celu"])
def test_elu_of_numbers_without_a_negative_one(name, times):
    """A block without negative elements is a product."""
    function = getattr(F, name)
    positive = [0.0, 0.5, 2.0, inf]
    alone = function(repeated(positive, times))
    among = function(repeated([*positive, -1.0], times))
    np.testing.assert_array_equal(alone.numpy(), among.reshape(-1, 5)[:, :4].reshape(-1).numpy())
    assert function(repeated([*positive, nan], times))[4].isnan()
    assert function(torch.empty(0)).shape == (0,)


@pytest.mark.parametrize("size", [1, 63, 64, 65, 1000, 99_999])
def test_product_of_all(size):
    x = torch.full((size,), 1.0)
    x[:: max(size // 7, 1)] = -2.0
    count = int((x == -2).sum())
    assert torch.prod(x).item() == (-2.0) ** count
    x[size // 2] = nan
    assert torch.prod(x).isnan() and torch.prod(x.reshape(1, -1).t()).isnan()
