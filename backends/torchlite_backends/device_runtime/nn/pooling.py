"""Max and average pooling over windows of the last one to three dimensions."""

from __future__ import annotations

import functools
import math
import struct

from torchlite_backends.kernel_sources import pooling

from ..array_ops.creation import full
from ..array_ops.launch_sizes import choose_work_sizes
from ..array_ops.reduce import mean
from ..core.array import Array, empty
from ..core.contiguous_copy import as_contiguous
from ..core.device_asserts import check_takes
from ..core.pointwise_dispatch import cast

_GATHERED = pooling.WINDOW + pooling.MAXIMUM_BACKWARD_GATHER
_SUMS = {"f64": "double", "f32": "float", "f16": "float", "bf16": "float"}


def _compute_output_size(n, kernel, stride, padding, dilation, ceil_mode):
    reach = n + 2 * padding - dilation * (kernel - 1) - 1
    out = (-(-reach // stride) if ceil_mode else reach // stride) + 1
    # A last window has to begin inside the input or the padding before it.
    return out - 1 if ceil_mode and (out - 1) * stride >= n + padding else out


@functools.lru_cache(4096)
def _compute_output_sizes(size, kernel, stride, padding, dilation, ceil_mode):
    """Return the number of windows along each dimension. RuntimeError if they do not fit."""
    out = tuple(
        [
            _compute_output_size(*numbers, ceil_mode)
            for numbers in zip(size, kernel, stride, padding, dilation, strict=True)
        ]
    )
    too_wide = [2 * p > d * (k - 1) + 1 for p, d, k in zip(padding, dilation, kernel, strict=True)]
    if min(out) <= 0 or min(stride) <= 0 or min(dilation) <= 0 or min(padding) < 0 or True in too_wide:
        raise RuntimeError("the window does not fit the input")
    return out


def pack_window(*rows) -> bytes:
    """Return the kernels' `Window`: size, out, kernel, stride, padding and dilation of up to three dimensions.

    Missing dimensions are in front.
    """
    empty_row = (1, 1, 1, 1, 0, 1)
    numbers = [n for fill, row in zip(empty_row, rows, strict=True) for n in ((fill,) * (3 - len(row)) + tuple(row))]
    return struct.pack("18i", *numbers)


_cached_window = functools.lru_cache(4096)(pack_window)


def _spatial_shape(x: Array, count: int) -> tuple[int, ...]:
    return x.shape[x.ndim - count :]


def _choose_vector_stride(device, x: Array, out_width: int, stride: int) -> int:
    """Return the stride along the width at which sixteen windows are vectorised on a CPU, 0 for scalar."""
    return stride if device.is_cpu and stride in (1, 2) and out_width >= 16 and x.kind in _SUMS else 0


@functools.cache
def _max_pool_source(wide: int, stored: str, indices: bool, rule: str) -> str:
    return (
        f"#define WIDE {wide}\n#define convert_I16 convert_{stored}16\n"
        + ("#define INDICES\n" if indices else "")
        + rule
        + pooling.MAXIMUM
    )


def _launch_max_pool(x: Array, out, rows, rule: str, indices: str = ""):
    """Return the window maxima and their flat positions as elements of the kind `indices`."""
    check_takes(x, "fi", "max_pool2d")
    device, count = x.device, len(out)
    x = as_contiguous(x)
    values = empty(device, (*x.shape[: x.ndim - count], *out), x.kind)
    found = empty(device, values.shape, indices) if indices else values
    if values.size:
        wide = (
            0
            if indices and x.kind == "f64" or rule is pooling.ADAPTIVE
            else _choose_vector_stride(device, x, out[-1], rows[1][-1])
        )
        stored = "long" if indices == "i64" else "int"
        take, items, group = choose_work_sizes(device, values.size, 64)
        run = device.function(
            _max_pool_source(wide, stored, bool(indices), rule),
            "maximum",
            "pppiix",
            (16,) if wide else (),
            T=x.kind,
            I=stored,
        )
        run(items, group, x, values, found, values.size, take, _cached_window(_spatial_shape(x, count), out, *rows))
    return values, found


def _max_pool(input, kernel, stride, padding, dilation, ceil_mode):
    out = _compute_output_sizes(_spatial_shape(input, len(kernel)), kernel, stride, padding, dilation, ceil_mode)
    return _launch_max_pool(input, out, (kernel, stride, padding, dilation), pooling.REGULAR)[0]


def _max_pool_with_indices(input, kernel, stride, padding, dilation, ceil_mode):
    out = _compute_output_sizes(_spatial_shape(input, len(kernel)), kernel, stride, padding, dilation, ceil_mode)
    return _launch_max_pool(input, out, (kernel, stride, padding, dilation), pooling.REGULAR, "i64")


def _make_unit_window_rows(count: int) -> tuple[tuple[int, ...], ...]:
    """Return the Window rows that adaptive pooling does not read."""
    return (1,) * count, (1,) * count, (0,) * count, (1,) * count


def _adaptive_max_pool(input, output_size):
    return _launch_max_pool(
        input, tuple(output_size), _make_unit_window_rows(len(output_size)), pooling.ADAPTIVE, "i64"
    )


def _max_pool_backward(grad_output, input, output, kernel, stride, padding, dilation, ceil_mode):
    count, device = len(kernel), input.device
    out = empty(device, input.shape, grad_output.kind)
    if not out.size:
        return out
    rows = (kernel, stride, padding, dilation)
    g, found = (
        as_contiguous(grad_output),
        _launch_max_pool(input, _spatial_shape(grad_output, count), rows, pooling.REGULAR, "i32")[1],
    )
    size = _spatial_shape(input, count)
    planes, volume = math.prod(input.shape[: input.ndim - count]), math.prod(size)
    if device.is_cpu and planes >= device.units:
        take = max(1, planes // (8 * device.units))
        run = device.function(pooling.MAXIMUM_BACKWARD, "maximum_backward", "pppiiii", (16,), T=g.kind)
        run((-(-planes // take),), (1,), g, found, out, planes, take, volume, g.size // planes)
        return out
    take, items, group = choose_work_sizes(device, out.size, 64)
    run = device.function(_GATHERED, "maximum_gathered", "pppiix", T=g.kind)
    run(items, group, g, found, out, out.size, take, _cached_window(size, _spatial_shape(g, count), *rows))
    return out


def _fractional_max_pool(input, random_samples, kernel, output_size):
    check_takes(input, "fi", f"fractional_max_pool{len(kernel)}d_out_frame")
    device, count, x = input.device, len(kernel), as_contiguous(input)
    values = empty(device, (*x.shape[:2], *output_size), x.kind)
    indices = empty(device, values.shape, "i64")
    if values.size:
        samples = (
            cast(random_samples, "f64" if x.kind == "f64" else "f32")
            if random_samples.kind != x.kind or x.kind in ("f16", "bf16")
            else random_samples
        )
        samples = as_contiguous(samples)
        # PyTorch's samples come width first in two dimensions, depth first in three.
        which = (0, 1, 2) if count == 3 else (-1, 1, 0)
        take, items, group = choose_work_sizes(device, values.size, 64)
        run = device.function(
            pooling.FRACTIONAL,
            "fractional",
            "ppppiiiiiiiix",
            T=x.kind,
            R="double" if samples.kind == "f64" else "float",
            **_make_fp64_enabling_argument(samples),
        )
        how = pack_window(x.shape[2:], output_size, kernel, *_make_unit_window_rows(count)[1:])
        run(
            items,
            group,
            x,
            samples,
            values,
            indices,
            values.size,
            take,
            x.shape[1],
            samples.steps[0],
            samples.steps[1],
            *which,
            how,
        )
    return values, indices


def _make_fp64_enabling_argument(x: Array) -> dict[str, str]:
    """Return an argument that enables double precision in a program without double arrays."""
    return {"UNUSED": "f64"} if x.kind == "f64" else {}


# Averages


@functools.cache
def _avg_pool_source(kind: str, wide: int, long_sums: bool, rule: str) -> str:
    return (
        f"#define WIDE {wide}\n#define ACC {_SUMS.get(kind, 'long')}\n"
        + ("#define LONG_SUMS\n" if long_sums else "")
        + rule
        + pooling.MEAN
    )


@functools.cache
def _avg_pool_backward_source(kind: str, rule: str, looking: str) -> str:
    return f"#define ACC {_SUMS.get(kind, 'long')}\n" + rule + looking + pooling.MEAN_BACKWARD


def _launch_avg_pool(x: Array, out, rows, rule: str, padded: int, fixed: int) -> Array:
    check_takes(x, "fi", "avg_pool2d")
    device, count, x = x.device, len(out), as_contiguous(x)
    result = empty(device, (*x.shape[: x.ndim - count], *out), x.kind)
    if result.size:
        wide = _choose_vector_stride(device, x, out[-1], rows[1][-1]) if rule is pooling.AVERAGE else 0
        long_sums = x.kind in _SUMS and not wide
        take, items, group = choose_work_sizes(
            device, result.size, max(1, 256 * result.size // x.size) if rule is pooling.ADAPTIVE_AVERAGE else 64
        )
        run = device.function(
            _avg_pool_source(x.kind, wide, long_sums, rule),
            "mean_of_windows",
            "ppiixx",
            (16,) if wide or long_sums else (),
            T=x.kind,
        )
        run(
            items,
            group,
            x,
            result,
            result.size,
            take,
            _cached_window(_spatial_shape(x, count), out, *rows),
            struct.pack("2i", padded, fixed),
        )
    return result


def _launch_avg_pool_backward(g: Array, size, rows, rule: str, looking: str, padded: int, fixed: int) -> Array:
    device, count, g = g.device, len(size), as_contiguous(g)
    result = empty(device, (*g.shape[: g.ndim - count], *size), g.kind)
    if not g.size:
        return full(device, result.shape, 0, g.kind)
    if result.size:
        take, items, group = choose_work_sizes(device, result.size, 64)
        run = device.function(_avg_pool_backward_source(g.kind, rule, looking), "mean_backward", "ppiixx", T=g.kind)
        run(
            items,
            group,
            g,
            result,
            result.size,
            take,
            _cached_window(size, _spatial_shape(g, count), *rows),
            struct.pack("2i", padded, fixed),
        )
    return result


def _divisor_or_zero(divisor_override) -> int:
    return 0 if divisor_override is None else int(divisor_override)


def _avg_pool(input, kernel, stride, padding, ceil_mode, count_include_pad, divisor_override):
    ones = (1,) * len(kernel)
    out = _compute_output_sizes(_spatial_shape(input, len(kernel)), kernel, stride, padding, ones, ceil_mode)
    return _launch_avg_pool(
        input,
        out,
        (kernel, stride, padding, ones),
        pooling.AVERAGE,
        int(count_include_pad),
        _divisor_or_zero(divisor_override),
    )


def _avg_pool_backward(grad_output, size, kernel, stride, padding, ceil_mode, count_include_pad, divisor_override):
    rows = (kernel, stride, padding, (1,) * len(kernel))
    return _launch_avg_pool_backward(
        grad_output,
        tuple(size),
        rows,
        pooling.AVERAGE,
        pooling.OUTPUT_RANGE_REGULAR,
        int(count_include_pad),
        _divisor_or_zero(divisor_override),
    )


def _adaptive_avg_pool(input, output_size):
    count = len(output_size)
    if max(output_size, default=0) == min(output_size, default=1) == 1 and not input.device.is_cpu:
        return mean(input, tuple(range(input.ndim - count, input.ndim)), True)
    return _launch_avg_pool(input, tuple(output_size), _make_unit_window_rows(count), pooling.ADAPTIVE_AVERAGE, 0, 0)


def _adaptive_avg_pool_backward(grad_output, size):
    return _launch_avg_pool_backward(
        grad_output,
        tuple(size),
        _make_unit_window_rows(len(size)),
        pooling.ADAPTIVE_AVERAGE,
        pooling.OUTPUT_RANGE_ADAPTIVE,
        0,
        0,
    )
