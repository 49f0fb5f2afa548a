"""ONNX shape, slice, pad and layout ops. String arrays are NumPy object arrays and use the same functions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import torchlite as torch
from torchlite import Tensor
from torchlite.nn import functional as F

from .._element_types import NarrowTensor
from .op_registry import Ints, Number, ints, normalize_dims, op, single_number
from .resource_limits import check_elements, check_objects


def accepts_narrow(function: Any) -> Any:
    """Extend a function of tensors to narrow tensors."""

    def run(x: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(x, NarrowTensor):
            return NarrowTensor(function(x.values, *args, **kwargs), x.type)
        return function(x, *args, **kwargs)

    run.__name__, run.__qualname__, run.__module__ = function.__name__, function.__qualname__, function.__module__
    run.__doc__, run.__wrapped__ = function.__doc__, function  # type: ignore[attr-defined]
    return run


@op("Shape")
def shape(x: Any, *, start: int = 0, end: int | None = None) -> Tensor:
    sizes = list((x.values if isinstance(x, NarrowTensor) else x).shape)
    return torch.tensor(sizes[start:end], dtype=torch.int64)


@op("Size")
def size(x: Any) -> Tensor:
    return torch.tensor(math.prod((x.values if isinstance(x, NarrowTensor) else x).shape), dtype=torch.int64)


@op("Reshape")
@accepts_narrow
def reshape(x: Any, shape: Ints = None, *, allowzero: int = 0, consumed_inputs: Any = None) -> Any:
    sizes = ints(shape) or []
    if not allowzero:
        sizes = [x.shape[i] if n == 0 and i < x.ndim else n for i, n in enumerate(sizes)]
    return x.reshape(sizes)


@op("Flatten")
@accepts_narrow
def flatten(x: Any, *, axis: int = 1) -> Any:
    axis = axis + x.ndim if axis < 0 else axis
    rows = math.prod(x.shape[:axis])
    return x.reshape(rows, math.prod(x.shape[axis:]))


@op("Transpose")
@accepts_narrow
def transpose(x: Any, *, perm: Ints = None) -> Any:
    order = list(range(x.ndim))[::-1] if perm is None else perm
    return x.transpose(order) if isinstance(x, np.ndarray) else x.permute(order)


@op("Squeeze")
@accepts_narrow
def squeeze(x: Any, axes: Ints = None) -> Any:
    dims = [d for d, n in enumerate(x.shape) if n == 1] if axes is None else normalize_dims(ints(axes) or [], x.ndim)
    for d in dims:
        if x.shape[d] != 1:
            raise ValueError(f"Squeeze: dimension {d} has the size {x.shape[d]}")
    return x.reshape([n for d, n in enumerate(x.shape) if d not in dims])


@op("Unsqueeze")
@accepts_narrow
def unsqueeze(x: Any, axes: Ints = None) -> Any:
    given = ints(axes) or []
    dims = set(normalize_dims(given, x.ndim + len(given)))
    if len(dims) != len(given):
        raise ValueError(f"Unsqueeze: axes {given} name a dimension twice")
    sizes = iter(x.shape)
    return x.reshape([1 if d in dims else next(sizes) for d in range(x.ndim + len(given))])


@op("Concat")
def concat(*values: Any, axis: int = 1) -> Any:
    check_elements("Concat", sum(math.prod(x.shape) for x in values))
    if not isinstance(values[0], Tensor):
        return np.concatenate(values, axis)
    return torch.cat(values, axis)


@op("Split")
def split(x: Any, split: Ints = None, *, axis: int = 0, num_outputs: int | None = None, outputs: int = 1) -> Any:
    length = x.shape[axis]
    sizes = ints(split)
    if sizes is None:
        count = num_outputs or outputs
        if not outputs <= count <= max(length, outputs):
            raise ValueError(f"Split: {length} into {count} parts, of which {outputs} are outputs")
        check_objects("Split", count)
        part = -(-length // count)
        sizes = [max(min(part, length - i * part), 0) for i in range(count)]
    if sum(sizes) != length or len(sizes) < outputs:
        raise ValueError(f"Split: {sizes} of {length} into {outputs}")
    parts = tuple(torch.split(x, sizes, axis))
    return parts if outputs > 1 else parts[0]


@op("Slice")
@accepts_narrow
def slice_(
    x: Any, starts: Ints = None, ends: Ints = None, axes: Ints = None, steps: Ints = None
) -> Any:  # fmt: skip
    first, last = ints(starts) or [], ints(ends) or []
    dims = normalize_dims(list(range(len(first))) if axes is None else ints(axes) or [], x.ndim)
    strides = [1] * len(first) if steps is None else ints(steps) or []
    for d, a, b, step in zip(dims, first, last, strides, strict=True):
        x = _slice_dim(x, d, a, b, step)
    return x


def _slice_dim(x: Any, d: int, a: int, b: int, step: int) -> Any:
    n = x.shape[d]
    if step == 0:
        raise ValueError("Slice: a step is zero")
    begin, end, step = slice(_clamp_bound(a, n, step), _clamp_bound(b, n, step), max(min(step, n + 1), -n - 1)).indices(
        n
    )
    if step < 0:
        begin, end = (begin, end) if b >= -n or b >= 0 else (begin, -1)
        places = np.arange(begin, end, step)
        if isinstance(x, np.ndarray):
            return x.take(places, d)
        return torch.index_select(x, d, torch.tensor(places, device=x.device))
    return x[(slice(None),) * d + (slice(begin, max(begin, end), step),)]


def _clamp_bound(value: int, n: int, step: int) -> int | None:
    """Return a slice bound in Python's convention; far below zero means None."""
    if value < -n:
        return 0 if step > 0 else (-n - 1)
    return min(value, n)


