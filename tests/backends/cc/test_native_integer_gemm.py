"""Native products of integers against NumPy's, with all instructions that there are."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from torchlite._types.quantized_levels import choose_parameters
from torchlite_backends.cc import cxx_compiler, native_integer_gemm
from torchlite_backends.cc.device import Device
from torchlite_backends.cc.native_integer_gemm import IntegerProducts
from torchlite_backends.numpy import quantized
from torchlite_backends.numpy.quantized import Finish

pytestmark = pytest.mark.skipif(bool(cxx_compiler.why_not()), reason=cxx_compiler.why_not() or "there is a compiler")
SUMS = Finish(None, None, None)
PAIRS = list(itertools.product(("u1", "i1"), repeat=2))


@pytest.fixture(params=[0, 1, 2, 3], ids=["best", "plain", "avx2", "vnni"])
def products(request, monkeypatch):
    monkeypatch.setattr(native_integer_gemm, "instructions", request.param)
    return IntegerProducts(Device())


def levels(rng, dtype, *shape, extreme=False):
    info = np.iinfo(dtype)
    if extreme:
        return rng.choice(np.array([info.min, info.max], dtype), shape)
    return rng.integers(info.min, info.max, shape, dtype, endpoint=True)


@pytest.mark.parametrize(("left", "right"), PAIRS)
def test_all_pairs_of_values(products, left, right):
    """The products of all values, and sums of four equal extreme ones, which 16 bits do not hold."""
    a, b = (np.arange(256).astype("u1").view(dtype) for dtype in (left, right))
    got = products.multiply(a[:, None], products.pack(b[None]), None, None, SUMS)
    assert np.array_equal(got, a.astype("i4")[:, None] * b.astype("i4"))
    for depth in (2, 3, 4, 5, 8, 300):
        x, y = (np.repeat(values[[0, 1, 127, 128, 255], None], depth, 1) for values in (a, b))
        got = products.multiply(x, products.pack(y.T), None, None, SUMS)
        assert np.array_equal(got, x.astype("i4") @ y.T.astype("i4"))


@pytest.mark.parametrize(("left", "right"), PAIRS)
@pytest.mark.parametrize("rows", [1, 2, 7, 13, 65])
@pytest.mark.parametrize("depth", [1, 3, 17, 64, 130])
def test_sizes(products, left, right, rows, depth):
    rng = np.random.default_rng(rows * depth)
    for columns in (1, 15, 16, 17, 48, 63, 64, 65, 131):
        a, b = levels(rng, left, rows, depth), levels(rng, right, depth, columns, extreme=True)
        zeros = levels(rng, left, rows), levels(rng, right, columns)
        want = (a.astype("i4") - zeros[0].astype("i4")[:, None]) @ (b.astype("i4") - zeros[1].astype("i4"))
        assert np.array_equal(products.multiply(a, products.pack(b), *zeros, SUMS), want)


def test_layouts_and_stacks(products):
    rng = np.random.default_rng(0)
    for left, right in PAIRS:
        a, b = levels(rng, left, 4, 3, 20, 26), levels(rng, right, 3, 26, 70)
        views = [
            (a, b),
            (a.swapaxes(-1, -2)[..., :20], b[:, :20]),
            (a[..., ::2], b[:, ::2]),
            (a[:, :, ::-1], b[..., ::-1]),
            (a[:1], b[:1]),
            (a[0, 0], b),
            (a, b[0]),
            (a, np.ascontiguousarray(b.swapaxes(-1, -2)).swapaxes(-1, -2)),
            (np.broadcast_to(a[0, 0, 0], (5, 26)), b),
        ]
        for x, y in views:
            want = np.matmul(x.astype("i4"), y.astype("i4"))
            got = products.multiply(x, products.pack(y), None, None, SUMS)
            assert got.shape == want.shape and np.array_equal(got, want)


def test_finish(products):
    """Biases, scales and zero points of the result, and products that are worth two threads."""
    rng = np.random.default_rng(1)
    a, b = levels(rng, "u1", 400, 384), levels(rng, "i1", 384, 200)
    total = a.astype("i4") @ b.astype("i4")
    assert np.array_equal(products.multiply(a, products.pack(b), None, None, SUMS), total)
    bias, scale = rng.integers(-99999, 99999, 200).astype("i4"), rng.random(200).astype("f4") / 5000
    got = products.multiply(a, products.pack(b), None, None, Finish(bias, scale, None))
    assert got.dtype == "f4" and np.array_equal(got, (total + bias).astype("f4") * scale)
    for zero in (np.array(3, "u1"), np.array(-7, "i1")):
        info = np.iinfo(zero.dtype)
        want = np.clip(np.rint((total + bias).astype("f4") * scale) + zero.astype("f4"), info.min, info.max)
        got = products.multiply(a, products.pack(b), None, None, Finish(bias, scale, zero))
        assert got.dtype == zero.dtype and np.array_equal(got, want.astype(zero.dtype))


def test_sums_wrap_around(products):
    a, b = np.full((3, 70000), 255, "u1"), np.full((70000, 5), 127, "i1")
    want = a.astype("i4") @ b.astype("i4")
    assert want[0, 0] < 0 and np.array_equal(products.multiply(a, products.pack(b), None, None, SUMS), want)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_convolutions_in_parts(products, size, monkeypatch):
    """The windows are packed part by part."""
    rng = np.random.default_rng(2)
    images, weight = levels(rng, "u1", 2, 4, *(9,) * size), levels(rng, "i1", 6, 2, *(3,) * size)
    zero, weight_zero = np.array(31, "u1"), levels(rng, "i1", 6)
    geometry = (2,) * size, (1,) * size + (2,) * size, (1,) * size, 2
    monkeypatch.setattr(quantized, "integer_products", lambda: products)
    given = images, weight, zero, weight_zero, None, None, None, *geometry
    whole = quantized._quantized_convolution(*given)
    monkeypatch.setattr(native_integer_gemm, "_WINDOWS", 1)
    assert np.array_equal(quantized._quantized_convolution(*given), whole)
    monkeypatch.setattr(quantized, "integer_products", lambda: None)
    monkeypatch.setattr(quantized, "_BLOCK", 1)
    assert np.array_equal(quantized._quantized_convolution(*given), whole)


def test_levels_by_range(products):
    rng = np.random.default_rng(3)
    for n in (1, 15, 16, 17, 40000):
        x = rng.standard_normal(n).astype("f4")
        assert products.extremes(x) == (x.min(), x.max())
        scale, zero = np.float32(0.02), np.float32(7)
        want = np.clip(np.rint(x / scale) + zero, 0, 255).astype("u1")
        assert np.array_equal(products.quantize(x, scale, zero), want)
        x[n // 2] = np.nan
        assert products.extremes(x) is None
    assert products.extremes(np.ones((4, 4), "f4")[:, ::2]) is None


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"])
def test_products_wrap_around(products, dtype):
    rng = np.random.default_rng(4)
    for rows, depth, columns in [(1, 1, 1), (7, 300, 33), (64, 17, 129), (13, 256, 257)]:
        a, b = levels(rng, dtype, 3, rows, depth), levels(rng, dtype, depth, columns)
        for x, y in [(a, b), (a[:, ::-1], b[:, ::-1]), (a[0], np.stack([b, b])), (b.T, a[0].T)]:
            out = np.empty((*np.broadcast_shapes(x.shape[:-2], y.shape[:-2]), x.shape[-2], y.shape[-1]), dtype)
            assert products.multiply_integers(x, y, out)
            assert np.array_equal(out, np.matmul(x, y))


def test_unaligned_elements_are_left_to_numpy():
    record = np.zeros((5, 6), [("a", "i4"), ("b", "i1")])["a"]
    assert not IntegerProducts(Device()).multiply_integers(record, record.T, np.empty((5, 5), "i4"))


@pytest.mark.parametrize("dtype", ["u1", "i1"])
@pytest.mark.parametrize(("depth", "columns"), [(1, 1), (5, 63), (64, 64), (33, 130)])
def test_packed_operands_give_the_levels_back(products, dtype, depth, columns):
    given = levels(np.random.default_rng(depth), dtype, depth, columns)
    found = products.pack(given).unpack(np.dtype(dtype))
    assert found.dtype == given.dtype and np.array_equal(found, given)


def dynamic_layer(rng, rows, depth, columns, most, zero, with_bias, rectify):
    """A bound layer, and its result for numbers as NumPy's kernel defines it, with a fused multiplication."""
    weight = levels(rng, "i1", depth, columns)
    b_zero = levels(rng, "i1", columns) if zero else None
    scale = rng.uniform(0.01, 0.1, columns).astype("f4")
    bias = rng.standard_normal(columns).astype("f4") if with_bias else None

    def expected(x):
        step, point = choose_parameters(float(x.min()), float(x.max()), 0, most)
        factor = np.float32(1) / np.float32(step)
        wide = np.rint((x.astype("f8") * factor + point).astype("f4")).clip(0, 255).astype("i8") - point
        sums = wide @ (weight.astype("i8") - (b_zero.astype("i8") if zero else 0))
        out = sums.astype("f4") * (scale * np.float32(step))
        out = out if bias is None else out + bias
        return np.maximum(out, 0) if rectify else out

    def bind(products):
        return products.bind_dynamic_linear(products.pack(weight), b_zero, scale, bias, most, rectify, rows)

    return bind, expected


