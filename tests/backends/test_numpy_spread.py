"""What the NumPy backend computes in parts on several threads is, bit for bit, what NumPy computes in one."""

import numpy as np
import pytest

import torchlite as torch
import torchlite_numpy
from torchlite._settings import threads
from torchlite_numpy import blocks, large

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
SMALL = torchlite_numpy.backend.kernels(0)
LARGE = torchlite_numpy.backend.large_kernels(0)
UNARY = """abs acos acosh asin asinh atan atanh ceil cos cosh exp exp2 expm1 floor frac isfinite isinf isnan isneginf
    isposinf log log10 log1p log2 logical_not neg reciprocal round rsqrt sgn sign signbit sin sinh sqrt square tan tanh
    trunc nan_to_num""".split()
BINARY = """add sub mul div maximum minimum eq ne lt le gt ge logical_and logical_or logical_xor atan2 copysign fmod
    remainder floor_divide fmax fmin hypot pow xlogy""".split()
LAYOUTS = {
    "flat": lambda x: x,
    "permuted": lambda x: x.transpose(2, 0, 1),
    "with gaps": lambda x: x[:, ::2, 1:],
    "backwards": lambda x: x[::-1, :, ::-1],
    "few long rows": lambda x: x.reshape(3, -1)[:, 5:],
}


@pytest.fixture(autouse=True, params=[2, 3])
def some_threads(request, monkeypatch):
    monkeypatch.setattr(threads, "_count", request.param)


def numbers(rng, shape=(48, 60, 101), dtype="f4"):
    if np.dtype(dtype).kind == "b":
        return rng.random(shape) < 0.5
    x = (rng.standard_normal(shape) * 10).astype(dtype)
    if x.dtype.kind == "f":
        places = rng.integers(0, x.size, x.size // 10)
        special = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40]
        x.reshape(-1)[places] = np.array(special, dtype)[rng.integers(0, len(special), places.size)]
    return x


def agree(got, expected):
    assert got.dtype == expected.dtype and got.shape == expected.shape and got.strides == expected.strides
    np.testing.assert_array_equal(got, expected)
    if got.dtype.kind == "f":
        signs = np.signbit(got) != np.signbit(expected)
        assert not (signs & ~np.isnan(expected)).any()


def spread_parts(monkeypatch):
    """Counts how often work was handed out in parts."""
    counted = []
    real = large.share_evenly
    monkeypatch.setattr(large, "share_evenly", lambda *args: (counted.append(args[1:]), real(*args)))
    return counted


@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_operand(rng, name, monkeypatch):
    counted = spread_parts(monkeypatch)
    x = numbers(rng)
    agree(LARGE[name](x), SMALL[name](x))
    agree(LARGE[name](x.transpose(1, 2, 0)), SMALL[name](x.transpose(1, 2, 0)))
    assert counted


@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two_operands(rng, name, monkeypatch):
    counted = spread_parts(monkeypatch)
    x, y = numbers(rng), numbers(rng)
    agree(LARGE[name](x, y), SMALL[name](x, y))
    agree(LARGE[name](x, 2.0), SMALL[name](x, 2.0))
    assert counted


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("other", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1)])
def test_layouts(rng, layout, other, order):
    x, y = layout(numbers(rng)), other(numbers(rng, dtype="f8"))
    if x.ndim == y.ndim:
        shape = tuple(map(min, x.shape, y.shape))
        x, y = (a[tuple(map(slice, shape))] for a in (x, y))
        if x.ndim == 3:
            x = x.transpose(order).transpose(np.argsort(order))
        agree(LARGE["add"](x, y), np.add(x, y))
        agree(LARGE["lt"](x, y), np.less(x, y))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((300, 500), (500,)),
        ((300, 500), (300, 1)),
        ((300, 500), (1, 1)),
        ((300, 500), ()),
        ((500,), (300, 500)),
        ((300, 1), (1, 500)),
        ((2, 3, 30000), (3, 1)),
        ((1, 200000), (200000,)),
        ((200, 1, 7, 1, 100), (5, 1, 3, 100)),
    ],
)
def test_operands_that_broadcast(rng, first, second):
    x, y = numbers(rng, first), np.asarray(numbers(rng, (*second, 1))[..., 0])
    agree(LARGE["mul"](x, y), np.multiply(x, y))
    agree(LARGE["mul"](y, x), np.multiply(y, x))