@op("Expand")
def expand(x: Any, shape: Ints) -> Any:
    sizes = ints(shape) or []
    whole = np.broadcast_shapes(tuple(x.shape), tuple(sizes))
    check_elements("Expand", *whole)
    return np.broadcast_to(x, whole) if isinstance(x, np.ndarray) else x.expand(whole)


@op("Tile", since=1)
def tile_opset1(x: Tensor, tiles: Number, axis: Number) -> Tensor:
    repeats = [1] * x.ndim
    repeats[int(single_number(axis))] = int(single_number(tiles))
    check_elements("Tile", x.numel(), *repeats)
    return x.repeat(repeats)


@op("Tile", since=6)
def tile(x: Tensor, repeats: Ints) -> Tensor:
    counts = ints(repeats) or []
    check_elements("Tile", x.numel(), *counts)
    return x.repeat(counts)


@op("Pad")
@accepts_narrow
def pad(
    x: Any, pads: Ints = None, value: Number = None, axes: Ints = None, *, mode: str = "constant",
    paddings: Ints = None,
) -> Any:  # fmt: skip
    given = ints(pads if pads is not None else paddings) or []
    dims = list(range(x.ndim)) if axes is None else normalize_dims(ints(axes) or [], x.ndim)
    if len(given) != 2 * len(dims):
        raise ValueError(f"Pad: pads {given} for {len(dims)} dimensions")
    both = {d: (given[i], given[i + len(dims)]) for i, d in enumerate(dims)}
    check_elements("Pad", *(n + sum(max(p, 0) for p in both.get(d, ())) for d, n in enumerate(x.shape)))
    if mode == "constant":
        flat = [n for d in reversed(range(x.ndim)) for n in both.get(d, (0, 0))]
        filling = single_number(value)
        return F.pad(x, flat, value=0 if filling is None else filling)
    if mode not in ("edge", "wrap", "reflect"):
        raise ValueError(f"Pad: there is no mode {mode!r}")
    for d, (before, after) in both.items():
        x = _pad_by_index(x, d, before, after, mode)
    return x


def _pad_by_index(x: Tensor, d: int, before: int, after: int, mode: str) -> Tensor:
    """Pad a dimension with elements of its own (reflect, edge or wrap). Negative numbers cut."""
    n = x.shape[d]
    if before == after == 0:
        return x
    start, stop = max(-before, 0), n + min(after, 0)
    if start > stop:  # nothing of the tensor itself is left
        return _select_outside(x, d, -before, n + after, mode)
    parts = [
        _select_outside(x, d, -before, 0, mode) if before > 0 else None,
        x.narrow(d, start, stop - start),
        _select_outside(x, d, n, n + after, mode) if after > 0 else None,
    ]
    return torch.cat([part for part in parts if part is not None], d)


def _select_outside(x: Tensor, d: int, start: int, stop: int, mode: str) -> Tensor:
    """Return the elements that a mode of padding gives to the places from `start` to `stop`."""
    n = x.shape[d]
    places = torch.arange(start, stop, device=x.device)
    if mode == "edge":
        places = places.clamp(0, n - 1)
    elif mode == "wrap":
        places = places % n
    else:
        around = max(2 * (n - 1), 1)
        places = ((places + (n - 1)) % around - (n - 1)).abs() if n > 1 else places * 0
    return torch.index_select(x, d, places)


