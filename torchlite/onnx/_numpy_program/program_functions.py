"""Functions of written programs, whose source the programs contain. They import NumPy, and nothing of torchlite."""

from __future__ import annotations

import math

import numpy as np


def check_input(name: str, value: object, dtype: str, shape: tuple | None, sizes: dict) -> np.ndarray:
    """Return an input as an array. TypeError for another dtype, ValueError for another shape.

    A text in the shape names a size, which `sizes` keeps: it is the same wherever the name stands. None is any size.
    """
    array = np.asarray(value)
    if array.dtype != np.dtype(dtype):
        raise TypeError(f"{name}: expected an array of {dtype}, but got {array.dtype}")
    if shape is None:
        return array
    expected = tuple(sizes.get(size, size) for size in shape)
    wrong = array.ndim != len(shape)
    for size, wanted in zip(array.shape, shape, strict=False):
        if isinstance(wanted, str):
            wanted = sizes.setdefault(wanted, size)
        wrong = wrong or (wanted is not None and size != wanted)
    if wrong:
        text = ", ".join("any" if size is None else str(size) for size in expected)
        raise ValueError(f"{name}: expected the shape [{text}], but got {list(array.shape)}")
    return array


def pad(x: np.ndarray, pads: tuple, fill: object = 0, mode: str = "constant") -> np.ndarray:
    """Return x with (before, after) elements more in each dimension; a negative number removes elements."""
    crop = tuple(slice(max(-a, 0), n - max(-b, 0)) for n, (a, b) in zip(x.shape, pads, strict=True))
    more = [(max(a, 0), max(b, 0)) for a, b in pads]
    x = x[crop]
    if mode != "constant":
        return np.pad(x, more, mode=mode)  # type: ignore[call-overload]
    out = np.full([n + a + b for n, (a, b) in zip(x.shape, more, strict=True)], fill, x.dtype)
    out[tuple(slice(a, a + n) for n, (a, b) in zip(x.shape, more, strict=True))] = x
    return out


