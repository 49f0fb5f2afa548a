"""Pooling, sliding blocks and resampling on OpenCL devices against the CPU: sizes beside and beyond the vectors of the
kernels, odd values, gradients.
"""

import itertools

import pytest

import torchlite as torch

F = torch.nn.functional


def compare(function, x, where, tolerance=1e-5):
    """Results and gradients agree."""
    mine, reference = (
        x.detach().to(where).requires_grad_(x.dtype.is_floating_point),
        x.detach().clone().requires_grad_(x.dtype.is_floating_point),
    )
    found, expected = function(mine), function(reference)
    several = isinstance(expected, tuple)
    for a, b in zip(found if several else (found,), expected if several else (expected,), strict=True):
        torch.testing.assert_close(a.detach().cpu(), b.detach(), rtol=tolerance, atol=tolerance, equal_nan=True)
    if x.dtype.is_floating_point:
        found, expected = (found[0], expected[0]) if several else (found, expected)
        weights = torch.arange(expected.numel()).reshape(expected.shape).to(x.dtype).cos()
        found.backward(weights.to(where))
        expected.backward(weights)
        torch.testing.assert_close(mine.grad.cpu(), reference.grad, rtol=tolerance, atol=tolerance, equal_nan=True)


def image(rng, *shape, dtype=torch.float32, ties=False):
    values = torch.from_numpy(rng.standard_normal(shape))
    return ((values * 3).round() if ties or not dtype.is_floating_point else values).to(dtype)


WINDOWS = [(2, 2, 0, 1), (3, 2, 1, 1), (3, 1, 1, 1), (3, 1, 0, 2), ((2, 5), (1, 3), (1, 2), 1), (3, 3, 1, 1)]


@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_maximum(any_form, rng, window):
    for shape, ties in itertools.product([(2, 3, 9, 11), (1, 2, 20, 75), (3, 40, 41)], (False, True)):
        x = image(rng, *shape, ties=ties)
        compare(lambda t: F.max_pool2d(t, *window), x, any_form)
        compare(lambda t: F.max_pool2d(t, *window, ceil_mode=True, return_indices=True), x, any_form)


def test_maximum_of_odd_values(any_form, rng):
    x = image(rng, 2, 2, 24, 70)
    x[0, 0, 3, 5:9], x[1, 1, 8, 40], x[0, 1] = torch.nan, torch.inf, -torch.inf
    compare(lambda t: F.max_pool2d(t, 3, 2, 1, return_indices=True), x, any_form)
    compare(lambda t: F.max_pool2d(t, 3, 1, 1), x, any_form)


@pytest.mark.parametrize(
    "dtype", [torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.uint8, torch.int8], ids=str
)
def test_dtypes(opencl, rng, dtype):
    x = image(rng, 2, 3, 21, 40, dtype=dtype)
    tolerance = {torch.float16: 2e-3, torch.bfloat16: 2e-2}.get(dtype, 1e-6)
    compare(lambda t: F.max_pool2d(t, 3, 2, 1), x, opencl, tolerance)
    compare(lambda t: F.max_pool2d(t, 3, 2, 1, return_indices=True), x, opencl, tolerance)
    if dtype.is_floating_point:
        compare(lambda t: F.avg_pool2d(t, 3, 2, 1), x, opencl, tolerance)
        compare(lambda t: F.adaptive_avg_pool2d(t, (1, 1)), x, opencl, tolerance)
        compare(lambda t: F.unfold(t, 3, padding=1), x, opencl, tolerance)
        compare(lambda t: F.interpolate(t, scale_factor=2, mode="bilinear"), x, opencl, tolerance)
    if dtype not in (torch.int64, torch.int8):
        compare(lambda t: F.interpolate(t, scale_factor=2), x, opencl, tolerance)
        return
    for where in ("cpu", opencl):
        with pytest.raises(NotImplementedError, match="upsample_nearest2d_channels_last"):
            F.interpolate(x.to(where), scale_factor=2)


@pytest.mark.parametrize("window", [(2, 2, 0), (3, 2, 1), (3, 1, 1), ((2, 5), (1, 3), (1, 2))], ids=str)
def test_average(any_form, rng, window):
    for shape in [(2, 3, 9, 11), (1, 2, 20, 75), (3, 40, 41)]:
        x = image(rng, *shape)
        compare(lambda t: F.avg_pool2d(t, *window), x, any_form)
        compare(lambda t: F.avg_pool2d(t, *window, ceil_mode=True, count_include_pad=False), x, any_form)
        compare(lambda t: F.avg_pool2d(t, *window, divisor_override=7), x, any_form)


