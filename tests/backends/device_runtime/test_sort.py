"""Sorting, selection, search, distinct elements, counts and histograms of OpenCL devices against those of the CPU, and
with the kernels that a GPU would be given.
"""

import math

import numpy as np
import pytest

import torchlite as torch

from .test_reduce import draw

DTYPES = [
    torch.float32,
    torch.float64,
    torch.float16,
    torch.bfloat16,
    torch.int64,
    torch.int32,
    torch.int16,
    torch.int8,
    torch.uint8,
]
SHAPES = [((1,), 0), ((40,), 0), ((3, 70), 1), ((70, 3), 0), ((4, 300, 2), 1), ((33000,), 0), ((2, 34000), 1)]


def numbers(tensor):
    tensor = tensor.cpu()
    return (tensor.to(torch.float32) if tensor.dtype is torch.bfloat16 else tensor).numpy()


def same(have, want):
    """Equal values, NaN included, and equal dtypes."""
    have, want = ((t,) if not isinstance(t, tuple) else t for t in (have, want))
    for h, w in zip(have, want, strict=True):
        assert h.dtype is w.dtype and h.shape == w.shape
        np.testing.assert_array_equal(numbers(h), numbers(w))


SORTED = [
    (shape, dim, dtype)
    for shape, dim in SHAPES
    for dtype in DTYPES
    if np.prod(shape) <= 5000 or dtype in (torch.float32, torch.int64, torch.int8)
]


@pytest.mark.parametrize("shape,dim,dtype", SORTED)
def test_sort_is_stable(any_form, rng, shape, dim, dtype):
    x = draw(rng, shape, dtype)
    if dtype.is_floating_point and x.numel() > 30:
        x.view(-1)[::9] = math.nan
        x.view(-1)[1::9] = -0.0
        x.view(-1)[2::9] = 0.0
        x.view(-1)[3::9] = -math.inf
    for descending in (False, True):
        same(torch.sort(x.to(any_form), dim, descending, stable=True), torch.sort(x, dim, descending, stable=True))


