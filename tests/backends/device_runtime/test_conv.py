"""Convolutions of OpenCL devices against those of the CPU: chosen sizes for each kernel, random ones for all the rest,
the forms for GPUs.
"""

import numpy as np
import pytest

import torchlite as torch
import torchlite.nn.functional as F

TOLERANCE = {torch.float32: 2e-4, torch.float64: 1e-10, torch.float16: 3e-2, torch.complex64: 3e-4}


def check(
    device,
    rng,
    batch,
    channels,
    filters,
    size,
    kernel,
    *,
    stride=None,
    padding=None,
    dilation=None,
    transposed=False,
    extra=None,
    groups=1,
    dtype=torch.float32,
    biased=True,
):
    """The convolution and its three gradients."""
    count = len(size)
    stride, padding, dilation, extra = (
        stride or (1,) * count,
        padding or (0,) * count,
        dilation or (1,) * count,
        extra or (0,) * count,
    )

    def made(*shape):
        values = rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if dtype.is_complex else 0)
        return torch.tensor(values).to(dtype)

    weight = made(*((channels, filters // groups) if transposed else (filters, channels // groups)), *kernel)
    tensors = [made(batch, channels, *size), weight] + ([made(filters)] if biased else [])
    results, gradient = [], None
    for where in ("cpu", device):
        inputs = [t.detach().to(where).requires_grad_() for t in tensors]
        out = torch.convolution(
            inputs[0], inputs[1], inputs[2] if biased else None, stride, padding, dilation, transposed, extra, groups
        )
        gradient = made(*out.shape) if gradient is None else gradient
        out.backward(gradient.to(where))
        results.append([out.detach()] + [t.grad for t in inputs])
    for want, got in zip(*results, strict=True):
        bound = TOLERANCE[dtype] * max(1.0, float(want.abs().max()) if want.numel() else 1.0)
        torch.testing.assert_close(got.cpu(), want, rtol=TOLERANCE[dtype], atol=bound)


CHOSEN = {
    "3x3": ((2, 16, 40, (12, 12), (3, 3)), {"padding": (1, 1)}),
    "3x3, stride 2": ((3, 8, 20, (15, 12), (3, 3)), {"stride": (2, 2), "padding": (1, 1)}),
    "1x1, many places": ((2, 9, 35, (9, 11), (1, 1)), {}),
    "1x1, few places": ((3, 9, 5, (3, 3), (1, 1)), {}),
    "1x1, stride 2": ((2, 9, 5, (7, 8), (1, 1)), {"stride": (2, 2)}),
    "long sums": ((1, 600, 40, (3, 3), (3, 3)), {"padding": (1, 1)}),
    "many places": ((20, 3, 4, (20, 20), (3, 3)), {"padding": (1, 1)}),
    "groups": ((2, 12, 18, (7, 6), (3, 2)), {"groups": 3, "padding": (1, 0)}),
    "1-d": ((2, 5, 7, (40,), (5,)), {"stride": (3,), "padding": (2,), "dilation": (2,)}),
    "3-d": ((2, 3, 4, (5, 6, 7), (2, 3, 2)), {"stride": (1, 2, 1), "padding": (1, 0, 1)}),
    "transposed": (
        (2, 6, 8, (7, 5), (3, 3)),
        {"transposed": True, "stride": (2, 3), "padding": (1, 1), "extra": (1, 2)},
    ),
    "transposed, groups": ((2, 6, 8, (7, 5), (4, 3)), {"transposed": True, "groups": 2, "dilation": (1, 2)}),
    "stride beyond the kernel": ((2, 3, 4, (11, 10), (2, 1)), {"stride": (3, 4)}),
    "a channel a group": ((2, 6, 6, (9, 37), (3, 3)), {"groups": 6, "padding": (1, 1)}),
    "a channel a group, stride 2": ((2, 6, 12, (9, 37), (3, 3)), {"groups": 6, "stride": (2, 2), "padding": (1, 1)}),
    "a channel a group, stride 3": ((2, 4, 4, (20, 60), (2, 3)), {"groups": 4, "stride": (1, 3), "dilation": (2, 1)}),
    "a channel a group, 3-d": ((1, 4, 4, (4, 5, 6), (2, 3, 3)), {"groups": 4, "padding": (0, 1, 1)}),
    "a channel a group, transposed": (
        (2, 6, 6, (6, 18), (3, 3)),
        {"groups": 6, "transposed": True, "stride": (2, 2), "padding": (1, 1), "extra": (1, 1)},
    ),
    "no batch": ((0, 3, 4, (5, 5), (3, 3)), {}),
}


@pytest.mark.parametrize("name", CHOSEN)
def test_chosen(any_form, rng, name):
    sizes, options = CHOSEN[name]
    check(any_form, rng, *sizes, **options)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.complex64], ids=str)
def test_dtypes(any_form, rng, dtype):
    check(any_form, rng, 2, 6, 9, (8, 7), (3, 3), padding=(1, 1), dtype=dtype)
    check(any_form, rng, 2, 6, 6, (8, 20), (3, 3), groups=6, padding=(1, 1), dtype=dtype)
    check(any_form, rng, 2, 6, 6, (8, 9), (3, 3), stride=(2, 2), dtype=dtype, biased=False)


@pytest.mark.parametrize("number", range(20))
def test_random(any_form, rng, number):
    count = int(rng.integers(1, 4))

    def some(low, high, n=count):
        return tuple(int(v) for v in rng.integers(low, high + 1, n))

    groups, transposed = int(rng.choice([1, 1, 2, 3])), bool(rng.integers(2))
    kernel, dilation = some(1, 4), some(1, 2)
    padding = some(0, 2)
    size = tuple(
        max(s, d * (k - 1) + 1) for s, k, d in zip(some(3, 11 if count < 3 else 6), kernel, dilation, strict=True)
    )
    if transposed:  # what is cut off at the edges must leave something
        padding = tuple(
            min(p, (s - 1 + d * (k - 1)) // 2) for p, s, k, d in zip(padding, size, kernel, dilation, strict=True)
        )
    check(
        any_form,
        rng,
        *some(1, 3, 1),
        groups * some(1, 5, 1)[0],
        groups * some(1, 5, 1)[0],
        size,
        kernel,
        stride=some(1, 3),
        padding=padding,
        dilation=dilation,
        transposed=transposed,
        groups=groups,
        biased=bool(rng.integers(2)),
    )


def test_operands_of_any_layout(any_form, rng):
    x, w = (
        torch.tensor(rng.standard_normal((2, 9, 8, 5)), dtype=torch.float32),
        torch.tensor(rng.standard_normal((3, 3, 5, 4)), dtype=torch.float32),
    )
    want = torch.conv2d(x.permute(0, 3, 1, 2), w.permute(3, 2, 0, 1))
    got = torch.conv2d(x.to(any_form).permute(0, 3, 1, 2), w.to(any_form).permute(3, 2, 0, 1))
    torch.testing.assert_close(got.cpu(), want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("then", ["relu", "relu6"])
@pytest.mark.parametrize("name", [
    "3x3", "1x1", "depthwise", "few filters", "transposed", "transposed 1x1", "transposed depthwise", "split",
])  # fmt: skip
def test_with_an_op_behind_them(any_form, rng, name, then):
    from torchlite_backends.device_runtime.nn.conv import kernel_with_epilogue

    channels, filters, size, kernel, stride, padding, transposed, groups = {
        "3x3": (9, 20, (12, 11), (3, 3), (1, 1), (1, 1), False, 1),
        "1x1": (9, 20, (12, 11), (1, 1), (1, 1), (0, 0), False, 1),
        "depthwise": (6, 6, (9, 40), (3, 3), (1, 1), (1, 1), False, 6),
        "few filters": (6, 12, (9, 40), (3, 3), (2, 2), (1, 1), False, 6),
        "transposed": (6, 4, (5, 7), (4, 4), (2, 3), (1, 0), True, 2),
        "transposed 1x1": (6, 4, (9, 8), (1, 1), (1, 1), (0, 0), True, 1),
        "transposed depthwise": (6, 6, (5, 7), (3, 3), (2, 2), (1, 1), True, 6),
        "split": (1200, 3, (4, 4), (3, 3), (1, 1), (0, 0), False, 1),
    }[name]
    shape = (channels, filters // groups) if transposed else (filters, channels // groups)
    x, w, b = (
        torch.tensor(rng.standard_normal(s) * 4, dtype=torch.float32, device=any_form)
        for s in ((2, channels, *size), (*shape, *kernel), (filters,))
    )
    x[0, 0, 0, 0] = float("nan")
    geometry = stride, padding, (1, 1), transposed, (0, 0), groups
    for bias in (b, None):
        want = getattr(F, then)(torch.convolution(x, w, bias, *geometry))
        found = kernel_with_epilogue("convolution", then)(
            x._tl_array, w._tl_array, None if bias is None else bias._tl_array, *geometry
        )
        assert np.array_equal(x._tl_kernels.to_numpy(found), want.cpu().numpy(), equal_nan=True)
    assert kernel_with_epilogue("convolution", "exp") is None
