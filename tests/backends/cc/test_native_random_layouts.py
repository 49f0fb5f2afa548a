"""The compiled kernels over ndarrays of odd shapes and layouts, drawn at random: what they do not decline is NumPy's
result. Built with a sanitizer (`.ci/run`) they show what they read or write beside their arrays.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from torchlite_backends.cc import (
    convolution,
    cxx_compiler,
    native_gemm,
    native_gemv,
    native_kernel,
    native_parallel_gemm,
    native_pooling,
    native_small_arrays,
)
from torchlite_backends.cc.device import Device
from torchlite_backends.cpu_engines import engine_selection
from torchlite_backends.numpy import NumpyBackend, cache_blocking, conv, conv_geometry

pytestmark = pytest.mark.skipif(bool(cxx_compiler.why_not()), reason=cxx_compiler.why_not())

FLOATS = "f4", "f8"
LENGTHS = 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 47, 49, 63, 65, 100, 129, 257


@pytest.fixture(scope="module")
def engine():
    return Device()


@pytest.fixture(scope="module")
def plain():
    """NumPy's kernels, by op."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine_selection, "select_engine", lambda: engine_selection.Selection(None, {}))
        backend = NumpyBackend()
        yield {**backend.kernels(0), **backend.own_large_kernels(0)}


class Draw:
    """Random arguments. An array may be a view: inside a larger array, turned, backwards, in steps or expanded."""

    def __init__(self, seed: int):
        self.rng = np.random.default_rng(seed)
        self.dtype = self.one_of(FLOATS)

    def one_of(self, values):
        return values[self.rng.integers(len(values))]

    def size(self, least=0):
        """Mostly odd lengths, now and then none."""
        return least if self.rng.random() < 0.03 else int(self.one_of(LENGTHS))

    def shape(self, least, most):
        """Of so many dimensions, and some thousand elements at most."""
        shape = [self.size() for _ in range(self.rng.integers(least, most + 1))]
        while math.prod(shape) > 1 << 14:
            shape[int(np.argmax(shape))] //= 2
        return tuple(shape)

    def chance(self, share=0.5):
        return bool(self.rng.random() < share)

    def floats(self, *shape, dtype=None):
        return self.laid(np.asarray(self.rng.standard_normal(shape) * 3).astype(dtype or self.dtype))

    def places(self, *shape, below):
        return self.laid(self.rng.integers(0, max(below, 1), shape).astype(self.one_of(("i8", "i8", "i8", "i4"))))

    def laid(self, x):
        if not x.ndim:
            return x
        way = self.one_of(("whole", "whole", "whole", "inside", "inside", "turned", "backwards", "steps", "expanded"))
        if way == "inside":
            before = int(self.rng.integers(1, 9))
            flat = np.empty(x.size + before, x.dtype)
            out = flat[before:].reshape(x.shape)
        elif way == "turned":
            out = np.empty(x.shape[::-1], x.dtype).T
        elif way == "backwards":
            out = np.empty(x.shape, x.dtype)[(slice(None, None, -1),) * x.ndim]
        elif way == "steps":
            out = np.empty([2 * n for n in x.shape], x.dtype)[(slice(None, None, 2),) * x.ndim]
        elif way == "expanded" and len(x):
            return np.broadcast_to(x[:1], x.shape)
        else:
            return x
        out[...] = x
        return out


def _gather(draw):
    dtype = draw.one_of(("?", "u1", "f2", "f4", "i8", "c16"))
    x = draw.floats(*draw.shape(1, 3), dtype=dtype)
    dim = int(draw.rng.integers(-x.ndim, x.ndim))
    shape = list(x.shape)
    shape[dim] = draw.size() if x.shape[dim] else 0
    return x, dim, draw.places(*shape, below=x.shape[dim]).astype("i8", copy=False)


def _index_select(draw):
    x = draw.floats(*draw.shape(1, 3), dtype=draw.one_of(("?", "i2", "f4", "c16")))
    dim = int(draw.rng.integers(x.ndim))
    return x, dim, draw.places(draw.size() if x.shape[dim] else 0, below=x.shape[dim])


def _embedding(draw):
    table = draw.floats(draw.size(1), draw.size())
    return table, draw.places(*draw.shape(0, 2), below=len(table))


