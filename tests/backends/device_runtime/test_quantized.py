"""Products of levels and quantization on devices: long sums, all shapes of tiles, each kind of zero point."""

from __future__ import annotations

import numpy as np
import pytest

import torchlite as torch
from torchlite._dispatch import F

LIMITS = {"uint8": (0, 256), "int8": (-128, 128)}


def levels(rng, dtype, *shape):
    return rng.integers(*LIMITS[dtype], shape).astype(dtype)


def extremes(dtype, *shape):
    return np.full(shape, LIMITS[dtype][1] - 1, dtype)


def wide(zero):
    return 0 if zero is None else zero.astype(np.int64)


def product(a, b, a_zero, b_zero, device):
    """The integer product by the device, which must be NumPy's."""
    given = [None if x is None else torch.from_numpy(x).to(device) for x in (a, b, a_zero, b_zero)]
    found = F._quantized_matmul(*given)
    rows = wide(a_zero) if np.ndim(a_zero) == 0 else wide(a_zero)[:, None]
    want = (a.astype(np.int64) - rows) @ (b.astype(np.int64) - wide(b_zero))
    assert found.dtype is torch.int32 and np.array_equal(found.cpu().numpy(), want)
    return given, want


@pytest.mark.parametrize("left", LIMITS)
@pytest.mark.parametrize("right", LIMITS)
@pytest.mark.parametrize("sizes", [(1, 700, 129), (1, 3, 1), (2, 300, 5), (5, 257, 64), (9, 40, 31), (4, 513, 200)])
def test_product(sizes, left, right, rng, device):
    m, k, n = sizes
    a, b = levels(rng, left, m, k), levels(rng, right, k, n)
    number, rows, columns = (levels(rng, dtype, *s) for dtype, s in ((left, ()), (left, (m,)), (right, (n,))))
    for a_zero, b_zero in [(None, None), (np.array(number), None), (rows, columns), (None, columns)]:
        product(a, b, a_zero, b_zero, device)


@pytest.mark.parametrize("left", LIMITS)
@pytest.mark.parametrize("right", LIMITS)
def test_sums_of_the_largest_levels_are_exact(left, right, device):
    least = np.array(LIMITS[left][0], left), np.array(LIMITS[right][0], right)
    product(extremes(left, 3, 1025), extremes(right, 1025, 40), *least, device)
    product(extremes(left, 1, 1025), extremes(right, 1025, 40), None, least[1], device)


@pytest.mark.parametrize("left", LIMITS)
@pytest.mark.parametrize("right", LIMITS)
@pytest.mark.parametrize("sizes", [(1, 700, 129), (3, 4, 1), (16, 36, 65), (17, 64, 64), (70, 300, 130), (40, 33, 9)])
def test_product_with_a_transposed_matrix(sizes, left, right, rng, device):
    """As the weights of linear layers lie. With a depth of a multiple of four, GPUs read four levels at a time."""
    m, k, n = sizes
    for make in (levels, lambda rng, *given: extremes(*given)):
        a, b = make(rng, left, m, k), make(rng, right, n, k).T
        rows, columns = levels(rng, left, m), levels(rng, right, n)
        for a_zero, b_zero in [(None, None), (rows, columns), (np.array(rows[0]), None), (None, columns)]:
            product(a, b, a_zero, b_zero, device)
    scale = rng.uniform(1e-3, 1e-2, n).astype("float32")
    given, want = product(a, b, None, None, device)
    found = F._quantized_matmul(
        *given, torch.from_numpy(rows[:1].astype("int32")).to(device), torch.from_numpy(scale).to(device)
    )
    np.testing.assert_array_equal(found.cpu().numpy(), (want + int(rows[0])).astype("float32") * scale)


@pytest.mark.parametrize("sizes", [(1, 700, 129), (16, 36, 65), (70, 300, 130), (40, 64, 64)])
def test_product_with_a_transposed_matrix_as_on_a_gpu(sizes, rng, any_form):
    for left in LIMITS:
        for right in LIMITS:
            test_product_with_a_transposed_matrix(sizes, left, right, rng, any_form)


@pytest.mark.parametrize("offset", [1, 4])
def test_product_of_parts_of_arrays(offset, rng, device):
    a, b = levels(rng, "uint8", 20, 64), levels(rng, "int8", 30, 64)
    x, y = (torch.from_numpy(value).to(device).reshape(-1)[offset:] for value in (a, b))
    x, y = x[: 18 * 64].reshape(18, 64), y[: 28 * 64].reshape(28, 64)
    want = x.cpu().numpy().astype(np.int64) @ y.cpu().numpy().astype(np.int64).T
    assert np.array_equal(F._quantized_matmul(x, y.t()).cpu().numpy(), want)


def test_packed_weights_of_linear_layers(rng, device):
    """Static and dynamic layers have the CPU's results, and give their weights back."""
    weight = torch.quantize_per_channel(
        torch.randn(33, 40), torch.rand(33) / 50 + 0.01, torch.zeros(33).long(), 0, torch.qint8
    )
    x, bias = torch.randn(5, 40), torch.randn(33)
    q = torch.quantize_per_tensor(x, 0.05, 100, torch.quint8)
    want: tuple = ()
    for place in ("cpu", device):
        packed = torch.ops.quantized.linear_prepack(weight.to(place), bias.to(place))
        for _ in range(2):
            found = (
                torch.ops.quantized.linear_dynamic(x.to(place), packed).cpu(),
                torch.ops.quantized.linear(q.to(place), packed, 0.1, 3).int_repr().cpu(),
                packed.unpack()[0].int_repr().cpu(),
            )
            want = want or found
            assert torch.equal(found[1], want[1]) and torch.equal(found[2], want[2])
            torch.testing.assert_close(found[0], want[0], rtol=1e-5, atol=1e-5)
    assert torch.equal(want[2], weight.int_repr())