@pytest.mark.parametrize("rows", [1, 2, 7, 8, 13, 65, 300])
@pytest.mark.parametrize("zero", [False, True])
@pytest.mark.parametrize("with_bias", [False, True])
def test_dynamic_linear(products, rows, zero, with_bias):
    rng = np.random.default_rng(rows)
    for depth, columns in ((1, 1), (70, 40), (300, 133)):
        bind, expected = dynamic_layer(rng, rows, depth, columns, 255 if zero else 127, zero, with_bias, rows % 2 == 0)
        layer = bind(products)
        for x in (rng.standard_normal((rows, depth)), rng.random((rows, depth)) + 1, np.zeros((rows, depth))):
            x = x.astype("f4")
            assert np.array_equal(layer(x), expected(x))


def test_dynamic_linear_on_several_threads(products, monkeypatch):
    """The result does not depend on the threads that share the work."""
    monkeypatch.setattr(native_integer_gemm, "_MULS_TO_SHARE", 1)
    rng = np.random.default_rng(0)
    for rows in (1, 9, 300):
        bind, expected = dynamic_layer(rng, rows, 200, 130, 127, True, True, False)
        layer = bind(products)
        x = rng.standard_normal((rows, 200)).astype("f4")
        for threads in (1, 2, 3):
            monkeypatch.setattr(native_integer_gemm, "get_threads", lambda threads=threads: threads)
            assert np.array_equal(layer(x), expected(x))


