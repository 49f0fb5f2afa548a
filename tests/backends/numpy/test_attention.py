"""NumPy's attention in tiles against the composite: shapes on both sides of its rules, masks, layouts, odd numbers."""

import ml_dtypes
import numpy as np
import pytest

import torchlite as torch
import torchlite.nn.functional as F
from torchlite._dispatch import REGISTRY, table_of
from torchlite._settings import thread_count
from torchlite_backends.numpy import attention

CPU = table_of(torch.device("cpu"))


def arrays(*shapes, dtype="float64", seed=0):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(shape).astype(dtype) for shape in shapes]


def both(query, key, value, mask=None, causal=False, limit=1e-10):
    """The kernel's results and gradients against the composite's; returns the kernel's."""
    scale = query.shape[-1] ** -0.5
    out, lse = CPU._sdpa(query, key, value, mask, causal, scale)
    plain, sums = REGISTRY["_sdpa"].composite(CPU, query, key, value, mask, causal, scale)
    (grad,) = arrays(plain.shape, dtype=query.dtype, seed=1)
    mine = CPU._sdpa_backward(grad, query, key, value, mask, out, lse, causal, scale, (True, True, True))
    want = REGISTRY["_sdpa_backward"].composite(
        CPU, grad, query, key, value, mask, plain, sums, causal, scale, (True, True, True)
    )
    for found, right in zip((out, lse, *mine), (plain, sums, *want), strict=True):
        assert found.dtype == right.dtype
        np.testing.assert_allclose(found, np.broadcast_to(right, found.shape), rtol=limit, atol=limit)
    return out, lse, *mine


# (batch, heads, queries, keys, features, features of values)
SHAPES = [
    (1, 1, 1, 1, 1, 1),
    (2, 3, 5, 7, 4, 6),
    (2, 4, 64, 64, 32, 32),
    (3, 5, 130, 130, 16, 16),
    (1, 3, 197, 197, 64, 64),
    (2, 2, 300, 260, 24, 40),
    (1, 2, 70, 520, 48, 8),
    (1, 1, 1100, 1030, 8, 8),
    (7, 1, 129, 257, 33, 1),
    (1, 12, 1, 300, 64, 64),
]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_shapes(shape, causal):
    batch, heads, rows, columns, width, last = shape
    lead = batch, heads
    both(*arrays((*lead, rows, width), (*lead, columns, width), (*lead, columns, last)), causal=causal)


@pytest.mark.parametrize("kind", ["bool", "float", "by head", "by row", "hidden rows"])
@pytest.mark.parametrize("length", [9, 200])
def test_masks(kind, length):
    q, k, v = arrays((2, 3, length, 32), (2, 3, length + 60, 32), (2, 3, length + 60, 16))
    rng = np.random.default_rng(2)
    shape = {"by head": (3, length, length + 60), "by row": (2, 1, 1, length + 60)}.get(kind, (length, length + 60))
    mask = rng.standard_normal(shape) if kind == "float" else rng.random(shape) > 0.4
    if kind == "hidden rows":
        mask[::2] = False
    found = both(q, k, v, mask)
    if kind == "hidden rows":
        assert not found[0][..., ::2, :].any() and not found[1][..., ::2, :].any()


@pytest.mark.parametrize("lead", [(), (4,), (2, 1, 3)])
def test_other_dimensions(lead):
    both(*arrays((*lead, 90, 16), (*lead, 100, 16), (*lead, 100, 16)), causal=True)


@pytest.mark.parametrize("length", [3, 150])
def test_operands_are_broadcast(length):
    q, k, v = arrays((2, 1, length, 16), (4, length, 16), (2, 4, length, 16))
    found = CPU._sdpa(q, k, v, None, False, 0.25)[0]
    whole = [np.ascontiguousarray(np.broadcast_to(a, (2, 4, length, 16))) for a in (q, k, v)]
    np.testing.assert_allclose(found, both(*whole)[0], rtol=1e-12)


@pytest.mark.parametrize("batch", [1, 3])
def test_heads_from_a_linear_layer(batch):
    (packed,) = arrays((batch, 140, 3, 4, 32))
    parts = [packed[:, :, k].swapaxes(1, 2) for k in range(3)]
    found = both(*parts, causal=True)
    want = both(*map(np.ascontiguousarray, parts), causal=True)
    for mine, right in zip(found, want, strict=True):
        np.testing.assert_allclose(mine, right, rtol=1e-12, atol=1e-13)
    for array in (found[0], *found[2:]):  # what joins the heads again is a view
        assert array.swapaxes(1, 2).flags.c_contiguous