@pytest.mark.parametrize("m", [1, 6])
@pytest.mark.parametrize("n", [1, 50])
def test_bias_scale_and_levels(m, n, rng, device):
    a, b = levels(rng, "uint8", m, 90), levels(rng, "int8", 90, n)
    zero, factor = np.array(3, "uint8"), rng.uniform(1e-3, 1e-2, n).astype("float32")
    given, want = product(a, b, zero, None, device)
    bias = rng.integers(-1000, 1000, n).astype("int32")
    numbers = [torch.from_numpy(x).to(device) for x in (bias, factor)]
    found = F._quantized_matmul(*given, *numbers).cpu().numpy()
    np.testing.assert_array_equal(found, (want + bias).astype("float32") * factor)
    out_zero = torch.tensor(7, dtype=torch.int8, device=device)
    found = F._quantized_matmul(*given, *numbers, out_zero).cpu().numpy()
    rounded = np.rint((want + bias).astype("float32") * factor) + 7
    assert found.dtype == np.int8 and np.array_equal(found, rounded.clip(-128, 127))


def test_batches(rng, device):
    a, b = levels(rng, "uint8", 2, 1, 5, 33), levels(rng, "uint8", 3, 33, 20)
    product(a, b, None, np.array(128, "uint8"), device)
    product(levels(rng, "int8", 2, 3, 4, 33), b[0], np.array(-3, "int8"), None, device)
    strided = torch.from_numpy(b[0]).to(device).t()
    found = F._quantized_matmul(strided, torch.from_numpy(a[0, 0]).to(device).t())
    assert np.array_equal(found.cpu().numpy(), b[0].T.astype(np.int64) @ a[0, 0].T)


@pytest.mark.parametrize("n", [1, 15, 16, 200, 5000, 140000])
@pytest.mark.parametrize("kind", ["mixed", "positive", "negative", "zero", "one"])
def test_dynamic_quantize(n, kind, rng, device):
    x = rng.standard_normal(n).astype("float32")
    x = {"mixed": x, "positive": abs(x) + 1, "negative": -abs(x) - 1, "zero": x * 0, "one": np.sign(abs(x))}[kind]
    found = [t.cpu().numpy() for t in F._dynamic_quantize(torch.from_numpy(x).to(device))]
    want = [t.numpy() for t in F._dynamic_quantize(torch.from_numpy(x))]
    np.testing.assert_allclose(found[1], want[1], rtol=1e-6)
    assert found[2] == want[2] and found[0].dtype == np.uint8
    assert np.abs(found[0].astype(int) - want[0].astype(int)).max() <= 1  # of quotients that lie between two levels
    assert (found[0] != want[0]).mean() < 1e-3


@pytest.mark.parametrize("kind", LIMITS)
@pytest.mark.parametrize("case", ["long", "depthwise", "grouped", "one", "uneven", "large kernel"])
def test_convolution(case, kind, rng, device):
    """Sums over more channels than floats add up exactly, with the largest levels among them."""
    shape, filters, groups, padding, stride = {
        "long": ((2, 90, 9, 7), (5, 90, 3, 3), 1, (1, 1, 1, 1), (1, 1)),
        "depthwise": ((1, 8, 9, 9), (8, 1, 3, 3), 8, (1, 1, 1, 1), (2, 2)),
        "grouped": ((1, 80, 6, 6), (4, 40, 3, 3), 2, (0, 0, 0, 0), (1, 1)),
        "one": ((1, 300, 8, 9), (6, 300, 1, 1), 1, (0, 0, 0, 0), (1, 1)),
        "uneven": ((1, 3, 9, 9), (4, 3, 2, 2), 1, (0, 1, 1, 0), (1, 2)),
        "large kernel": ((1, 2, 18, 18), (2, 2, 17, 17), 1, (0, 0, 0, 0), (1, 1)),
    }[case]
    other = "int8" if kind == "uint8" else "uint8"
    for x, w in [
        (levels(rng, kind, *shape), levels(rng, other, *filters)),
        (extremes(kind, *shape), extremes(other, *filters)),
    ]:
        zeros = np.array(LIMITS[kind][0], kind), levels(rng, other, filters[0])
        scale = rng.uniform(1e-4, 1e-3, filters[0]).astype("float32")
        given = [torch.from_numpy(a) for a in (x, w, *zeros)]
        bias = torch.from_numpy(rng.integers(-1000, 1000, filters[0]).astype("int32"))
        for rest in [(None, None, None), (bias, torch.from_numpy(scale), torch.tensor(3, dtype=torch.int8))]:
            tail = stride, padding, (1, 1), groups
            want = F._quantized_convolution(*given, *rest, *tail)
            moved = [None if t is None else t.to(device) for t in (*given, *rest)]
            assert torch.equal(F._quantized_convolution(*moved, *tail).cpu(), want)