@pytest.mark.parametrize("strange", [np.nan, np.inf, -np.inf])
def test_dynamic_linear_refuses_what_is_not_finite(products, strange):
    rng = np.random.default_rng(0)
    bind, _ = dynamic_layer(rng, 3, 20, 9, 127, False, False, False)
    x = rng.standard_normal((3, 20)).astype("f4")
    x[1, 7] = strange
    assert bind(products)(x) is None
    assert bind(products)(np.full((3, 20), 2e38, "f4") * np.array([1, -1] * 10, "f4")) is None


@pytest.mark.parametrize(("left", "right"), PAIRS)
@pytest.mark.parametrize("rows", [1, 5, 8, 9, 16])
def test_few_rows_with_a_transposed_matrix(products, left, right, rows):
    """The matrix is not packed."""
    rng = np.random.default_rng(rows)
    for depth, columns in ((1, 1), (63, 31), (64, 32), (200, 70)):
        for extreme in (False, True):
            a, b = (
                levels(rng, left, rows, depth, extreme=extreme),
                levels(rng, right, columns, depth, extreme=extreme).T,
            )
            zeros = levels(rng, left, rows), levels(rng, right, columns)
            for a_zero, b_zero in ((None, None), zeros, (zeros[0][:1], None)):
                wide = [
                    x.astype("i4") - (0 if z is None else z.astype("i4"))
                    for x, z in ((a, None if a_zero is None else a_zero[:, None]), (b, b_zero))
                ]
                assert np.array_equal(products.multiply_lines(a, b, a_zero, b_zero, SUMS), wide[0] @ wide[1])
    assert products.multiply_lines(a, np.ascontiguousarray(b), None, None, SUMS) is None
    stack = levels(rng, left, 2, 3, 200)
    assert np.array_equal(products.multiply_lines(stack, b, None, None, SUMS), stack.astype("i4") @ b.astype("i4"))


@pytest.mark.parametrize("rows", [4, 16, 17, 32, 33, 70])
def test_rows_with_a_transposed_matrix_of_signed_levels(products, rows):
    """Tiles read the matrix as it lies. Without them more than 16 rows are left to `multiply`."""
    rng = np.random.default_rng(rows)
    tiles = native_integer_gemm.instructions == 0 and not products._no_tiles
    for depth, columns in ((64, 32), (63, 40), (200, 33), (128, 65), (130, 200)):
        wide = levels(rng, "i1", columns, depth + 5, extreme=True)
        for a, b in (
            (levels(rng, "i1", rows, depth, extreme=True), wide[:, :depth].T),
            (levels(rng, "i1", depth, rows).T, np.ascontiguousarray(wide[:, :depth]).T),
        ):
            total = a.astype("i4") @ b.astype("i4")
            got = products.multiply_lines(a, b, None, None, SUMS)
            tiles = tiles and not products._no_tiles
            assert (got is not None) == (rows <= 16 or tiles and depth >= 64)
            assert got is None or np.array_equal(got, total)
            bias, scale = rng.integers(-999, 999, columns).astype("i4"), rng.random(columns).astype("f4") / 5000
            got = products.multiply_lines(a, b, None, None, Finish(bias, scale, None))
            assert got is None or np.array_equal(got, (total + bias).astype("f4") * scale)


@pytest.mark.parametrize("right", ["u1", "i1"])
@pytest.mark.parametrize("shape", [(64, 32), (70, 33), (15, 64), (100, 100)])
def test_packed_levels_of_transposed_matrices_are_given_back(products, right, shape):
    b = levels(np.random.default_rng(1), right, *shape[::-1]).T
    packed = products.pack(b)
    assert np.array_equal(packed.unpack(b.dtype), b)
    sums = (b.astype("i4") - packed.shift).sum(0)
    assert np.array_equal(packed.sums[: shape[1]], sums)
