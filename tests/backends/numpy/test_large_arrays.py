"""Kernels that the NumPy backend has for large arrays give what the shared ones give: the same bits where nothing is
added up.
"""

import numpy as np
import pytest

import torchlite as torch
from torchlite._settings import thread_count
from torchlite_backends.array import gather_scatter, sort
from torchlite_backends.numpy import (
    activation,
    gather,
    key_sort,
    normalisation,
    prefix_sum,
    softmax,
    threaded_copy,
    threaded_sums,
)

SPECIAL = [np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, -1e-40]


@pytest.fixture(autouse=True)
def two_threads(monkeypatch):
    monkeypatch.setattr(thread_count, "_count", 2)


def numbers(rng, shape, dtype, ties=False, special=False):
    x = rng.standard_normal(shape) * (3 if ties else 1000)
    if dtype in "BH":
        x = np.abs(x)
    x = (np.round(x) if ties else x).astype(dtype)
    if special and dtype in "ef":
        places = rng.integers(0, x.size, x.size // 10)
        x.reshape(-1)[places] = np.array(SPECIAL, dtype)[rng.integers(0, len(SPECIAL), places.size)]
    return x


def bits(x):
    return np.ascontiguousarray(x).view(f"u{x.itemsize}")


@pytest.mark.parametrize("dtype", ["u1", "i2", "f4", "i4", "f8", "i8", "c8", "c16"])
@pytest.mark.parametrize(
    ("shape", "order"),
    [
        ((300, 1000), (1, 0)),
        ((1000, 300), (1, 0)),
        ((3, 70000), (1, 0)),
        ((70000, 3), (1, 0)),
        ((4, 3, 100, 90), (0, 2, 3, 1)),
        ((4, 40, 50, 70), (0, 3, 1, 2)),
        ((40, 50, 70), (2, 1, 0)),
        ((40, 50, 70), (1, 0, 2)),
        ((7, 1, 90, 1, 110), (4, 1, 2, 3, 0)),
    ],
)
def test_copies_in_row_major_order_are_exact(rng, shape, order, dtype):
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    x = rng.integers(0, 256, size, np.uint8).view(dtype).reshape(shape).transpose(order)
    copied = threaded_copy.copy_row_major(x)
    assert copied.flags.c_contiguous and not np.shares_memory(copied, x)
    assert copied.tobytes() == x.tobytes()


def test_signalling_nans_are_preserved(rng):
    x = rng.integers(0x7F800001, 0x7FC00000, (300, 300), np.uint32).view(np.float32)
    assert threaded_copy.copy_row_major(x.T).tobytes() == x.T.tobytes()


@pytest.mark.parametrize("step", [2, -1, -3])
def test_copies_of_arrays_with_gaps_or_backwards(rng, step):
    x = rng.standard_normal((400, 900)).astype(np.float32)[::step, ::step].T
    assert threaded_copy.copy_row_major(x).tobytes() == x.tobytes()


@pytest.mark.parametrize("special", [False, True])
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("dtype", list("bhiBHef"))
@pytest.mark.parametrize(
    ("shape", "dim"), [((256, 64), 1), ((8, 2000), 1), ((2000, 8), 0), ((4, 500, 6), 1), ((20000,), 0)]
)
def test_sort_and_topk_by_keys(rng, shape, dim, dtype, ties, special):
    x = numbers(rng, shape, dtype, ties, special)
    same = {"equal_nan": dtype in "ef"}
    for descending in (False, True):
        values, places = key_sort.sort(x, dim, descending, True)
        # A stable order downwards is one upwards of the mirrored numbers, NaN first.
        ranks = np.unique(x + x.dtype.type(0), return_inverse=True)[1].reshape(shape)
        ranks = np.where(np.isnan(x), x.size, ranks) if dtype in "ef" else ranks
        wanted = np.argsort(-ranks if descending else ranks, dim, kind="stable")
        assert np.array_equal(places, wanted)
        assert np.array_equal(bits(values), bits(np.take_along_axis(x, wanted, dim)))
        for k in (1, 7):
            values, places = key_sort.topk(x, k, dim, descending)
            assert np.array_equal(values, sort.topk(x, k, dim, descending)[0], **same)
            assert np.array_equal(bits(values), bits(np.take_along_axis(x, places, dim)))
            ordered = np.sort(places, dim)
            assert (np.diff(ordered, axis=dim) > 0).all()


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("shape", [(64, 512), (5, 10001), (40000,), (8, 32, 100)])
def test_running_sums(rng, shape, dtype):
    x = rng.standard_normal(shape).astype(dtype)
    exact = np.cumsum(x.astype(np.longdouble), -1)
    found, plain = prefix_sum.cumsum(x, -1), np.cumsum(x, -1)
    assert found.dtype == x.dtype
    assert np.abs(found - exact).max() <= max(np.abs(plain - exact).max(), np.finfo(dtype).eps * 64)


@pytest.mark.filterwarnings("ignore:invalid value")
def test_running_sums_beyond_infinity(rng):
    x = rng.standard_normal((200, 300)).astype(np.float32)
    x[3, 7], x[4, 100], x[5, [2, 9]] = np.inf, np.nan, (np.inf, -np.inf)
    np.testing.assert_allclose(prefix_sum.cumsum(x, 1), np.cumsum(x, 1), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("shape", [(300, 400), (400000,), (3, 90000), (90000, 3), (8, 64, 300), (2, 50000, 2)])
@pytest.mark.parametrize("axes", [None, 0, -1, (0, 1), (0, 2), (1, 2), (0, 1, 2)])
def test_sums(rng, shape, axes):
    if axes.__class__ is tuple and len(shape) <= max(axes):
        axes = (0,)
    x = rng.standard_normal(shape).astype(np.float32)
    for keepdim in (False, True):
        exact = np.add.reduce(x.astype(np.float64), axes, keepdims=keepdim)
        found, plain = threaded_sums.sum_threaded(x, axes, keepdim), np.add.reduce(x, axes, keepdims=keepdim)
        assert found.shape == exact.shape and found.dtype == np.float32
        assert np.abs(found - exact).max() <= max(8 * np.abs(plain - exact).max(), 1e-3)


@pytest.mark.parametrize("shape", [(300, 400), (400000,), (90000, 3), (8, 64, 300)])
def test_sums_are_the_same_for_any_number_of_threads(rng, shape, monkeypatch):
    x = rng.standard_normal(shape).astype(np.float32)
    found = []
    for count in (1, 2, 5):
        monkeypatch.setattr(thread_count, "_count", count)
        found.append(
            [threaded_sums.sum_threaded(x, axes).tobytes() for axes in (None, 0, -1)]
            + [prefix_sum.cumsum(x, -1).tobytes()]
        )
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("dtype", ["f4", "f8", "i8", "u1"])
def test_gather_and_rows(rng, dtype):
    x = numbers(rng, (7, 90, 200), dtype.replace("u1", "B")).astype(dtype)
    index = rng.integers(0, 200, (7, 90, 30))
    assert np.array_equal(gather.gather(x, -1, index), gather_scatter.gather(x, 2, index))
    table = x.reshape(-1, 200)
    index = rng.integers(0, len(table), (30, 40))
    assert np.array_equal(gather.take_rows(table, index), table[index])


@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", "i8", "?", "c8"])
@pytest.mark.parametrize("shape", [(300, 50), (7, 300, 9), (300,), (5, 4, 300), (300, 0), (1, 300, 40)])
def test_index_select(rng, shape, dtype, monkeypatch):
    dim = shape.index(300)
    x = rng.integers(0, 90, shape).astype(dtype)
    index = rng.integers(0, 300, 5000)
    monkeypatch.setattr(gather, "_shared_index_select", None)  # shows that the own way was taken
    if x.size:
        for d in (dim, dim - x.ndim):
            assert np.array_equal(gather.index_select(x, d, index), x.take(index, dim))
    monkeypatch.undo()
    for given, which in ((x.swapaxes(0, -1), x.ndim - 1 - dim), (x, dim)):
        for indices in (index, index[::2], index.astype("i4"), index[:0], index[0]):
            found = gather.index_select(given, which, indices)
            assert found.dtype == x.dtype and np.array_equal(found, given.take(indices.reshape(-1), which))


@pytest.mark.parametrize("wrong", [-1, 300])
def test_index_select_raises_for_indices_out_of_bounds(rng, wrong):
    index = rng.integers(0, 300, 5000)
    index[77] = wrong
    with pytest.raises(IndexError, match="index out of range in self"):
        gather.index_select(np.zeros((300, 50)), 0, index)


@pytest.mark.parametrize("dtype", ["f4", "f2", "?", "c8"])
@pytest.mark.parametrize("shape", [(30, 5), (30,), (30, 0), (30, 2, 3)])
def test_rows_by_places(rng, shape, dtype, monkeypatch):
    x = rng.integers(0, 90, shape).astype(dtype)
    index = rng.integers(-30, 30, (4, 7))
    monkeypatch.setattr(gather, "_shared_index", None)  # shows that the own way was taken
    for places in (index, index[:, ::2], index[:0]):
        found = gather._index(x, (places,))
        assert found.dtype == x.dtype and np.array_equal(found, x[places]) and found.flags.c_contiguous
    monkeypatch.undo()
    for given, places in ((x.T, index % len(x.T) if len(x.T) else index[:0]), (x, np.array(3)), (x, x.astype(bool))):
        assert np.array_equal(gather._index(given, (places,)), given[places])
    with pytest.raises(IndexError, match="index -31 is out of bounds for dimension 0 with size 30"):
        gather._index(x, (np.array([0, -31]),))


@pytest.mark.parametrize("size", [1, 2, 65536, 65537, 1 << 20, 1 << 33])
def test_order_of(rng, size):
    numbers = rng.integers(0, size, 3000)
    assert np.array_equal(gather.argsort_small_integers(numbers, size), numbers.argsort(kind="stable"))


@pytest.mark.parametrize("wrong", [-1, 200, -(1 << 63)])
def test_gather_raises_for_indices_out_of_bounds(rng, wrong):
    index = rng.integers(0, 200, (90, 300))
    index[40, 7] = wrong
    with pytest.raises(RuntimeError, match="out of bounds"):
        gather.gather(np.zeros((90, 200)), 1, index)


def plain_layer_norm(x, weight, bias, eps):
    x = x.astype("f8")
    mean, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    out = (x - mean) / np.sqrt(var + eps) * (1 if weight is None else weight) + (0 if bias is None else bias)
    return out, mean, 1 / np.sqrt(var + eps)


@pytest.mark.parametrize(("shape", "weighted"), [((700, 256), 2), ((700, 256), 1), ((300, 1000), 2), ((300, 1000), 0)])
@pytest.mark.parametrize(("offset", "scale"), [(0, 1), (1.7, 1), (40, 1), (-1e4, 1), (0, 1e-3)])
@pytest.mark.parametrize("blas", [True, False])
def test_layer_norm_of_rows_near_and_far_from_zero(rng, shape, weighted, offset, scale, blas, monkeypatch):
    if not blas:
        monkeypatch.setattr(normalisation, "get_gemm_function", lambda dtype: None)
    x = (rng.standard_normal(shape) * scale + offset).astype("f4")
    x[5] += 1000 * scale  # one row is far from zero in any case
    weight, bias = ((rng.standard_normal(shape[1]).astype("f4") if k < weighted else None) for k in range(2))
    out, mean, rstd = normalisation._layer_norm(x, weight, bias, 1, 1e-5)
    expected = plain_layer_norm(x, weight, bias, 1e-5)
    rough = 2e-7 * np.abs(x).max() / scale + 2e-6
    for got, want in zip((out, mean, rstd), expected, strict=True):
        assert got.dtype == np.float32
        np.testing.assert_allclose(got, want, rtol=rough, atol=rough * np.abs(want).max())
    g = rng.standard_normal(shape).astype("f4")
    grads = normalisation._layer_norm_backward(g, x, weight, mean, rstd, 1, 1e-5, (True, True, True))
    x, g, (_, mean, rstd) = x.astype("f8"), g.astype("f8"), expected
    normal, scaled = (x - mean) * rstd, g * (1 if weight is None else weight)
    inner = scaled - scaled.mean(-1, keepdims=True) - normal * (scaled * normal).mean(-1, keepdims=True)
    for got, want in zip(grads, (rstd * inner, (g * normal).sum(0), g.sum(0)), strict=True):
        np.testing.assert_allclose(got, want, rtol=0, atol=(rough + 1e-6) * np.abs(want).max() * 4)


def test_layer_norm_of_nan_and_large_values(rng):
    x = rng.standard_normal((300, 256)).astype("f4")
    x[3, 4], x[7, 8], x[9] = np.nan, np.inf, 3e19
    x[11] = 5.0
    out = normalisation._layer_norm(x, None, None, 1, 1e-5)[0]
    assert np.isnan(out[[3, 7]]).all() and np.isfinite(np.delete(out, [3, 7], 0)).all()
    np.testing.assert_allclose(out[[9, 11]], 0, atol=1e-6)
    np.testing.assert_allclose(out[20], plain_layer_norm(x[20], None, None, 1e-5)[0], rtol=1e-5, atol=1e-6)


def test_the_gradient_of_one_normalised_number_is_nothing(rng):
    x, g = rng.standard_normal((2, 100, 1)).astype("f4")
    weight = np.array([1.7], "f4")
    _, mean, rstd = normalisation._layer_norm(x, weight, weight, 1, 1e-5)
    assert not normalisation._layer_norm_backward(g, x, weight, mean, rstd, 1, 1e-5, (True, False, False))[0].any()


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("shape", [(700, 256), (300, 1000)])
def test_rms_norm(rng, shape, weighted):
    x, g = rng.standard_normal((2, *shape)).astype("f4")
    weight = rng.standard_normal(shape[1]).astype("f4") if weighted else None
    out, rstd = normalisation._rms_norm(x, weight, 1, 1e-6)
    grads = normalisation._rms_norm_backward(g, x, weight, rstd, 1, 1e-6, (True, True))
    x, g, by = x.astype("f8"), g.astype("f8"), 1 if weight is None else weight
    rstd = 1 / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6)
    np.testing.assert_allclose(out, x * rstd * by, rtol=2e-6, atol=1e-6)
    inner = g * by - x * rstd**2 * (g * by * x).mean(-1, keepdims=True)
    np.testing.assert_allclose(grads[0], rstd * inner, rtol=0, atol=5e-6)
    np.testing.assert_allclose(grads[1], (g * x * rstd).sum(0), rtol=0, atol=1e-4)


def test_gelu_far_from_zero():
    x = np.array([-np.inf, -3e38, -1e4, -60, -7, -5.9, 5.9, 7, 60, 1e4, 3e38, np.inf] * 10000, "f4")
    out = activation.gelu(x)
    assert np.isnan(out[0]) and (out[1:5] <= 0).all() and (out[1:5] > -1e-10).all()
    np.testing.assert_allclose(out[6:12], x[6:12], rtol=1e-7)


@pytest.mark.parametrize("count", [1, 3])
def test_the_numbers_are_those_of_one_thread(rng, count, monkeypatch):
    x = rng.standard_normal((2000, 256)).astype("f4")
    x[:900] *= 100  # these softmaxes shift their rows first, the others do not
    g, weight = rng.standard_normal(x.shape).astype("f4"), rng.standard_normal(256).astype("f4")

    def results():
        out, mean, rstd = normalisation._layer_norm(x, weight, weight, 1, 1e-5)
        grads = normalisation._layer_norm_backward(g, x, weight, mean, rstd, 1, 1e-5, (True, True, True))
        return [
            out,
            *grads,
            softmax._softmax(x, 1),
            softmax._softmax_backward(g, out, 1),
            threaded_sums.sum_threaded(x, 0),
        ]

    two = results()
    monkeypatch.setattr(thread_count, "_count", count)
    for first, second in zip(two, results(), strict=True):
        np.testing.assert_array_equal(first, second)


def test_in_place_ops_without_a_kernel_copy_their_results():
    """Ops in place without a kernel that writes: their results are copied over threads."""
    x, y = (torch.randn(1 << 20) for _ in "xy")
    expected = x.numpy() + np.float32(0.5) * y.numpy()
    kept = x
    x.add_(y, alpha=0.5)
    np.testing.assert_allclose(kept.numpy(), expected, rtol=1e-6, atol=1e-6)
    whole = torch.zeros(1 << 20, dtype=torch.int64)
    whole.addcmul_(whole + 2, whole + 3)
    assert (whole.numpy() == 6).all()
    part = torch.zeros(2, 1 << 20)[:, ::2]
    part.copy_(torch.add(part, torch.ones(1 << 19), alpha=3))
    assert (part.numpy() == 3).all()