def _embedding_backward(draw):
    rows, indices = draw.size(1), draw.shape(1, 2)
    return draw.floats(*indices, draw.size(1)), draw.places(*indices, below=rows), rows, -1, False


def _index_add(draw):
    x = draw.floats(*draw.shape(2, 3))
    count = draw.size() if len(x) else 0
    return x, 0, draw.places(count, below=len(x)), draw.floats(count, *x.shape[1:])


def _cat(draw):
    shape, dim = list(draw.shape(1, 4)), 0
    dim, dtype, found = int(draw.rng.integers(len(shape))), draw.one_of(("?", "f2", "f4", "c16")), []
    for _ in range(draw.rng.integers(1, 5)):
        shape[dim] = draw.size()
        found.append(draw.floats(*shape, dtype=dtype))
    return found, dim


def _sum(draw):
    x = draw.floats(*draw.shape(1, 4))
    count = draw.rng.integers(0, x.ndim + 1)
    dims = [int(d) for d in draw.rng.permutation(x.ndim)[:count]]
    return x, draw.one_of((dims, tuple(dims), None, int(draw.rng.integers(x.ndim)))), draw.chance()


def _mean(draw):
    arguments = _sum(draw)
    return arguments if arguments[0].size else _mean(draw)


def _topk(draw):
    x = draw.floats(*draw.shape(1, 2)[:-1], 8 * draw.size(1))
    k = min(int(draw.one_of((1, 2, 3, 5, 8, 16))), x.shape[-1])
    return (draw.rng.permutation(x.size).reshape(x.shape).astype(x.dtype), k, -1, draw.chance())


def _layer_norm(draw):
    shape = draw.shape(1, 4)
    dims = int(draw.rng.integers(1, len(shape) + 1))
    affine = [draw.floats(*shape[-dims:]) if draw.chance() else None for _ in range(2)]
    return draw.floats(*shape), *affine, dims, 1e-5


def _rms_norm(draw):
    x, weight, _, dims, eps = _layer_norm(draw)
    return x, weight, dims, eps


def _layer_norm_backward(draw):
    shape = *draw.shape(1, 2), draw.size(2)
    x = draw.floats(*shape)
    mean, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    weight = draw.floats(shape[-1]) if draw.chance() else None
    return draw.floats(*shape), x, weight, mean, 1 / np.sqrt(var + 1e-5), 1, 1e-5, (True, True, True)


def _gelu(draw):
    return (draw.floats(*draw.shape(0, 3)),)


def _attention(draw):
    groups, heads, rows, width = draw.size(1) % 4 + 1, draw.size(1) % 5 + 1, draw.size(1) % 4 + 1, draw.size(1)
    columns, features = draw.size(1), draw.size(1)
    query, key = draw.floats(groups, heads, rows, width), draw.floats(groups, heads, columns, width)
    value, mask = draw.floats(groups, heads, columns, features), None
    if draw.chance():
        mask = draw.floats(*((1 if draw.chance() else n) for n in (groups, heads, rows, columns)), dtype=query.dtype)
        mask = mask if draw.chance() else mask > -0.5
    return query, key, value, mask, draw.chance() and mask is None, width**-0.5


def _channels(draw, count=4):
    """Images, and as many vectors with a number for each channel, the last one of positive numbers."""
    x = draw.floats(draw.size(1) % 5 + 1, draw.size(1) % 17 + 1, *draw.shape(1, 2), dtype="f4")
    vectors = [draw.floats(x.shape[1], dtype="f4") for _ in range(count)]
    return x, *vectors[:-1], np.abs(vectors[-1]) + 1


def _norm_train(draw):
    x, *affine, _ = _channels(draw, 3)
    return (x if x.size else np.ones((2, 3, 5), "f4"), *(affine if x.size and draw.chance() else (None, None)), 1e-5)


def _norm_eval(draw):
    x, weight, bias, mean, var = _channels(draw)
    return x, weight, bias, mean, var, 1e-5, *draw.one_of(((-math.inf, math.inf), (0.0, math.inf), (0.0, 6.0)))


def _norm_backward(draw):
    x, weight, mean, var = _channels(draw, 3)
    if not x.size:
        return _norm_backward(draw)
    weight = weight if draw.chance() else None
    return draw.floats(*x.shape, dtype="f4"), x, weight, mean, var, 1e-5, (draw.chance(), True, True)


