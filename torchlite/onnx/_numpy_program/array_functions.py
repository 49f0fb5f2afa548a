"""NumPy functions that move, choose and check elements, whose source goes into written programs."""

from __future__ import annotations

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