@pytest.mark.parametrize("dtype", ["?", "u1", "i2", "i4", "i8", "f2", "f4", "f8", "c8", "c16"])
def test_dtypes_and_numbers(rng, dtype):
    x = numbers(rng, (90, 3000), dtype)
    agree(LARGE["add"](x, x), np.add(x, x))
    agree(LARGE["eq"](x, x), np.equal(x, x))
    if dtype != "?":
        agree(LARGE["mul"](x, 3), np.multiply(x, 3))
        agree(LARGE["sub"](7, x), np.subtract(7, x))
    for target in (torch.float32, torch.float64, torch.int32, torch.bool):
        if target is torch.bool or x.dtype.kind != "c":
            agree(LARGE["to"](x, target), SMALL["to"](x, target))


def test_in_place_and_what_overlaps(rng):
    x, y = numbers(rng, (70000, 3)), numbers(rng, (70000, 3))
    for source in (
        lambda target: y,
        lambda target: target,
        lambda target: target[::-1],
        lambda target: target[:, ::-1],
        lambda target: y[:1],
        lambda target: 2.0,
    ):
        got, expected = x.copy(), x.copy()
        LARGE["add_"](got, source(got))
        np.add(expected, source(expected), out=expected)
        agree(got, expected)
    memory = numbers(rng, (200001,))
    got, expected = memory.copy(), memory.copy()
    LARGE["mul_"](got[1:], got[:-1])
    np.multiply(expected[1:], expected[:-1].copy(), out=expected[1:])
    agree(got, expected)
    got = memory.copy()
    LARGE["exp_"](got[1:])
    agree(got[1:], np.exp(memory[1:]))


def test_errors_are_those_of_the_ufunc(rng):
    with pytest.raises(ValueError, match="broadcast"):
        LARGE["add"](numbers(rng, (300, 500)), numbers(rng, (300, 499)))
    for shape in ((150000,), (2, 300000), (300000, 1)):
        target = np.zeros(300000, "f4")
        with pytest.raises(ValueError, match="broadcast"):
            LARGE["add_"](target, np.ones(shape, "f4"))
        with pytest.raises(ValueError, match="broadcast"):
            LARGE["_copy_"](target, np.ones(shape, "f4"))
        assert not target.any()
    with pytest.raises(OverflowError):
        LARGE["add"](np.zeros(300000, np.uint8), 300)
    with pytest.raises(TypeError):
        LARGE["sub"](np.zeros(300000, bool), np.zeros(300000, bool))


def test_a_thread_of_the_pool_starts_no_others(rng, monkeypatch):
    monkeypatch.setattr(blocks._local, "is_worker", True, raising=False)
    counted = spread_parts(monkeypatch)
    x = numbers(rng)
    agree(LARGE["add"](x, x), x + x)
    assert not counted


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_copies_and_casts(rng, layout):
    x = layout(numbers(rng, (96, 60, 101)))
    agree(LARGE["clone"](x), SMALL["clone"](x))
    agree(LARGE["clone"](x, memory_format=torch.contiguous_format), x.copy(order="C"))
    agree(LARGE["to"](x, torch.float64), x.astype("f8"))
    agree(LARGE["_copy"](x, x[:1]), SMALL["_copy"](x, x[:1]))
    target, other = np.zeros(x.shape, "f8"), np.zeros(x.shape, "f8")
    LARGE["_copy_"](target, x)
    SMALL["_copy_"](other, x)
    agree(target, other)
    LARGE["_copy_"](target[1:], target[:-1])
    np.copyto(other[1:], other[:-1].copy())
    agree(target, other)


@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_joined_arrays(rng, layout, dim):
    x = layout(numbers(rng))
    parts = [x, x.copy(), x]
    narrow = np.split(x, [1, 5], dim)
    for tensors in (parts, narrow, [np.zeros(0, "f4"), *parts]):
        agree(LARGE["cat"](tensors, dim), SMALL["cat"](tensors, dim))
    with pytest.raises(ValueError, match="dimension"):
        LARGE["cat"]([x, np.concatenate([x, x], (dim + 1) % x.ndim)], dim)


def test_small_arrays_have_kernels_of_their_own():
    for name in ("add", "to", "clone", "cat", "exp", "_copy_"):
        assert LARGE[name] is not SMALL[name] and "large" not in getattr(SMALL[name], "__module__", "")