def _limited(draw):
    return draw.floats(*draw.shape(1, 3), dtype="f4"), -1.0, 1.5


def _limited_backward(draw):
    x = draw.floats(*draw.shape(1, 3), dtype="f4")
    return draw.floats(*x.shape, dtype="f4"), x, -1.0, 1.5


def _relu_backward(draw):
    return _limited_backward(draw)[:2]


def _sparse(draw):
    """Columns and starts of the rows of a sparse matrix of so many columns."""
    rows, height, count = draw.size(1), draw.size(1), draw.size()
    starts = np.sort(draw.rng.integers(0, count + 1, rows + 1))
    starts[0], starts[-1] = 0, count
    return draw.rng.integers(0, height, count), starts, height


def _csr_mm(draw):
    columns, starts, height = _sparse(draw)
    return columns, starts, draw.floats(len(columns)), draw.floats(height, draw.size())


def _sampled_mm(draw):
    columns, starts, height = _sparse(draw)
    rows, width = np.repeat(np.arange(len(starts) - 1), np.diff(starts)), draw.size(1)
    return rows, columns, draw.floats(len(starts) - 1, width), draw.floats(height, width)


def _stable_argsort_rows(draw):
    size = draw.size(1)
    return draw.laid(draw.rng.integers(0, size, draw.size())), size


def _pair(draw):
    shape = draw.shape(1, 3)
    return draw.floats(*shape), draw.floats(*shape)