@pytest.mark.parametrize("shape,dim", SHAPES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.uint8])
def test_selection(any_form, rng, shape, dim, dtype):
    x = draw(rng, shape, dtype)
    on, length = x.to(any_form), shape[dim]
    found = [
        (on.topk(k, dim, largest), x.topk(k, dim, largest))
        for k in {1, min(7, length), min(70, length), length}
        for largest in (True, False)
    ]
    found += [(on.kthvalue(k, dim, True), x.kthvalue(k, dim, True)) for k in {1, (length + 1) // 2, length}]
    found += [
        (on.median(dim, True), x.median(dim, True)),
        (on.mode(dim, True), x.mode(dim, True)),
        (on.nanmedian(dim, True), x.nanmedian(dim, True)),
    ]
    for have, want in found:
        np.testing.assert_array_equal(numbers(have[0]), numbers(want[0]))
        np.testing.assert_array_equal(
            np.take_along_axis(numbers(x), numbers(have[1]), dim), numbers(have[0])
        )  # places are of the values
    assert on.median().item() == x.median().item()


def test_nan_is_greatest(any_form):
    x = torch.tensor([[1.0, math.nan, 3.0, -math.inf] * 20, [2.0, 5.0, 5.0, -1.0] * 20])
    on = x.to(any_form)
    for k in (1, 3, 30):
        for largest in (True, False):
            same(on.topk(k, 1, largest)[0], x.topk(k, 1, largest)[0])
    same(on.median(1)[0], x.median(1)[0])
    assert on.median(1)[1][0].item() == 1  # the first NaN
    same(on.nanmedian(1)[0], x.nanmedian(1)[0])
    same(on.kthvalue(45, 1)[0], x.kthvalue(45, 1)[0])


def test_selection_errors(opencl):
    x = torch.ones(3, device=opencl)
    with pytest.raises(RuntimeError, match="selected index k out of range"):
        x.topk(4)
    with pytest.raises(RuntimeError, match="selected number k out of range"):
        x.kthvalue(4)
    with pytest.raises(IndexError, match="Expected reduction dim 1 to have non-zero size"):
        torch.ones(3, 0, device=opencl).median(1)
    assert x.topk(0)[0].shape == (0,) and torch.ones(3, 0, device=opencl).sort(1)[1].shape == (3, 0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int64, torch.int8])
def test_search(opencl, rng, dtype):
    keys, rows, values = (
        torch.sort(draw(rng, (20,), dtype))[0],
        torch.sort(draw(rng, (6, 20), dtype))[0],
        draw(rng, (6, 7), dtype),
    )
    order = torch.from_numpy(rng.permutation(20))
    shuffled = torch.empty_like(keys)
    shuffled[order] = keys
    for right in (False, True):
        for k in (keys, rows):
            same(
                torch.searchsorted(k.to(opencl), values.to(opencl), right=right),
                torch.searchsorted(k, values, right=right),
            )
        same(
            torch.searchsorted(shuffled.to(opencl), values.to(opencl), right=right, sorter=order.to(opencl)),
            torch.searchsorted(keys, values, right=right),
        )
        same(
            torch.searchsorted(keys.to(opencl), 1, right=right, out_int32=True),
            torch.searchsorted(keys, 1, right=right, out_int32=True),
        )
    for test in (keys, keys[:0]):
        same(torch.isin(values.to(opencl), test.to(opencl)), torch.isin(values, test))
        same(torch.isin(values.to(opencl), test.to(opencl), invert=True), torch.isin(values, test, invert=True))
    same(torch.isin(values.to(opencl), 2), torch.isin(values, 2))


@pytest.mark.parametrize("shape", [(), (1,), (20,), (6, 7), (3, 4, 5), (0, 3), (200, 300)])
def test_distinct(any_form, rng, shape):
    for dtype in (torch.int64, torch.float32, torch.bool, torch.int8):
        x = draw(rng, shape, dtype)
        x = x.round() if dtype is torch.float32 else x
        for name in ("unique", "unique_consecutive"):
            for dim in (None, *range(x.ndim)):
                if x.numel() or dim is None:
                    have, want = (
                        getattr(torch, name)(t, return_inverse=True, return_counts=True, dim=dim)
                        for t in (x.to(any_form), x)
                    )
                    same(have, want)


def test_each_nan_is_distinct(opencl):
    x = torch.tensor([math.nan, 1.0, math.nan, 1.0])
    same(torch.unique(x.to(opencl), return_counts=True), torch.unique(x, return_counts=True))


@pytest.mark.parametrize("shape", [(), (1,), (20,), (6, 7), (3, 4, 5), (0, 3), (300, 200)])
def test_places_and_masks(any_form, rng, shape):
    for dtype in (torch.bool, torch.float32, torch.int8, torch.complex64):
        x = draw(rng, shape, dtype)
        if dtype is torch.float32 and x.ndim:
            x = torch.relu(x)
        on, mask = x.to(any_form), torch.from_numpy(np.asarray(rng.random(shape) > 0.5))
        same(on.nonzero(), x.nonzero())
        same(torch.nonzero_static(on, size=9, fill_value=-3), torch.nonzero_static(x, size=9, fill_value=-3))
        same(on.masked_select(mask.to(any_form)), x.masked_select(mask))
        if x.ndim == 2 and x.numel():
            same(on.t().nonzero(), x.t().nonzero())
            same(on[0].masked_select(mask.to(any_form)), x[0].masked_select(mask))
            same(on.masked_select(mask[0].to(any_form)), x.masked_select(mask[0]))


def test_counts(any_form, rng):
    for count in (0, 10, 50000):
        x, weights = torch.from_numpy(rng.integers(0, 50, count)), torch.from_numpy(rng.random(count))
        on = x.to(any_form)
        same(torch.bincount(on), torch.bincount(x))
        same(torch.bincount(on.to(torch.uint8), minlength=80), torch.bincount(x.to(torch.uint8), minlength=80))
        have, want = torch.bincount(on, weights.to(any_form)), torch.bincount(x, weights)
        assert have.dtype is want.dtype
        np.testing.assert_allclose(have.cpu().numpy(), want.numpy(), rtol=1e-10)
    with pytest.raises(RuntimeError, match="1-d non-negative integral inputs"):
        torch.bincount(torch.tensor([1, -1], device=any_form))


def test_histograms(any_form, rng):
    x = torch.from_numpy(rng.standard_normal((30000, 2)))
    on = x.to(any_form)
    same(on.histc(10, -3, 3), x.histc(10, -3, 3))
    same(on.histc(7), x.histc(7))
    same(torch.histogram(on.view(-1), 10)[0], torch.histogram(x.view(-1), 10)[0])
    same(torch.histogramdd(on, [4, 5])[0], torch.histogramdd(x, [4, 5])[0])
    with pytest.raises(RuntimeError, match="range of .* is not finite"):
        torch.histc(torch.tensor([1.0, math.inf], device=any_form))