def pad_pairs(pads: object, ndim: int, axes: tuple[int, ...] | None = None) -> tuple:
    """Return computed padding, all numbers before and then all after, as pairs by dimension."""
    numbers = [int(n) for n in np.asarray(pads)]
    dims = range(ndim) if axes is None else [a % ndim for a in axes]
    pairs = dict(zip(dims, zip(numbers[: len(numbers) // 2], numbers[len(numbers) // 2 :], strict=True), strict=False))
    return tuple(pairs.get(d, (0, 0)) for d in range(ndim))


def reshape(x: np.ndarray, sizes: object) -> np.ndarray:
    """Return x in a computed shape, in which 0 keeps a size of x, and -1 is the rest."""
    return x.reshape([x.shape[i] if n == 0 else int(n) for i, n in enumerate(np.asarray(sizes))])


def expand(x: np.ndarray, sizes: object) -> np.ndarray:
    """Return x broadcast to a shape, and the shape to that of x."""
    return np.broadcast_to(x, np.broadcast_shapes(x.shape, tuple(int(n) for n in np.asarray(sizes))))


def slice_axes(x: np.ndarray, starts: object, ends: object, axes: object = None, steps: object = None) -> np.ndarray:
    """Return slices of x by computed starts, ends and steps of dimensions."""
    begin, end = (np.asarray(v).reshape(-1).tolist() for v in (starts, ends))
    dims = range(len(begin)) if axes is None else np.asarray(axes).reshape(-1).tolist()
    step = [1] * len(begin) if steps is None else np.asarray(steps).reshape(-1).tolist()
    index = [slice(None)] * x.ndim
    for d, a, b, s in zip(dims, begin, end, step, strict=True):
        index[d] = slice(a, None if s < 0 and b < -x.shape[d] else b, s)
    return x[tuple(index)]


def split_axis(x: np.ndarray, sizes: object, axis: int) -> list[np.ndarray]:
    """Return parts of x of computed sizes along an axis."""
    return np.split(x, np.cumsum(np.asarray(sizes))[:-1], axis=axis)


def split_evenly(x: np.ndarray, count: int, axis: int) -> list[np.ndarray]:
    """Return a number of parts of x along an axis; the last is smaller if the size is no multiple."""
    size = -(-x.shape[axis] // count)
    return np.split(x, [size * i for i in range(1, count)], axis=axis)


def gather_nd(x: np.ndarray, indices: np.ndarray, batch_dims: int = 0) -> np.ndarray:
    """Return elements or slices of x by tuples of indices, for each row of the batch dimensions."""
    places: list = []
    for d in range(batch_dims):
        places.append(np.arange(x.shape[d]).reshape([-1 if i == d else 1 for i in range(indices.ndim - 1)]))
    places += [indices[..., i] for i in range(indices.shape[-1])]
    return x[tuple(places)]


def scatter_elements(x: np.ndarray, indices: np.ndarray, updates: np.ndarray, axis: int, reduction: str) -> np.ndarray:
    """Return a copy of x with elements replaced along an axis, or reduced with new ones."""
    out = x.copy()
    places = list(np.ogrid[tuple(slice(n) for n in indices.shape)])
    places[axis] = indices
    return scatter_into(out, tuple(places), updates, reduction)


def scatter_nd(x: np.ndarray, indices: np.ndarray, updates: np.ndarray, reduction: str) -> np.ndarray:
    """Return a copy of x with elements or slices replaced at tuples of indices, or reduced with new ones."""
    return scatter_into(x.copy(), tuple(np.moveaxis(indices, -1, 0)), updates, reduction)


def scatter_into(out: np.ndarray, places: tuple, updates: np.ndarray, reduction: str) -> np.ndarray:
    """Write updates to places of an array, or reduce them with its elements; return the array."""
    if reduction == "none":
        out[places] = updates
    else:
        functions = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}
        functions[reduction].at(out, places, updates)
    return out


def one_hot(indices: np.ndarray, depth: int, values: np.ndarray, axis: int = -1) -> np.ndarray:
    """Return values[1] at each index of a new dimension and values[0] elsewhere."""
    places = np.where(indices < 0, indices + depth, indices)
    hot = np.expand_dims(places, axis)
    steps = np.arange(depth).reshape([-1 if d == axis % hot.ndim else 1 for d in range(hot.ndim)])
    return np.where(hot == steps, values[1], values[0])


def top_k(x: np.ndarray, k: int, axis: int, largest: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the k largest or smallest elements along an axis and their indices; of equal ones the first."""
    if largest:
        order = np.flip(np.argsort(np.flip(x, axis), axis=axis, kind="stable"), axis)
        order = x.shape[axis] - 1 - order
    else:
        order = np.argsort(x, axis=axis, kind="stable")
    order = np.take(order, np.arange(k), axis=axis)
    return np.take_along_axis(x, order, axis), order


def cumulate(x: np.ndarray, axis: int, exclusive: bool, reverse: bool, product: bool = False) -> np.ndarray:
    """Return sums or products along an axis up to each element, or before it, or from it to the end."""
    if reverse:
        x = np.flip(x, axis)
    out = (np.cumprod if product else np.cumsum)(x, axis=axis, dtype=x.dtype)
    if exclusive:
        head = np.full_like(np.take(out, [0], axis), 1 if product else 0)
        out = np.concatenate([head, np.take(out, np.arange(x.shape[axis] - 1), axis)], axis)
    return np.flip(out, axis) if reverse else out


def reduce_axes(x: np.ndarray, axes: object, keepdims: bool, kind: str, noop: bool = False) -> np.ndarray:
    """Return a reduction along dimensions in the dtype of x; along all without any, or none if `noop`."""
    dims = () if axes is None else tuple(int(a) for a in np.asarray(axes).reshape(-1))
    if not dims and noop:
        return x
    how: dict = {"axis": dims or None, "keepdims": keepdims}
    wide = x if x.dtype.kind == "f" else x.astype(np.float64)
    if kind == "l1":
        out = np.abs(x).sum(**how)
    elif kind == "l2":
        out = np.sqrt((wide * wide).sum(**how))
    elif kind == "sum_square":
        out = (x * x).sum(**how)
    elif kind == "log_sum":
        out = np.log(wide.sum(**how))
    elif kind == "log_sum_exp":
        most = wide.max(axis=dims or None, keepdims=True, initial=-np.inf)
        most = np.where(np.isfinite(most), most, 0)
        out = np.log(np.exp(wide - most).sum(axis=dims or None, keepdims=True)) + most
        out = out if keepdims else np.squeeze(out, axis=dims or None)
    else:
        out = getattr(np, kind)(x, **how)
    return np.asarray(out).astype(x.dtype)


def depth_to_space(x: np.ndarray, block: int, columns_first: bool = False) -> np.ndarray:
    """Return blocks of channels as blocks of rows and columns."""
    n, c, h, w = x.shape
    if columns_first:
        x = x.reshape(n, c // block**2, block, block, h, w).transpose(0, 1, 4, 2, 5, 3)
    else:
        x = x.reshape(n, block, block, c // block**2, h, w).transpose(0, 3, 4, 1, 5, 2)
    return x.reshape(n, c // block**2, h * block, w * block)


def space_to_depth(x: np.ndarray, block: int) -> np.ndarray:
    """Return blocks of rows and columns as channels."""
    n, c, h, w = x.shape
    x = x.reshape(n, c, h // block, block, w // block, block).transpose(0, 3, 5, 1, 2, 4)
    return x.reshape(n, c * block**2, h // block, w // block)


def channel_scale(value: np.ndarray, x: np.ndarray, axis: int) -> np.ndarray:
    """Return a scale or a zero point in a shape that broadcasts along an axis of x."""
    return (
        value.reshape(())
        if value.size == 1
        else value.reshape([-1 if d == axis % x.ndim else 1 for d in range(x.ndim)])
    )


def quantize(x: np.ndarray, scale: np.ndarray, zero: np.ndarray, axis: int = 1) -> np.ndarray:
    """Return x / scale + zero, rounded to the integers of the zero point's dtype."""
    out = np.rint((x / channel_scale(scale, x, axis)).astype(np.float64)) + channel_scale(zero, x, axis)
    return np.clip(out, np.iinfo(zero.dtype).min, np.iinfo(zero.dtype).max).astype(zero.dtype)


def dequantize(x: np.ndarray, scale: np.ndarray, zero: np.ndarray | None = None, axis: int = 1) -> np.ndarray:
    """Return (x - zero) * scale in floating point."""
    out = x.astype(np.float32)
    if zero is not None:
        out = out - channel_scale(zero.astype(np.float32), x, axis)
    return (out * channel_scale(scale, x, axis)).astype(scale.dtype)


def dynamic_quantize(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return x as uint8, the scale and the zero point that its range gives."""
    high, low = np.maximum(x.max(), x.dtype.type(0)), np.minimum(x.min(), x.dtype.type(0))
    scale = np.asarray((high - low if high != low else x.dtype.type(1)) / x.dtype.type(255), x.dtype)
    zero = np.rint(np.clip(-low / scale, 0, 255))
    out = np.clip(np.rint(x / scale) + zero, 0, 255).astype(np.uint8)
    return out, scale, np.asarray(zero, np.uint8)


def without_zero_point(x: np.ndarray, zero: np.ndarray | None, axis: int) -> np.ndarray:
    """Return quantized numbers minus their zero point, in double precision, which is exact for their products."""
    out = x.astype(np.float64)
    return out if zero is None else out - channel_scale(zero.astype(np.float64), x, axis)


def sigmoid(x: np.ndarray) -> np.ndarray:
    """Return 1 / (1 + exp(-x)), with an exponent that does not overflow."""
    most = {2: 11, 4: 88, 8: 709}[x.dtype.itemsize]
    return 1 / (1 + np.exp(np.minimum(-x, most)))


def polynomial(x: np.ndarray, coefficients: tuple[float, ...]) -> np.ndarray:
    """Return a polynomial's value by Horner's rule, coefficients from the highest power down."""
    out = np.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        out *= x
        out += x.dtype.type(coefficient)
    return out


def erf(x: np.ndarray) -> np.ndarray:
    """Return the error function: x P(x*x) / Q(x*x) in single precision, element by element in double precision."""
    x = np.asarray(x)
    if x.dtype == np.float64:
        return np.array([math.erf(value) for value in x.reshape(-1).tolist()]).reshape(x.shape)
    above = (
        -1.4254958789755783e-08, 4.901692317982315e-06, 0.0003899381798674059, 0.003916794661234271,
        0.05461936388661591, 0.18600239741861896, 1.1283791168864843,
    )  # fmt: skip
    below = (
        6.53267510062994e-05, 0.0013367510210311605, 0.015616207613124504, 0.11446501383389271, 0.4981728728669563, 1.0,
    )  # fmt: skip
    near = np.clip(x, -4, 4).astype(np.float32)
    square = near * near
    return np.clip(near * polynomial(square, above) / polynomial(square, below), -1, 1).astype(x.dtype)


def gelu(x: np.ndarray, tanh: bool = False) -> np.ndarray:
    """Return x times the normal distribution function, or its approximation by tanh."""
    if tanh:
        return 0.5 * x * (1 + np.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))
    return 0.5 * x * (1 + erf(x * 0.7071067811865476))


def softplus(x: np.ndarray) -> np.ndarray:
    """Return log(1 + exp(x)), without overflow."""
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def leaky_relu(x: np.ndarray, slope: float = 0.01) -> np.ndarray:
    """Return x, or slope * x for negative elements."""
    return np.where(x >= 0, x, x * x.dtype.type(slope))


def prelu(x: np.ndarray, slope: np.ndarray) -> np.ndarray:
    """Return x, or x times its trained slope for negative elements."""
    if slope.ndim == 1 and x.ndim > 2 and slope.shape[0] == x.shape[1]:
        slope = slope.reshape(-1, *[1] * (x.ndim - 2))
    return np.where(x < 0, x * slope, x)


def elu(x: np.ndarray, alpha: float = 1.0) -> np.ndarray:
    """Return x, or alpha * (exp(x) - 1) for negative elements."""
    return np.where(x > 0, x, x.dtype.type(alpha) * np.expm1(np.minimum(x, 0)))


def selu(x: np.ndarray, alpha: float = 1.6732632423543772, gamma: float = 1.0507009873554805) -> np.ndarray:
    """Return gamma times x, or gamma * alpha * (exp(x) - 1) for negative elements."""
    return x.dtype.type(gamma) * np.where(x > 0, x, x.dtype.type(alpha) * np.expm1(np.minimum(x, 0)))


def hard_sigmoid(x: np.ndarray, alpha: float = 0.2, beta: float = 0.5) -> np.ndarray:
    """Return alpha * x + beta, limited to 0 ... 1."""
    return np.clip(x.dtype.type(alpha) * x + x.dtype.type(beta), 0, 1)


def hard_swish(x: np.ndarray) -> np.ndarray:
    """Return x * min(max(x + 3, 0), 6) / 6."""
    return x * np.clip(x + 3, 0, 6) / 6


def clip(x: np.ndarray, low: object = None, high: object = None) -> np.ndarray:
    """Return x limited from below and above, each if given."""
    if low is not None:
        x = np.maximum(x, np.asarray(low, x.dtype))
    return x if high is None else np.minimum(x, np.asarray(high, x.dtype))


def divide(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return x / y, rounded towards zero for integers."""
    x, y = np.asarray(x), np.asarray(y)
    if x.dtype.kind == "f":
        return x / y
    quotient = np.floor_divide(x, y)
    inexact = (quotient * y != x) & ((x < 0) != (y < 0))
    return (quotient + inexact).astype(x.dtype)


def power(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return x to the power y in the dtype of x."""
    x, y = np.asarray(x), np.asarray(y)
    if x.dtype.kind == "f":
        return np.power(x, y.astype(x.dtype))
    return np.power(x.astype(y.dtype), y).astype(x.dtype)


def is_infinite(x: np.ndarray, negative: bool = True, positive: bool = True) -> np.ndarray:
    """Return where x is infinite, of the signs that are asked for."""
    return (np.isposinf(x) & bool(positive)) | (np.isneginf(x) & bool(negative))


def softmax(x: np.ndarray, axis: int = -1) -> np.ndarray:
    """Return exp(x) divided by its sum along an axis."""
    power = np.exp(x - x.max(axis=axis, keepdims=True))
    return power / power.sum(axis=axis, keepdims=True)


def log_softmax(x: np.ndarray, axis: int = -1) -> np.ndarray:
    """Return the logarithm of softmax."""
    apart = x - x.max(axis=axis, keepdims=True)
    return apart - np.log(np.exp(apart).sum(axis=axis, keepdims=True))


def flattened(function: object, x: np.ndarray, axis: int) -> np.ndarray:
    """Return a function along all dimensions from an axis on, as one."""
    rows = int(np.prod(x.shape[: axis % x.ndim]))
    return function(x.reshape(rows, -1), axis=1).reshape(x.shape)  # type: ignore[operator]


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


def initial_state(state: np.ndarray | None, x: np.ndarray, weight: np.ndarray, direction: int) -> np.ndarray:
    """Return the first state of a direction of a recurrent layer: zeros if there is none."""
    if state is None:
        return np.zeros((x.shape[1], weight.shape[-1]), x.dtype)
    return state[direction]


def stack_directions(found: list, reverse: list[bool]) -> tuple[np.ndarray, ...]:
    """Return all steps (time, directions, batch, hidden) and the last states (directions, batch, hidden)."""
    steps = [np.stack(out[::-1] if back else out) for (out, *_), back in zip(found, reverse, strict=True)]
    last = [np.stack(states) for states in zip(*(states for _, *states in found), strict=True)]
    return (np.stack(steps, axis=1), *last)


def lstm(
    x: np.ndarray,
    weight: np.ndarray,
    recurrent: np.ndarray,
    bias: np.ndarray | None = None,
    hidden: np.ndarray | None = None,
    cell: np.ndarray | None = None,
    reverse: tuple[bool, ...] = (False,),
    batch_first: bool = False,
) -> tuple[np.ndarray, ...]:
    """Return all steps of an LSTM over x (time, batch, features), the last hidden and the last cell state.

    The gates are input, output, forget, cell. `reverse` has one entry for each direction.
    """
    if batch_first:
        x = x.swapaxes(0, 1)
        hidden, cell = (None if s is None else s.swapaxes(0, 1) for s in (hidden, cell))
    found: list = []
    size = recurrent.shape[-1]
    for d, back in enumerate(reverse):
        gates = x @ weight[d].T
        if bias is not None:
            gates = gates + (bias[d, : 4 * size] + bias[d, 4 * size :])
        h, c = initial_state(hidden, x, recurrent, d), initial_state(cell, x, recurrent, d)
        across, out = recurrent[d].T, []
        for gate in gates[::-1] if back else gates:
            gate = gate + h @ across
            open_gates = sigmoid(gate[:, : 3 * size])
            c = open_gates[:, 2 * size :] * c + open_gates[:, :size] * np.tanh(gate[:, 3 * size :])
            h = open_gates[:, size : 2 * size] * np.tanh(c)
            out.append(h)
        found.append((out, h, c))
    steps, h, c = stack_directions(found, list(reverse))
    if batch_first:
        return steps.transpose(2, 0, 1, 3), h.swapaxes(0, 1), c.swapaxes(0, 1)
    return steps, h, c


def gru(
    x: np.ndarray,
    weight: np.ndarray,
    recurrent: np.ndarray,
    bias: np.ndarray | None = None,
    hidden: np.ndarray | None = None,
    reverse: tuple[bool, ...] = (False,),
    reset_after: bool = False,
    batch_first: bool = False,
) -> tuple[np.ndarray, ...]:
    """Return all steps of a GRU over x (time, batch, features), and the last hidden state.

    The gates are update, reset, new. `reset_after` multiplies by the reset gate after the product with the state.
    """
    if batch_first:
        x, hidden = x.swapaxes(0, 1), None if hidden is None else hidden.swapaxes(0, 1)
    found: list = []
    size = recurrent.shape[-1]
    for d, back in enumerate(reverse):
        outer, inner = (0, np.zeros(3 * size, x.dtype)) if bias is None else (bias[d, : 3 * size], bias[d, 3 * size :])
        gates = x @ weight[d].T + outer
        h = initial_state(hidden, x, recurrent, d)
        across, last, out = recurrent[d, : 2 * size].T, recurrent[d, 2 * size :].T, []
        for gate in gates[::-1] if back else gates:
            both = sigmoid(gate[:, : 2 * size] + h @ across + inner[: 2 * size])
            z, r = both[:, :size], both[:, size:]
            new = r * (h @ last + inner[2 * size :]) if reset_after else (r * h) @ last + inner[2 * size :]
            n = np.tanh(gate[:, 2 * size :] + new)
            h = (1 - z) * n + z * h
            out.append(h)
        found.append((out, h))
    steps, h = stack_directions(found, list(reverse))
    return (steps.transpose(2, 0, 1, 3), h.swapaxes(0, 1)) if batch_first else (steps, h)


def rnn(
    x: np.ndarray,
    weight: np.ndarray,
    recurrent: np.ndarray,
    bias: np.ndarray | None = None,
    hidden: np.ndarray | None = None,
    reverse: tuple[bool, ...] = (False,),
    relu: bool = False,
    batch_first: bool = False,
) -> tuple[np.ndarray, ...]:
    """Return all steps of a plain recurrent layer over x (time, batch, features), and the last hidden state."""
    if batch_first:
        x, hidden = x.swapaxes(0, 1), None if hidden is None else hidden.swapaxes(0, 1)
    found: list = []
    size = recurrent.shape[-1]
    for d, back in enumerate(reverse):
        gates = x @ weight[d].T
        if bias is not None:
            gates = gates + (bias[d, :size] + bias[d, size:])
        h, across, out = initial_state(hidden, x, recurrent, d), recurrent[d].T, []
        for gate in gates[::-1] if back else gates:
            h = np.maximum(gate + h @ across, 0) if relu else np.tanh(gate + h @ across)
            out.append(h)
        found.append((out, h))
    steps, h = stack_directions(found, list(reverse))
    return (steps.transpose(2, 0, 1, 3), h.swapaxes(0, 1)) if batch_first else (steps, h)