def _window(draw):
    count = int(draw.rng.integers(1, 3))
    kernel = [int(draw.rng.integers(1, 6)) for _ in range(count)]
    x = draw.floats(*[draw.size() for _ in range(2)], *[draw.size(k) + k for k in kernel])
    return (
        x,
        kernel,
        [int(draw.rng.integers(1, 4)) for _ in kernel],
        [int(draw.rng.integers(0, k // 2 + 1)) for k in kernel],
    )


def _max_pool(draw):
    x, *window = _window(draw)
    return x, *map(tuple, window), (1,) * len(window[0]), draw.chance()


def _avg_pool(draw):
    x, *window = _window(draw)
    return x, *map(tuple, window), draw.chance(), draw.chance(), draw.one_of((None, 3))


def _half_pair(draw):
    shape = draw.shape(1, 3)
    other = draw.floats(*([] if draw.chance(0.3) else shape), dtype="f2")
    return draw.floats(*shape, dtype="f2"), draw.laid(np.asarray(np.abs(other) + np.float16(1)))


def _grid(draw):
    batch, (height, width) = draw.one_of((0, 1, 1, 2, 3)), (draw.size(1), draw.size(1))
    images = draw.floats(batch, draw.one_of((1, 2, 5)), height, width)
    grid = draw.floats(batch, draw.size(), draw.one_of((1, 3, 8)), 2)
    return (
        images,
        draw.laid(grid),
        draw.one_of(("bilinear", "bilinear", "nearest")),
        draw.one_of(("zeros", "border", "reflection")),
        draw.chance(),
    )


def _trailing(draw):
    """Sums and products over the last dimensions."""
    x = draw.floats(*draw.shape(1, 3)) / 3
    kept = int(draw.rng.integers(x.ndim))
    return x, x.ndim - 1 if draw.chance() else tuple(range(kept, x.ndim)), draw.chance()


def _trailing_one(draw):
    x, _, keepdim = _trailing(draw)
    return x, x.ndim - 1, keepdim


def _many(draw):
    """Enough elements for kernels of slow functions."""
    return draw.floats(draw.one_of((1024, 1031, 4099))), draw.floats(1024)


def _inner(draw):
    return (np.clip(_many(draw)[0], -0.999, 0.999),)


def _next(draw):
    x = _many(draw)[0]
    return x, draw.floats(*x.shape)


def _flip(draw):
    x = draw.floats(*draw.shape(1, 4), dtype=draw.one_of(("?", "f2", "f4", "f8", "i8")))
    dims = draw.rng.permutation(x.ndim)[: int(draw.rng.integers(1, x.ndim + 1))]
    return x, tuple(int(d) for d in dims)


def _halves(draw):
    return (draw.floats(*draw.shape(1, 3), dtype="f2"),)


def _half_extremes(draw):
    shape = draw.shape(1, 3)
    return draw.floats(*shape, dtype="f2"), draw.floats(*shape, dtype="f2")


def _positive_halves(draw):
    return (draw.laid(np.abs(_halves(draw)[0])),)


def _whole_planes(draw):
    return draw.floats(*[draw.size(1) for _ in range(4)]), (1, 1)


def _written(draw):
    """A target of half precision, and another array of its shape or a number."""
    shape = draw.shape(1, 3)
    other = np.abs(draw.floats(*([] if draw.chance(0.3) else shape), dtype="f2")) + np.float16(1)
    return draw.floats(*shape, dtype="f2"), draw.laid(np.asarray(other))


DRAWN = {
    "gather": _gather, "index_select": _index_select, "embedding": _embedding,
    "_embedding_backward": _embedding_backward, "index_add": _index_add, "cat": _cat, "sum": _sum, "mean": _mean,
    "topk": _topk, "_layer_norm": _layer_norm, "_rms_norm": _rms_norm, "gelu": _gelu,
    "_layer_norm_backward": _layer_norm_backward, "_sdpa": _attention,
    "_batch_norm_train": _norm_train, "_batch_norm_eval": _norm_eval,
    "_batch_norm_backward": _norm_backward, "hardtanh": _limited, "_hardtanh_backward": _limited_backward,
    "_relu_backward": _relu_backward, "_csr_mm": _csr_mm, "_sampled_mm": _sampled_mm,
    "_stable_argsort_rows": _stable_argsort_rows, "add": _pair, "sub": _pair, "mul": _pair,
    "div": _half_pair, "_grid_sample": _grid,
    "_max_pool": _max_pool, "_avg_pool": _avg_pool,
    "nansum": _trailing, "prod": _trailing_one, "_adaptive_avg_pool": _whole_planes, "flip": _flip, "nextafter": _next,
    **dict.fromkeys(("erfc", "special_ndtr", "sin", "cos"), lambda draw: _many(draw)[:1]), "erfinv": _inner,
    "sqrt": _positive_halves, "_clamp_scalars": lambda draw: (*_halves(draw), -0.7, draw.one_of((None, 1.5))),
    "_clamp_scalars_": lambda draw: (*_halves(draw), -0.7, draw.one_of((None, 1.5))),
    "maximum": _half_extremes, "minimum": _half_extremes,
    "clamp_min": lambda draw: (*_halves(draw), -0.7), "clamp_max": lambda draw: (*_halves(draw), 0.3),
    **dict.fromkeys(("add_", "sub_", "mul_", "div_"), _written),
}  # fmt: skip
# Of these test_cc_native.py has odd sizes: their arrays are the backend's own, and lie as it wants them.
_ELSEWHERE = {"_gru_layer", "_lstm_layer", "_lstm_layer_backward", "_fused_adam", "_fused_sgd"}
_IN_CACHES = {"add", "sub", "mul"}  # larger ones are the shared kernels'
CALLS = 60


def _same(found, expected):
    if isinstance(expected, (tuple, list)):
        assert len(found) == len(expected)
        for a, b in zip(found, expected, strict=True):
            _same(a, b)
    elif expected is None:
        assert found is None
    else:
        assert found.shape == expected.shape and found.dtype == expected.dtype
        if expected.dtype.kind == "f" and expected.size:
            near = 1e-4 if expected.itemsize < 8 else 1e-12
            assert np.abs(found - expected).max() <= near * max(np.abs(expected).max(), 1)
        else:
            assert np.array_equal(found, expected)


def _kernels():
    found = dict(native_small_arrays.kernels)
    for name in native_kernel._MODULES:
        found.update(native_kernel.importlib.import_module(f"torchlite_backends.cc.{name}").kernels)
    return found


def test_every_kernel_is_drawn():
    assert _kernels().keys() == DRAWN.keys() | _ELSEWHERE


@pytest.mark.parametrize("op", DRAWN)
@pytest.mark.parametrize("cached", [0, 1 << 25])
def test_odd_arrays(engine, plain, monkeypatch, op, cached):
    kernel, served = _kernels()[op], 0
    monkeypatch.setattr(type(engine), "least_pairs", 1)
    monkeypatch.setattr(native_pooling, "_MIN_SIZE", 0)
    monkeypatch.setattr(type(engine), "cached", cached)  # with 0 results are written past the caches
    for seed in range(CALLS):
        arguments = DRAWN[op](Draw(seed))
        same = [arguments[0].copy(), *arguments[1:]] if op[-1] == "_" else arguments  # the first is written
        found = kernel(engine, *arguments)
        if found is not None:
            served += 1
            expected = plain[op](*same)
            _same(found, same[0] if op[-1] == "_" else expected)
    assert served >= CALLS // 20 or op in _IN_CACHES and not cached


def test_odd_products(engine):
    served = 0
    for seed in range(CALLS):
        draw = Draw(seed)
        rows, columns, depth = draw.size(1), draw.size(1), draw.size(1)
        a, b = draw.floats(rows, depth), draw.floats(depth, columns)
        bias = np.ascontiguousarray(draw.floats(columns)) if draw.chance() else None
        expected = a @ b if bias is None else a @ b + bias
        for product in (native_parallel_gemm.parallel_gemm, native_gemm.gemm):
            out, cut = (
                np.empty((rows, columns), a.dtype),
                (draw.chance(), 2) if product is native_parallel_gemm.parallel_gemm else (),
            )
            if product(engine, a, b, out, bias, *cut):
                served += 1
                _same(out, expected)
        found = native_gemv.gemv(engine, a[:1], b, bias)
        if found is not None:
            served += 1
            _same(found, expected[:1])
    assert served >= CALLS // 4


def _scratch(_, shape, dtype):
    return (
        cache_blocking._allocate_aligned_bytes(math.prod(shape) * np.dtype(dtype).itemsize).view(dtype).reshape(shape)
    )


@pytest.fixture
def program(monkeypatch):
    """Convolutions of any shape, with scratch memory of exactly the requested size."""
    for name in ("_MIN_USEFUL_SHARE", "_MIN_MULS", "_MIN_MULS_PER_THREAD", "_MIN_MOVES_PER_THREAD"):
        monkeypatch.setattr(convolution, name, 0)
    monkeypatch.setattr(convolution, "get_scratch_buffer", _scratch)
    convolution._is_faster.cache_clear()
    yield convolution.load_convolutions(True)
    convolution._is_faster.cache_clear()


def _plan(draw):
    n = int(draw.one_of((1, 2, 2)))
    groups = int(draw.one_of((1, 1, 1, 2, 4)))
    channels, filters = (groups * int(draw.one_of((1, 2, 3, 5, 8, 16, 24, 40))) for _ in range(2))
    kernel, stride, dilation = (
        tuple(int(draw.one_of(v)) for _ in range(n)) for v in ((1, 2, 3, 3, 5), (1, 1, 2, 3), (1, 1, 2))
    )
    padding = tuple(int(draw.one_of((0, 0, 1, k * d // 2))) for k, d in zip(kernel, dilation, strict=True))
    size = tuple(int(draw.one_of((1, 4, 5, 6, 7, 8, 9, 12, 16, 17, 30, 32, 33, 38))) for _ in range(n))
    if any(s + 2 * p < d * (k - 1) + 1 for s, p, d, k in zip(size, padding, dilation, kernel, strict=True)):
        return _plan(draw)
    return conv_geometry.get_conv_geometry(
        int(draw.one_of((1, 2, 3, 8))), channels, filters, size, kernel, stride, padding, dilation, groups
    )


@pytest.mark.parametrize("filtering", [False, True])
def test_odd_convolutions(program, monkeypatch, filtering):
    if filtering:
        monkeypatch.setattr(convolution, "_WINOGRAD_MIN_CHANNELS", 1)
        monkeypatch.setattr(convolution, "_WINOGRAD_MIN_TILES", 1)
    for seed in range(CALLS):
        draw = Draw(seed)
        draw.dtype, plan = "f4", _plan(draw)
        x, weight = draw.floats(plan.batch, plan.channels, *plan.size), None
        weight = draw.floats(plan.filters, plan.channels // plan.groups, *plan.kernel)
        grad, bias = draw.floats(plan.batch, plan.filters, *plan.out), np.ascontiguousarray(draw.floats(plan.filters))
        _same(program.forward(plan, x, weight, bias), conv._conv_forward(x, weight, bias, plan))
        _same(program.conv_transpose(plan, grad, weight, None), conv._conv_transpose(grad, weight, None, plan))
        _same(program.weight_gradient(plan, grad, x), conv._weight_gradient(grad, x, weight.shape, plan))