@pytest.mark.parametrize("offset", [-200.0, 30.0, 200.0])
@pytest.mark.parametrize("length", [10, 130])
def test_scores_far_from_zero(offset, length):
    q, k, v = arrays((1, 8, length, 32), (1, 8, length, 32), (1, 8, length, 32), dtype="float32")
    both(q, k, v, np.full((length, length), offset, "float32"), limit=2e-4)
    q[:, 3, length // 2] *= 300  # one row of one head alone
    both(q, k, v, causal=True, limit=2e-2)


def test_numbers_that_are_none():
    q, k, v = arrays((1, 2, 100, 16), (1, 2, 100, 16), (1, 2, 100, 16), dtype="float32")
    q[0, 0, 3, 0], v[0, 1, 99, 2] = np.nan, np.inf
    out, lse = CPU._sdpa(q, k, v, None, True, 0.25)
    assert np.isnan(out[0, 0, 3]).all() and np.isfinite(out[0, 0, 4]).all() and np.isnan(lse[0, 0, 3, 0])
    assert out[0, 1, 99, 2] == np.inf and np.isfinite(out[0, 1, 99, :2]).all()
    grads = CPU._sdpa_backward(np.ones_like(out), q, k, v, None, out, lse, True, 0.25, (True, True, True))
    assert np.isnan(grads[0][0, 0, 3]).all() and np.isfinite(grads[0][0, 0, 4]).all()


@pytest.mark.parametrize(
    "needs", [(True, False, False), (False, True, False), (False, False, True), (True, False, True)]
)
def test_only_needed_gradients_are_computed(needs):
    q, k, v, g = arrays(*[(2, 2, 150, 32)] * 4)
    out, lse = CPU._sdpa(q, k, v, None, True, 0.2)
    every = CPU._sdpa_backward(g, q, k, v, None, out, lse, True, 0.2, (True, True, True))
    found = CPU._sdpa_backward(g, q, k, v, None, out, lse, True, 0.2, needs)
    for mine, right, need in zip(found, every, needs, strict=True):
        assert (mine is None) != need and (mine is None or np.array_equal(mine, right))


@pytest.mark.parametrize("shape", [(1, 3, 197, 64), (2, 8, 128, 64), (1, 1, 600, 16)])
@pytest.mark.parametrize("causal", [False, True])
def test_the_same_for_any_number_of_threads(shape, causal):
    before, found = torch.get_num_threads(), []
    q, k, v, g = arrays(*[shape] * 4, dtype="float32")
    try:
        for count in (1, 2, 5):
            torch.set_num_threads(count)
            out, lse = CPU._sdpa(q, k, v, None, causal, 0.1)
            grads = CPU._sdpa_backward(g, q, k, v, None, out, lse, causal, 0.1, (True, True, True))
            found.append([a.tobytes() for a in (out, lse, *grads)])
    finally:
        torch.set_num_threads(before)
    assert found[0] == found[1] == found[2]


def test_tiles_cover_everything_once():
    for groups, heads, rows, columns in ((1, 1, 1, 1), (3, 5, 130, 130), (9, 2, 64, 64), (1, 12, 4096, 4096)):
        for causal in (False, True):
            tiles, chunks = attention._choose_tiles(groups, heads, rows, columns, causal)
            seen = np.zeros((groups, heads), int)
            for tile in tiles:
                seen[tile] += 1
            assert (seen == 1).all()
            assert [r for chunk in chunks for r in range(rows)[chunk]] == list(range(rows))
            largest = max(np.zeros((groups, heads), "u1")[tile].size for tile in tiles)
            assert largest * max(len(range(rows)[c]) for c in chunks) * columns <= max(1 << 17, 16 * columns)


def test_memory_does_not_grow_with_the_square(monkeypatch):
    import tracemalloc

    monkeypatch.setattr(
        thread_count, "_count", 1
    )  # of others' scratch memory some is new whenever they first come to work
    peaks = []
    for length in (1000, 4000):
        x = torch.zeros(1, 1, length, 16, requires_grad=True)
        F.scaled_dot_product_attention(x, x, x).sum().backward()  # scratch memory is kept
        tracemalloc.start()
        F.scaled_dot_product_attention(x, x, x).sum().backward()
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 6 * peaks[0]


@pytest.mark.parametrize(
    "shape", [(1, 4, 1, 80, 16, 16), (2, 3, 5, 7, 4, 6), (1, 2, 31, 200, 64, 8), (1, 1, 1, 700, 64, 64)]
)
@pytest.mark.parametrize("from_layer", [False, True])
@pytest.mark.parametrize("size", [1, 60])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_few_queries_have_the_bits_and_strides_of_a_tile(monkeypatch, shape, from_layer, size, dtype):
    groups, heads, rows, columns, width, last = shape
    shapes = [(groups, heads, rows, width), (groups, heads, columns, width), (groups, heads, columns, last)]
    query, key, value = arrays(*shapes, dtype=dtype)
    query *= size
    if from_layer:
        query, key, value = (x.swapaxes(1, 2).copy().swapaxes(1, 2) for x in (query, key, value))
    found = CPU._sdpa(query, key, value, None, False, width**-0.5)
    monkeypatch.setattr(attention, "_attend_few_rows", lambda *args: None)
    want = CPU._sdpa(query, key, value, None, False, width**-0.5)
    for one, other in zip(found, want, strict=True):
        assert one.tobytes() == other.tobytes() and (one.shape, one.strides) == (other.shape, other.strides)


@pytest.mark.parametrize("shape", [(80,), (3, 80), (2, 1, 1, 80), (2, 4, 3, 80), (4, 1, 1)])
@pytest.mark.parametrize("kind", ["float", "bool", "none seen"])
def test_few_masked_queries_have_the_bits_of_a_tile(monkeypatch, shape, kind):
    query, key, value, mask = arrays((2, 4, 3, 16), (2, 4, 80, 16), (2, 4, 80, 16), shape)
    if kind != "float":
        mask = mask > (0 if kind == "bool" else np.inf)
    found = CPU._sdpa(query, key, value, mask, False, 0.25)
    monkeypatch.setattr(attention, "_attend_few_rows", lambda *args: None)
    want = CPU._sdpa(query, key, value, mask, False, 0.25)
    for one, other in zip(found, want, strict=True):
        assert one.tobytes() == other.tobytes()


def attend_as_pytorch(q, k, v, mask, half):
    """The result in float64 whose weights are rounded as PyTorch's kernel of the CPU rounds them, by 512 keys."""
    scores = q.astype("f8") @ k.astype("f8").swapaxes(-1, -2) * q.shape[-1] ** -0.5
    scores = scores if mask is None else np.where(mask, scores, -np.inf)
    largest, sums, out = np.full((*scores.shape[:-1], 1), -np.inf), 0.0, 0.0
    for start in range(0, scores.shape[-1], 512):
        run = slice(start, start + 512)
        now = np.maximum(largest, scores[..., run].max(-1, keepdims=True))
        shift = np.where(now == -np.inf, 0, now)
        weights, factor = np.exp(scores[..., run] - shift), np.exp(largest - shift)
        sums = sums * factor + weights.sum(-1, keepdims=True)
        out = out * factor + weights.astype("f4").astype(half).astype("f8") @ v[..., run, :].astype("f8")
        largest = now
    return out / np.where(sums == 0, 1, sums), np.log(np.where(sums == 0, 1, sums)) + np.where(sums == 0, 0, largest)


@pytest.mark.parametrize("half", [ml_dtypes.bfloat16, np.float16])
@pytest.mark.parametrize("kind", ["few rows", "plain", "causal", "mask", "many keys", "large scores"])
def test_weights_of_half_precision_are_rounded(kind, half):
    rows, keys = {"few rows": (3, 300), "many keys": (70, 1100)}.get(kind, (150, 200))
    q, k, v = (x.astype(half) for x in arrays((2, 3, rows, 32), (2, 3, keys, 32), (2, 3, keys, 32), dtype="float32"))
    if kind == "large scores":
        q, v = (q.astype("f4") * 40).astype(half), v
    mask = None
    if kind == "mask":
        mask = np.random.default_rng(3).random((rows, keys)) > 0.3
        mask[::7] = False
    seen = np.tri(rows, keys, dtype=bool) if kind == "causal" else mask
    out, lse = CPU._sdpa(q, k, v, mask, kind == "causal", 32**-0.5)
    want, sums = attend_as_pytorch(q, k, v, seen, half)
    assert out.dtype == half and lse.dtype == np.float32
    np.testing.assert_allclose(lse, sums, rtol=1e-5, atol=1e-5)
    # Only numbers close to a tie may be rounded otherwise. Two of five differ where weights are not rounded.
    expected = want.astype("f4").astype(half)
    assert (out != expected).mean() < 0.03
    np.testing.assert_allclose(out.astype("f4"), expected.astype("f4"), rtol=2.0**-7, atol=2.0**-12)


@pytest.mark.parametrize("lead", [(3,), (2, 1, 3)])
def test_weights_of_other_operands_stay_float32(lead):
    """PyTorch computes them in float32, and rounds once."""
    q, k, v = (x.astype("float16") for x in arrays((*lead, 50, 16), (*lead, 60, 16), (*lead, 60, 16), dtype="float32"))
    out = CPU._sdpa(q, k, v, None, False, 0.25)[0]
    wide = CPU._sdpa(*(x.astype("float32") for x in (q, k, v)), None, False, 0.25)[0]
    assert np.array_equal(out, wide.astype("float16"))


def test_half_precision_with_numbers_that_are_none():
    q, k, v = (x.astype(ml_dtypes.bfloat16) for x in arrays(*[(1, 2, 40, 16)] * 3, dtype="float32"))
    q[0, 0, 3, 0], v[0, 1, 39, 2] = np.nan, np.inf
    out, lse = CPU._sdpa(q, k, v, None, True, 0.25)
    out = out.astype("f4")
    assert np.isnan(out[0, 0, 3]).all() and np.isfinite(out[0, 0, 4]).all() and np.isnan(lse[0, 0, 3, 0])
    assert out[0, 1, 39, 2] == np.inf and np.isfinite(out[0, 1, 39, :2]).all()