def test_other_dimensions(any_form, rng):
    x, line = image(rng, 2, 3, 7, 12, 37), image(rng, 2, 3, 100)
    compare(lambda t: F.max_pool3d(t, (2, 3, 3), 2, 1, 1, True, True), x, any_form)
    compare(lambda t: F.avg_pool3d(t, (2, 3, 3), (1, 2, 1), 1), x, any_form)
    compare(lambda t: F.max_pool1d(t, 3, 2, 1), line, any_form)
    compare(lambda t: F.avg_pool1d(t, 4, 1, 2), line, any_form)


@pytest.mark.parametrize("size", [1, 3, (5, 1), (7, 64), (30, 70)], ids=str)
def test_adaptive(any_form, rng, size):
    for shape in ((2, 3, 20, 64), (2, 19, 37)):
        x = image(rng, *shape)
        compare(lambda t: F.adaptive_avg_pool2d(t, size), x, any_form)
        compare(lambda t: F.adaptive_max_pool2d(t, size, return_indices=True), x, any_form)
    compare(lambda t: F.adaptive_avg_pool3d(t, (2, 3, 4)), image(rng, 2, 2, 5, 6, 33), any_form)


def test_not_contiguous(opencl, rng):
    x = image(rng, 2, 24, 70, 3)
    for function in (
        lambda t: F.max_pool2d(t, 3, 2, 1),
        lambda t: F.avg_pool2d(t, 2),
        lambda t: F.adaptive_avg_pool2d(t, 3),
        lambda t: F.unfold(t, 2),
        lambda t: F.interpolate(t, size=(40, 30), mode="bilinear"),
    ):
        compare(lambda t, function=function: function(t.permute(0, 3, 1, 2)), x, opencl)
        compare(lambda t, function=function: function(t.permute(0, 3, 1, 2)[:, 1:, 3:, ::2]), x, opencl)


@pytest.mark.parametrize("how", [(3, 1, 1, 1), (3, 1, 1, 2), ((2, 5), 1, (1, 2), (3, 1)), (4, 2, 0, 1)], ids=str)
def test_sliding_blocks(opencl, rng, how):
    x = image(rng, 2, 3, 19, 45)
    compare(lambda t: F.unfold(t, *how), x, opencl)
    blocks = F.unfold(x, *how)
    compare(lambda t: F.fold(t, (19, 45), *how), image(rng, *blocks.shape), opencl, 1e-4)


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear", "bicubic", "area"])
def test_resampling(opencl, rng, mode):
    x = image(rng, 2, 3, 17, 40)
    for size in ((34, 80), (9, 41), (17, 13), (60, 40), (1, 1)):
        compare(lambda t: F.interpolate(t, size=size, mode=mode), x, opencl, 1e-4)
        if mode in ("bilinear", "bicubic"):
            compare(lambda t: F.interpolate(t, size=size, mode=mode, align_corners=True), x, opencl, 1e-4)
            compare(lambda t: F.interpolate(t, size=size, mode=mode, antialias=True), x, opencl, 1e-4)
    compare(lambda t: F.interpolate(t, scale_factor=(1.7, 0.6), mode=mode), x, opencl, 1e-4)


def test_resampling_of_lines_and_volumes(opencl, rng):
    compare(lambda t: F.interpolate(t, size=50, mode="linear"), image(rng, 2, 3, 21), opencl)
    compare(lambda t: F.interpolate(t, scale_factor=2, mode="trilinear"), image(rng, 1, 2, 5, 6, 20), opencl)


def test_interpolated_integers_are_rounded(opencl, rng):
    x = torch.from_numpy(rng.integers(0, 256, (1, 2, 12, 20))).to(torch.uint8)
    for mode in ("bilinear", "bicubic"):
        found = F.interpolate(x.to(opencl), size=(30, 33), mode=mode).cpu().to(torch.int32)
        # As PyTorch's GPUs: from sums of floating point. The CPU's integer sums are rounded after either dimension.
        expected = F.interpolate(x.float(), size=(30, 33), mode=mode).round().clamp(0, 255).to(torch.int32)
        assert int((found - expected).abs().max()) <= 1


def test_nothing_to_pool(opencl):
    for shape in ((0, 3, 8, 8), (2, 0, 8, 8)):
        x = torch.zeros(shape, device=opencl, requires_grad=True)
        out = F.max_pool2d(x, 2) if shape[0] == 0 else F.adaptive_avg_pool2d(x, 2)
        out.sum().backward()
        assert x.grad.shape == x.shape