@op("CenterCropPad")
def center_crop_pad(x: Tensor, shape: Ints, *, axes: Ints = None) -> Tensor:
    sizes = ints(shape) or []
    dims = normalize_dims(list(range(x.ndim)) if axes is None else axes, x.ndim)
    wide = dict(zip(dims, sizes, strict=True))
    check_elements("CenterCropPad", *(max(wide.get(d, n), n) for d, n in enumerate(x.shape)))
    for d, wanted in zip(dims, sizes, strict=True):
        n = x.shape[d]
        if n > wanted:
            x = x.narrow(d, (n - wanted) // 2, wanted)
        elif n < wanted:
            before = (wanted - n) // 2
            x = F.pad(x, [0, 0] * (x.ndim - 1 - d) + [before, wanted - n - before])
    return x


@op("DepthToSpace")
def depth_to_space(x: Tensor, *, blocksize: int, mode: str = "DCR") -> Tensor:
    n, c, h, w = x.shape
    b = blocksize
    if mode == "DCR":
        return x.reshape(n, b, b, c // (b * b), h, w).permute(0, 3, 4, 1, 5, 2).reshape(n, c // (b * b), h * b, w * b)
    return x.reshape(n, c // (b * b), b, b, h, w).permute(0, 1, 4, 2, 5, 3).reshape(n, c // (b * b), h * b, w * b)


@op("SpaceToDepth")
def space_to_depth(x: Tensor, *, blocksize: int, mode: str = "DCR") -> Tensor:
    n, c, h, w = x.shape
    b = blocksize
    cut = x.reshape(n, c, h // b, b, w // b, b)
    order = (0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4)
    return cut.permute(order).reshape(n, c * b * b, h // b, w // b)


@op("Trilu")
def trilu(x: Tensor, k: Number = None, *, upper: int = 1) -> Tensor:
    diagonal = int(single_number(k) or 0)
    return torch.triu(x, diagonal) if upper else torch.tril(x, diagonal)


@op("ReverseSequence")
def reverse_sequence(x: Tensor, lengths: Ints, *, batch_axis: int = 1, time_axis: int = 0) -> Tensor:
    counts = torch.tensor(ints(lengths) or [], dtype=torch.int64, device=x.device)
    if counts.numel() != x.shape[batch_axis]:
        raise ValueError(f"ReverseSequence: {counts.numel()} lengths for a batch of {x.shape[batch_axis]}")
    n = x.shape[time_axis]
    step = torch.arange(n, device=x.device).reshape(-1, 1)
    place = torch.where(step < counts, counts - 1 - step, step)  # (time, batch)
    place = place if time_axis < batch_axis else place.t()
    sizes = [n if d in (time_axis, batch_axis) else 1 for d, n in enumerate(x.shape)]
    return torch.gather(x, time_axis, place.reshape(sizes).expand(x.shape))


@op("Col2Im")
def col2im(
    x: Tensor, image_shape: Ints, block_shape: Ints, *, dilations: Ints = None, pads: Ints = None, strides: Ints = None
) -> Tensor:
    image, block = ints(image_shape) or [], ints(block_shape) or []
    rank = len(image)
    dilations, strides, pads = dilations or [1] * rank, strides or [1] * rank, pads or [0] * 2 * rank
    begin, end = pads[:rank], pads[rank:]
    check_elements(
        "Col2Im",
        x.shape[0],
        x.shape[1],
        *(max(n, 0) + abs(a) + abs(b) for n, a, b in zip(image, begin, end, strict=True)),
    )
    full = [image[d] + begin[d] + end[d] for d in range(rank)]
    counts = [(full[d] - dilations[d] * (block[d] - 1) - 1) // strides[d] + 1 for d in range(rank)]
    if x.shape[1] % max(math.prod(block), 1) or x.shape[2] != math.prod(counts) or min([1, *counts, *block]) < 1:
        raise ValueError(f"Col2Im: {list(x.shape)} has not {counts} blocks of {block}")
    if rank == 2 and begin == end:
        return F.fold(x, image, block, dilations, begin, strides)
    n, channels = x.shape[0], x.shape[1] // math.prod(block)
    # Target position of each block element, computed on the host.
    place = np.zeros((*block, *counts), np.int64)
    for d in range(rank):
        at = np.arange(block[d])[:, None] * dilations[d] + np.arange(counts[d]) * strides[d]
        axes = [block[d] if i == d else 1 for i in range(rank)] + [counts[d] if i == d else 1 for i in range(rank)]
        place = place * full[d] + at.reshape(axes)
    index = torch.tensor(place.reshape(-1), device=x.device)
    out = torch.zeros(n, channels, math.prod(full), dtype=x.dtype, device=x.device)
    out = out.index_add(2, index, x.reshape(n, channels, -1)).reshape(n, channels, *full)
    for d in range(rank):
        out = out.narrow(2 + d, begin[d], image[d])
    return out
