"""NumPy functions of convolutions, pools and normalizations, whose source goes into written programs."""

from __future__ import annotations

import math

import numpy as np

from .array_functions import pad


def window_view(
    x: np.ndarray, kernel: tuple[int, ...], strides: tuple[int, ...], dilations: tuple[int, ...]
) -> np.ndarray:
    """Return a view of all windows over the last dimensions: (..., *positions, *kernel)."""
    rank = len(kernel)
    extent = tuple((k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True))
    axes = tuple(range(x.ndim - rank, x.ndim))
    windows = np.lib.stride_tricks.sliding_window_view(x, extent, axis=axes)
    index: tuple = (..., *(slice(None, None, step) for step in (*strides, *dilations)))
    return windows[index]


def same_padding(
    sizes: tuple[int, ...], kernel: tuple[int, ...], strides: tuple[int, ...], dilations: tuple[int, ...], upper: bool
) -> tuple[tuple[int, int], ...]:
    """Return the padding by which windows have a position for each stride. `upper` puts an odd element behind."""
    pads = []
    for size, k, stride, dilation in zip(sizes, kernel, strides, dilations, strict=True):
        missing = max((-(-size // stride) - 1) * stride + (k - 1) * dilation + 1 - size, 0)
        less, more = missing // 2, missing - missing // 2
        pads.append((less, more) if upper else (more, less))
    return tuple(pads)


def conv(
    x: np.ndarray,
    weight: np.ndarray,
    bias: np.ndarray | None = None,
    strides: tuple[int, ...] = (),
    padding: tuple[tuple[int, int], ...] | str = (),
    dilations: tuple[int, ...] = (),
    groups: int = 1,
) -> np.ndarray:
    """Return the convolution of x (batch, channels, *sizes) with filters (filters, channels / groups, *kernel).

    Windows are copied to the columns of a matrix, some rows of positions at a time, and multiplied by the filters.
    Padding is (before, after) for each dimension, or "upper" or "lower" for as many positions as strides.
    """
    kernel = weight.shape[2:]
    strides, dilations = strides or (1,) * len(kernel), dilations or (1,) * len(kernel)
    if isinstance(padding, str):
        padding = same_padding(x.shape[2:], kernel, strides, dilations, padding == "upper")
    if any(map(any, padding)):
        x = pad(x, ((0, 0), (0, 0), *padding))
    windows = window_view(x, kernel, strides, dilations)
    batch, channels = x.shape[:2]
    filters, sizes = weight.shape[0], windows.shape[2 : 2 + len(kernel)]
    if groups == channels == filters:
        out = np.zeros((batch, channels, *sizes), x.dtype)
        for offset in np.ndindex(*kernel):
            out += windows[(..., *offset)] * weight[(slice(None), 0, *offset)].reshape(-1, *[1] * len(sizes))
    else:
        order = (0, 1, *range(2 + len(kernel), windows.ndim), *range(2, 2 + len(kernel)))
        windows = windows.transpose(order)
        matrix = weight.reshape(groups, filters // groups, -1)
        out = np.empty((batch, groups, filters // groups, *sizes), np.result_type(x, weight))
        depth, rest = channels // groups * math.prod(kernel), math.prod(sizes[1:])
        rows = max(1, 2**19 // max(1, batch * groups * depth * rest)) if math.prod(kernel) > 1 else max(1, sizes[0])
        for start in range(0, sizes[0], rows):
            index: tuple = (..., slice(start, start + rows), *[slice(None)] * (len(sizes) - 1))
            part = windows[index]
            columns = part.reshape(batch, groups, depth, -1)
            out[:, :, :, start : start + rows] = (matrix @ columns).reshape(
                batch, groups, -1, *part.shape[-len(sizes) :]
            )
        out = out.reshape(batch, filters, *sizes)
    if bias is not None:
        out += bias.reshape(-1, *[1] * len(sizes))
    return out


def conv_transpose(
    x: np.ndarray,
    weight: np.ndarray,
    bias: np.ndarray | None = None,
    strides: tuple[int, ...] = (),
    padding: tuple[tuple[int, int], ...] | str = (),
    dilations: tuple[int, ...] = (),
    groups: int = 1,
    output_padding: tuple[int, ...] = (),
    output_shape: tuple[int, ...] = (),
) -> np.ndarray:
    """Return the transposed convolution of x (batch, channels, *sizes) with (channels, filters / groups, *kernel)."""
    kernel, sizes = weight.shape[2:], x.shape[2:]
    rank = len(kernel)
    strides, dilations = strides or (1,) * rank, dilations or (1,) * rank
    extra = output_padding or (0,) * rank
    batch, channels = x.shape[:2]
    whole = [
        (n - 1) * s + (k - 1) * d + 1 + e
        for n, s, k, d, e in zip(sizes, strides, kernel, dilations, extra, strict=True)
    ]
    matrix = weight.reshape(groups, channels // groups, -1).swapaxes(1, 2)
    columns = matrix @ x.reshape(batch, groups, channels // groups, -1)
    columns = columns.reshape(batch, groups * weight.shape[1], *kernel, *sizes)
    out = np.zeros((batch, groups * weight.shape[1], *whole), columns.dtype)
    for offset in np.ndindex(*kernel):
        begin = [o * d for o, d in zip(offset, dilations, strict=True)]
        place: tuple = (..., *(slice(b, b + (n - 1) * s + 1, s) for b, n, s in zip(begin, sizes, strides, strict=True)))
        out[place] += columns[(slice(None), slice(None), *offset)]
    if isinstance(padding, str) or output_shape:
        wanted = output_shape[-rank:] if output_shape else tuple(n * s for n, s in zip(sizes, strides, strict=True))
        total = [w - n for w, n in zip(whole, wanted, strict=True)]
        first = [t // 2 if padding == "upper" else t - t // 2 for t in total]
        padding = tuple((a, t - a) for a, t in zip(first, total, strict=True))
    if any(map(any, padding)):
        out = pad(out, ((0, 0), (0, 0), *((-a, -b) for a, b in padding)))  # type: ignore[misc]
    return out if bias is None else out + bias.reshape(-1, *[1] * rank)


def pool_padding(
    x: np.ndarray,
    kernel: tuple[int, ...],
    strides: tuple[int, ...],
    padding: tuple[tuple[int, int], ...] | str,
    dilations: tuple[int, ...],
    ceil: bool,
) -> list[tuple[int, int, int]]:
    """Return the padding of a pool before and after each dimension, and what `ceil` adds behind for a last window that
    begins inside.
    """
    if isinstance(padding, str):
        padding = same_padding(x.shape[2:], kernel, strides, dilations, padding == "upper")
    pads = []
    for i, (before, after) in enumerate(padding or ((0, 0),) * len(kernel)):
        size, extent, more = x.shape[2 + i], (kernel[i] - 1) * dilations[i] + 1, 0
        if ceil:
            count = -(-(size + before + after - extent) // strides[i]) + 1
            count -= (count - 1) * strides[i] >= size + before
            more = max((count - 1) * strides[i] + extent - (size + before + after), 0)
            after += min((count - 1) * strides[i] + extent - (size + before + after), 0)
        pads.append((before, after, more))
    return pads


def max_pool(
    x: np.ndarray,
    kernel: tuple[int, ...],
    strides: tuple[int, ...],
    padding: tuple[tuple[int, int], ...] | str = (),
    dilations: tuple[int, ...] = (),
    ceil: bool = False,
) -> np.ndarray:
    """Return the largest element of each window of x (batch, channels, *sizes)."""
    dilations = dilations or (1,) * len(kernel)
    pads = pool_padding(x, kernel, strides, padding, dilations, ceil)
    lowest = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    if any(map(any, pads)):
        x = pad(x, ((0, 0), (0, 0), *((before, after + more) for before, after, more in pads)), lowest)
    windows = window_view(x, kernel, strides, dilations)
    out = np.full(windows.shape[: 2 + len(kernel)], lowest, x.dtype)
    for offset in np.ndindex(*kernel):
        np.maximum(out, windows[(..., *offset)], out=out)
    return out


def average_pool(
    x: np.ndarray,
    kernel: tuple[int, ...],
    strides: tuple[int, ...],
    padding: tuple[tuple[int, int], ...] | str = (),
    dilations: tuple[int, ...] = (),
    ceil: bool = False,
    count_padding: bool = False,
) -> np.ndarray:
    """Return the mean of each window of x (batch, channels, *sizes), over the elements inside, or padding as well."""
    dilations = dilations or (1,) * len(kernel)
    pads = pool_padding(x, kernel, strides, padding, dilations, ceil)
    sizes = x.shape[2:]
    if any(map(any, pads)):
        x = pad(x, ((0, 0), (0, 0), *((before, after + more) for before, after, more in pads)))
    windows = window_view(x, kernel, strides, dilations)
    total = np.zeros(windows.shape[: 2 + len(kernel)], x.dtype)
    for offset in np.ndindex(*kernel):
        total += windows[(..., *offset)]
    for i, (before, after, _) in enumerate(pads):  # how many elements of each window count, by dimension
        place = np.arange(total.shape[2 + i]).reshape(-1, 1) * strides[i] + np.arange(kernel[i]) * dilations[i] - before
        low, high = (-before, sizes[i] + after) if count_padding else (0, sizes[i])
        count = ((place >= low) & (place < high)).sum(axis=1).astype(x.dtype)
        total /= count.reshape([-1 if d == 2 + i else 1 for d in range(total.ndim)])
    return total


def spatial_axes(x: np.ndarray) -> tuple[int, ...]:
    """Return the dimensions after batch and channels."""
    return tuple(range(2, x.ndim))


def channel_shape(value: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return one value for each channel in a shape that broadcasts to x."""
    return value.reshape(-1, *[1] * (x.ndim - 2))


def batch_norm(
    x: np.ndarray, weight: np.ndarray, bias: np.ndarray, mean: np.ndarray, variance: np.ndarray, epsilon: float
) -> np.ndarray:
    """Return x normalized by recorded means and variances of its channels."""
    factor = weight / np.sqrt(variance + variance.dtype.type(epsilon))
    shift = bias - mean * factor
    return (x * channel_shape(factor, x) + channel_shape(shift, x)).astype(x.dtype, copy=False)


def normalize(x: np.ndarray, axes: tuple[int, ...], epsilon: float) -> np.ndarray:
    """Return x with mean 0 and variance 1 along dimensions."""
    wide = x.astype(np.float32) if x.dtype == np.float16 else x
    apart = wide - wide.mean(axis=axes, keepdims=True)
    variance = (apart * apart).mean(axis=axes, keepdims=True)
    return (apart / np.sqrt(variance + variance.dtype.type(epsilon))).astype(x.dtype, copy=False)


def layer_norm(
    x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None = None, axis: int = -1, epsilon: float = 1e-5
) -> np.ndarray:
    """Return x normalized along the dimensions from an axis on, times a weight, plus a bias."""
    out = normalize(x, tuple(range(axis % x.ndim, x.ndim)), epsilon) * weight
    return out if bias is None else out + bias


def rms_norm(x: np.ndarray, weight: np.ndarray, axis: int = -1, epsilon: float = 1e-5) -> np.ndarray:
    """Return x divided by the root of its mean square along the dimensions from an axis on, times a weight."""
    square = (x * x).mean(axis=tuple(range(axis % x.ndim, x.ndim)), keepdims=True)
    return x / np.sqrt(square + square.dtype.type(epsilon)) * weight


def instance_norm(x: np.ndarray, weight: np.ndarray, bias: np.ndarray, epsilon: float = 1e-5) -> np.ndarray:
    """Return each channel of each row normalized, times a weight, plus a bias."""
    return normalize(x, spatial_axes(x), epsilon) * channel_shape(weight, x) + channel_shape(bias, x)


def group_norm(x: np.ndarray, weight: np.ndarray, bias: np.ndarray, groups: int, epsilon: float = 1e-5) -> np.ndarray:
    """Return groups of channels normalized, times a weight, plus a bias, for each channel or for each group."""
    parts = normalize(x.reshape(x.shape[0], groups, -1), (2,), epsilon)
    if weight.size == x.shape[1]:
        return parts.reshape(x.shape) * channel_shape(weight, x) + channel_shape(bias, x)
    return (parts * weight.reshape(1, -1, 1) + bias.reshape(1, -1, 1)).reshape(x.shape)


def resize(
    x: np.ndarray,
    scales: object = None,
    sizes: object = None,
    mode: str = "nearest",
    coordinates: str = "half_pixel",
    nearest: str = "round_prefer_floor",
    cubic: float = -0.75,
    axes: tuple[int, ...] = (),
) -> np.ndarray:
    """Return x interpolated to scales or sizes, one dimension after another."""
    dims = [d % x.ndim for d in axes] if axes else list(range(x.ndim))
    kind = x.dtype
    wanted = None if sizes is None else [int(n) for n in np.asarray(sizes)]
    factors = None if wanted is not None else [float(f) for f in np.asarray(scales)]
    for place, d in enumerate(dims):
        n = x.shape[d]
        count = wanted[place] if wanted is not None else math.floor(n * factors[place])  # type: ignore[index]
        scale = count / n if factors is None else factors[place]
        if count == n and scale == 1:
            continue
        source = source_positions(n, count, scale, coordinates)
        if mode == "nearest":
            x = np.take(x, nearest_index(source, nearest, n), axis=d)
            continue
        reach = 1 if mode == "linear" else 2
        out: np.ndarray | None = None
        for step in range(1 - reach, reach + 1):
            index = np.floor(source) + step
            apart = np.abs(index - source)
            if mode == "linear":
                weight = np.maximum(1 - apart, 0)
            else:
                close = ((cubic + 2) * apart - (cubic + 3)) * apart * apart + 1
                far = ((cubic * apart - 5 * cubic) * apart + 8 * cubic) * apart - 4 * cubic
                weight = np.where(apart <= 1, close, np.where(apart < 2, far, 0))
            weight = weight.astype(kind if kind.kind == "f" else np.float32)
            part = np.take(x, np.clip(index, 0, n - 1).astype(np.int64), axis=d)
            part = part * weight.reshape([-1 if i == d else 1 for i in range(x.ndim)])
            out = part if out is None else out + part
        x = out  # type: ignore[assignment]
    if x.dtype == kind:
        return x
    return np.clip(np.rint(x), np.iinfo(kind).min, np.iinfo(kind).max).astype(kind)


def source_positions(n: int, count: int, scale: float, coordinates: str) -> np.ndarray:
    """Return the positions in a dimension of n elements that belong to `count` elements of the result."""
    at = np.arange(count, dtype=np.float64)
    length = scale * n
    if coordinates == "align_corners":
        return at * 0 if length == 1 else at * (n - 1) / (length - 1)
    if coordinates == "asymmetric":
        return at / scale
    if coordinates == "pytorch_half_pixel" and length == 1:
        return at * 0 - 0.5
    return (at + 0.5) / scale - 0.5


def nearest_index(source: np.ndarray, rule: str, n: int) -> np.ndarray:
    """Return the element next to each position."""
    rounded = {
        "floor": np.floor(source),
        "ceil": np.ceil(source),
        "round_prefer_ceil": np.floor(source + 0.5),
        "round_prefer_floor": np.ceil(source - 0.5),
    }[rule]
    return np.clip(rounded, 0, n - 1).astype(np.int64)
