"""Results that the NumPy backend computes on several threads equal NumPy's bit for bit."""

import functools
import threading
import weakref

import numpy as np
import pytest

import torchlite as torch
import torchlite_backends.numpy
from torchlite._settings import thread_count
from torchlite_backends.numpy import cache_blocking, threaded_ufuncs

SMALL = torchlite_backends.numpy.backend.kernels(0)


def kernels_for_large(least):
    """The kernels for large arrays, with a lower threshold for starting threads."""
    usual, threaded_ufuncs.MIN_SIZE_CHEAP = threaded_ufuncs.MIN_SIZE_CHEAP, least
    try:
        return {**SMALL, **torchlite_backends.numpy.backend.own_large_kernels(0)}
    finally:
        threaded_ufuncs.MIN_SIZE_CHEAP = usual


LARGE = kernels_for_large(1 << 17)
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


@pytest.fixture(autouse=True, params=[2])
def some_threads(request, monkeypatch):
    monkeypatch.setattr(thread_count, "_count", request.param)


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
    """Counts how often work was handed out to other threads, in parts or in blocks."""
    counted = []
    pool = cache_blocking._workers
    real = pool.submit
    monkeypatch.setattr(pool, "submit", lambda function, count: (counted.append(count), real(function, count))[1])
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


def test_in_place_with_overlapping_operands(rng):
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
    monkeypatch.setattr(cache_blocking._local, "is_worker", True, raising=False)
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


@pytest.mark.parametrize("table", [SMALL, LARGE], ids=["small", "large"])
def test_joined_arrays_are_row_major_unless_all_are_channels_last(rng, table):
    kept, last = numbers(rng, (1, 40, 64, 50)), numbers(rng, (1, 64, 1, 50)).transpose(0, 2, 1, 3)
    held = numbers(rng, (1, 64, 40, 50)).transpose(0, 2, 1, 3)
    for first in (kept, held):
        found = table["cat"]([first, last], 1)
        assert found.flags.c_contiguous
        np.testing.assert_array_equal(found, np.concatenate([first, last], 1))
    images = numbers(rng, (2, 30, 40, 50)).transpose(0, 3, 1, 2)
    assert table["cat"]([images, images], 1).transpose(0, 2, 3, 1).flags.c_contiguous


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


def test_small_arrays_use_separate_kernels():
    for name in ("add", "clone", "cat", "exp"):
        assert LARGE[name] is not SMALL[name] and "large" not in getattr(SMALL[name], "__module__", "")


REDUCED = [((400, 500), 0), ((400, 500), 1), ((400, 500), None), ((300000,), 0), ((3, 100000), 1), ((100000, 3), 0)]
REDUCED += [((8, 30, 40, 50), (0, 2, 3)), ((8, 30, 40, 50), (1,)), ((8, 30, 40, 50), (0, -1)), ((500, 600), (0, 1))]


@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize(("shape", "dim"), REDUCED)
@pytest.mark.parametrize("turned", [False, True])
def test_reductions(shape, dim, keepdim, turned):
    rng = np.random.default_rng(0)  # of one seed: a float32 sum that cancels has no bound relative to its value
    x = rng.standard_normal(shape[::-1] if turned else shape).astype("f4")
    x = x.T if turned else x
    for name in ("amax", "amin"):
        np.testing.assert_array_equal(LARGE[name](x, dim, keepdim), SMALL[name](x, dim, keepdim))
        holed = x.copy()
        holed.reshape(-1)[77] = np.nan
        np.testing.assert_array_equal(LARGE[name](holed, dim, keepdim), SMALL[name](holed, dim, keepdim))
    count = x.size // np.asarray(SMALL["amax"](x, dim)).size
    for name, more in (("sum", ()), ("mean", ()), ("_var_correction", (1,)), ("_std_correction", (0,))):
        got, expected = (kernel[name](a, dim, *more, keepdim) for kernel, a in ((LARGE, x), (SMALL, x.astype("f8"))))
        assert np.shape(got) == np.shape(expected) and got.dtype == np.float32
        np.testing.assert_allclose(got, expected, rtol=2e-6, atol=2e-6 * (count**0.5 if name == "sum" else 1))
    if dim is not None:
        np.testing.assert_allclose(
            LARGE["logsumexp"](x, dim, keepdim), SMALL["logsumexp"](x.astype("f8"), dim, keepdim), rtol=2e-6
        )
    whole = (x * 10).astype("i4")
    for name, a in (("sum", whole), ("sum", whole > 3), ("amax", whole)):
        got, expected = LARGE[name](a, dim, keepdim), SMALL[name](a, dim, keepdim)
        assert np.shape(got) == np.shape(expected) and got.dtype == expected.dtype
        np.testing.assert_array_equal(got, expected)
    np.testing.assert_array_equal(LARGE["count_nonzero"](whole, dim), SMALL["count_nonzero"](whole, dim))
    np.testing.assert_allclose(
        LARGE["_vector_norm_core"](x, 2, (-1,), keepdim),
        np.linalg.norm(x.astype("f8"), axis=-1, keepdims=keepdim),
        rtol=3e-6,
    )


