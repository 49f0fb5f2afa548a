"""Compiled arithmetic of half precision: NumPy's results, bit for bit."""

import ml_dtypes
import numpy as np
import pytest

from torchlite_backends.cc import cxx_compiler, native_binary, native_half, native_sum
from torchlite_backends.cc.device import Device

pytestmark = pytest.mark.skipif(bool(cxx_compiler.why_not()), reason=cxx_compiler.why_not())
HALVES = [np.dtype("f2"), np.dtype(ml_dtypes.bfloat16)]
UFUNCS = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}
EXTREMES = {"maximum": np.maximum, "minimum": np.minimum}


@pytest.fixture(scope="module")
def engine():
    return Device(0, True)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("half", HALVES, ids=str)
@pytest.mark.parametrize("op", [*UFUNCS, *EXTREMES])
def test_arithmetic_rounds_once(engine, op, half):
    x = np.arange(1 << 16, dtype=np.uint16).view(half)
    y = np.random.default_rng(1).permutation(x)
    kernel = native_binary.kernels[op]
    number = np.array(1.25, half)
    for a, b in ((x, y), (x[3:-2], y[3:-2]), (x[:5], y[:5]), (x.reshape(256, 256), number), (x[:7], number)):
        if op in EXTREMES and b is number:
            assert kernel(engine, a, b) is None
            continue
        found, expected = kernel(engine, a, b), (UFUNCS | EXTREMES)[op](a, b)
        if found is None:
            pytest.skip("the processor has no instructions for half precision")
        nan = np.isnan(expected.astype("f4"))
        assert found.shape == a.shape and (np.isnan(found.astype("f4")) == nan).all()
        assert (found.view(np.uint16)[~nan] == expected.view(np.uint16)[~nan]).all()


@pytest.mark.parametrize("half", HALVES, ids=str)
def test_others_are_left_to_numpy(engine, half):
    x = np.ones(64, half)
    kernel = native_binary.kernels["add"]
    assert all(kernel(engine, *given) is None for given in ((x, x[:1]), (x[::2], x[::2]), (x, 1.5), (x[:0], x[:0])))
    assert kernel(engine, x, x.astype("f4")) is None
    assert native_binary.kernels["div"](engine, np.ones(64, "f4"), np.ones(64, "f4")) is None


@pytest.fixture(params=HALVES, ids=str)
def halves(request):
    rng = np.random.default_rng(5)

    def make(*shape):
        x = (rng.standard_normal(shape) * np.exp(rng.standard_normal(shape) * 3)).astype("f4").astype(request.param)
        x.reshape(-1)[:5] = [np.nan, np.inf, -np.inf, -0.0, 0.0]
        return x

    return make


def _same(found, want):
    return np.array_equal(found.view(np.int16), want.astype(found.dtype).view(np.int16)) or np.array_equal(
        found.astype("f4"), want.astype(found.dtype).astype("f4"), equal_nan=True
    )


@pytest.mark.parametrize("op", UFUNCS)
def test_arithmetic_with_a_number_and_in_place(engine, op, halves):
    ufunc = UFUNCS[op]
    x, y, device = halves(97, 51), halves(97, 51), engine
    with np.errstate(all="ignore"):
        wide, number = x.astype("f4"), np.float32(1.7)
        assert _same(native_half.with_number(device, op, x, 1.7), ufunc(wide, number))
        assert _same(native_half.with_number(device, op, 1.7, x), ufunc(number, wide))
        want = ufunc(wide, y.astype("f4"))
        assert native_half.kernels[f"{op}_"](device, x, y) is x and _same(x, want)
    assert native_half.kernels[f"{op}_"](device, x[1:], x[:-1]) is None  # which overlap


def test_roots_and_limits(engine, halves):
    x, device = halves(97, 51), engine
    wide = x.astype("f4")
    with np.errstate(all="ignore"):
        assert _same(native_half.sqrt(device, x), np.sqrt(wide))
    for low, high in ((-0.3, 0.7), (None, 0.1), (0.1, None), (1, -1)):
        want = np.clip(wide, -np.inf if low is None else low, np.inf if high is None else high)
        assert _same(native_half._clamp_scalars(device, x, low, high), want)
    assert _same(
        native_half.kernels["clamp_min"](device, x, np.asarray(0.1, x.dtype)), np.maximum(wide, x.dtype.type(0.1))
    )
    assert native_half.kernels["clamp_min"](device, x, x) is None


@pytest.mark.parametrize("length", [7, 4096, 100_003])
def test_sums_and_products_of_vectors(engine, halves, length):
    x, y, device = halves(length), halves(length), engine
    x[:5] = y[:5] = 1
    x, y = x.astype("f4").clip(-9, 9).astype(x.dtype), y.astype("f4").clip(-9, 9).astype(x.dtype)
    wide, other = x.astype("f8"), y.astype("f8")
    size = np.abs(wide * other).sum()
    assert abs(native_half.dot(device, x, y) - wide @ other) <= 1e-6 * size
    found = native_sum.sum(device, x)
    if length < 32:
        assert found is None
    else:
        assert found.dtype == x.dtype and _same(found, wide.sum())
    rows = native_sum.sum(device, np.stack([x, y]), 1)
    assert rows is None if length < 32 else _same(rows, np.stack([wide.sum(), other.sum()]))
