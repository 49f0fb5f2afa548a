"""Arithmetic, signs and order of large arrays of half precision: NumPy's own results, bit for bit."""

import ml_dtypes
import numpy as np
import pytest

import torchlite as torch
from torchlite_backends.numpy import half_arithmetic

HALVES = [np.dtype("f2"), np.dtype(ml_dtypes.bfloat16)]
BINARY = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "maximum": np.maximum,
          "minimum": np.minimum}  # fmt: skip


def refuse(*_):
    raise AssertionError("the plain kernel ran")


def operands(half, finite=False):
    """All halves, and as many others."""
    bits = np.arange(1 << 16, dtype=np.uint16)
    x = bits.view(half)
    x = x[np.isfinite(x.astype("f4"))] if finite else x
    return x, np.random.default_rng(1).permutation(x)


def assert_same_bits(found, expected):
    nan = np.isnan(expected.astype("f4"))
    assert (np.isnan(found.astype("f4")) == nan).all()
    assert (found.view(np.uint16)[~nan] == expected.view(np.uint16)[~nan]).all()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("half", HALVES, ids=str)
@pytest.mark.parametrize("op", ["add", "sub", "mul", "div"])
def test_arithmetic_rounds_once(op, half):
    ufunc = BINARY[op]
    kernel = half_arithmetic.make_half_arithmetic(op, ufunc, refuse)
    x, y = operands(half)
    assert_same_bits(kernel(x, y), ufunc(x, y))
    assert_same_bits(kernel(x, x), ufunc(x, x))
    for number in (np.array(1.5, half), np.array(-3e-5).astype(half)):
        assert_same_bits(kernel(x, number), ufunc(x, number))
        assert_same_bits(kernel(number, x), ufunc(number, x))


@pytest.mark.parametrize("half", HALVES, ids=str)
@pytest.mark.parametrize("op", ["maximum", "minimum"])
def test_extremes(op, half):
    ufunc = BINARY[op]
    kernel = half_arithmetic.make_half_extreme(ufunc, refuse)
    x, y = operands(half, finite=True)
    found = kernel(x, y)
    np.testing.assert_array_equal(found.astype("f4"), ufunc(x.astype("f4"), y.astype("f4")))
    assert_same_bits(kernel(x, x), x)
    with_nan = x.copy()
    with_nan[7] = np.nan
    assert half_arithmetic.make_half_extreme(ufunc, ufunc)(with_nan, y).astype("f4")[7] != 0


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("half", HALVES, ids=str)
def test_functions_of_one_operand(half):
    x, _ = operands(half)
    assert_same_bits(half_arithmetic.make_half_neg(refuse)(x), np.negative(x))
    assert_same_bits(half_arithmetic.make_half_function(np.sqrt, refuse)(x), np.sqrt(x))
    finite, _ = operands(half, finite=True)
    relu = half_arithmetic.make_half_relu(refuse)(finite)
    np.testing.assert_array_equal(relu.astype("f4"), np.maximum(finite.astype("f4"), 0))


@pytest.mark.parametrize("half", HALVES, ids=str)
def test_others_are_left_to_the_plain_kernel(half):
    kernel = half_arithmetic.make_half_arithmetic("add", np.add, lambda *_: None)
    x, y = operands(half)
    small, strided = x[:100], x[::2]
    others = [(small, small), (strided, strided), (x, y[:1]), (x, y.astype("f4")), (x, 1.5), (1.5, 2.5), (x, y, x)]
    assert all(kernel(*given) is None for given in others)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_tensors(dtype):
    x = torch.linspace(-3, 3, 40_000).to(dtype)
    y = x.flip(0)
    for found, wide in ((x + y, x.float() + y.float()), (x * y, x.float() * y.float()), (-x, -x.float()),
                        (x.relu(), x.float().relu()), (torch.maximum(x, y), torch.maximum(x.float(), y.float())),
                        (x + 1.5, x.float() + 1.5), (x.abs().sqrt(), x.abs().float().sqrt())):  # fmt: skip
        assert found.dtype == dtype and torch.equal(found, wide.to(dtype))
    target = x.clone()
    target += y
    assert torch.equal(target, x + y)