@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize(("shape", "dim"), [(s, d) for s, d in REDUCED if isinstance(d, int)])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "u1", "?"])
def test_places_of_extremes_and_products(rng, shape, dim, keepdim, dtype):
    x = numbers(rng, shape, dtype) if dtype[0] != "u" else rng.integers(0, 200, shape).astype(dtype)
    for turned in (x, np.asfortranarray(x)):
        for name in ("_max_dim", "_min_dim"):
            for got, expected in zip(LARGE[name](turned, dim, keepdim), SMALL[name](x, dim, keepdim), strict=True):
                assert got.dtype == expected.dtype
                np.testing.assert_array_equal(got, expected)
        for name in ("argmax", "argmin"):
            np.testing.assert_array_equal(LARGE[name](turned, dim, keepdim), SMALL[name](x, dim, keepdim))
            np.testing.assert_array_equal(LARGE[name](turned), SMALL[name](x))
    if dtype[0] == "f":
        x = (1 + 0.01 * rng.standard_normal(shape)).astype(dtype)
        np.testing.assert_allclose(
            LARGE["prod"](x, dim, keepdim), SMALL["prod"](x.astype("f8"), dim, keepdim), rtol=1e-2, atol=1e-30
        )


@pytest.mark.parametrize("dim", [0, 1])
def test_softmax_over_a_long_first_dimension(rng, dim):
    x = rng.standard_normal((600, 300)).astype("f4")
    out = SMALL["_softmax"](x, dim)
    assert out.flags.c_contiguous
    powers = np.exp(x.astype("f8"))
    np.testing.assert_allclose(out, powers / powers.sum(dim, keepdims=True), rtol=2e-6)


MASKS = [
    ((300, 1000), (300, 1000)),
    ((300, 1), (300, 1000)),
    ((70, 80), (3, 4, 70, 80)),
    ((2, 1, 1, 80), (2, 3, 70, 80)),
]


@pytest.mark.parametrize(("masked", "shape"), MASKS)
@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", "i4", "i8", "u1", "c8"])
def test_choices_and_filled_places(rng, masked, shape, dtype):
    mask, x, y = rng.random(masked) < 0.5, numbers(rng, shape, dtype), numbers(rng, shape, dtype)
    row = numbers(rng, shape[-1:], dtype)
    for first, second in ((x, y), (x, row), (row, x), (x[..., ::-1], y), (x, 0), (0, x), (x, 3), (2, x)):
        agree_in_values(SMALL["where"](mask, first, second), mask, first, second)
        agree_in_values(LARGE["where"](mask, first, second), mask, first, second)
    if x.dtype.kind == "f":
        for number in (-1e4, float("inf"), float("nan"), -0.0, 1.5):
            agree_in_values(LARGE["where"](mask, x, number), mask, x, number)
            agree_in_values(LARGE["where"](mask, number, x), mask, number, x)
            agree_in_values(LARGE["_masked_fill"](x, mask, number), mask, number, x)
            agree_in_values(LARGE["_masked_fill"](x, mask, np.asarray(number)), mask, number, x)


def agree_in_values(got, mask, first, second):
    dtype = next(a.dtype for a in (first, second) if isinstance(a, np.ndarray))
    first, second = (np.asarray(a).astype(dtype) for a in (first, second))
    expected = np.where(mask, first, second)
    assert got.dtype == expected.dtype and got.shape == expected.shape
    np.testing.assert_array_equal(got, expected)
    if dtype.kind == "f":
        np.testing.assert_array_equal(np.signbit(got), np.signbit(expected))


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_mirrored_and_repeated_arrays(rng, layout):
    x = layout(numbers(rng))
    for dims in ((), (0,), (-1,), tuple(range(x.ndim))):
        agree(LARGE["flip"](x, dims), SMALL["flip"](x, dims))
    for repeats in ((2,) * x.ndim, (2, 1, *[1] * x.ndim), (0,) * x.ndim):
        got = LARGE["repeat"](x, repeats)
        assert got.flags.c_contiguous or not got.size
        np.testing.assert_array_equal(got, np.tile(x, repeats))
    wide = np.broadcast_to(x[..., :1], x.shape)
    agree(SMALL["contiguous"](wide), wide.copy(order="C"))
    with pytest.raises(RuntimeError, match="repeat"):
        LARGE["repeat"](x, ())


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i4"])
def test_clamps(rng, dtype):
    x = numbers(rng, dtype=dtype)
    before = x.copy()
    for low, high in ((-1, 1), (2, None), (None, -0.0 if dtype[0] == "f" else 3), (0, 0)):
        agree(LARGE["clamp"](x, low, high), SMALL["clamp"](x, low, high))
    agree(LARGE["clamp"](x, -1, 1), np.clip(x, -1, 1))
    np.testing.assert_array_equal(x, before)


def test_closed_tasks_release_their_arrays():
    gate, workers = threading.Event(), cache_blocking._workers
    occupied = workers.submit(gate.wait, max(1, workers.count))
    try:
        array = np.ones(8)
        gone, task = weakref.ref(array), workers.submit(functools.partial(array.sum), 1)
        task.close()
        del array
        assert gone() is None
    finally:
        gate.set()
        occupied.close()
