"""Rearranging kernels: flip, cat, stack, roll, repeat, unfold, and strided moves."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import Any, NamedTuple

from torchlite._dispatch.shape_and_value_checks import check_roll, check_unfold
from torchlite._dispatch.shapes import wrap_dim, wrap_dims
from torchlite_backends.kernel_sources import rearrange as texts

from ..core.array import Array, empty, make_view
from ..core.contiguous_copy import as_contiguous, clone_row_major
from ..core.copy_fill import copy_into
from ..core.device import Device
from ..core.device_asserts import SCATTERED, encode_error
from ..core.host_transfer import from_numpy
from ..core.pointwise_dispatch import apply_pointwise_rule, cast
from ..core.views import _slice, broadcast_view, reshape, select, slice_view
from .creation import full
from .gather_scatter_launch import ThreeDimView, scatter_3d, take_slices
from .launch_sizes import choose_work_sizes, copy_kind
from .pointwise import RULES
from .reduce import sum as total

_MAX_CAT_INPUTS = 8


def flip(input, dims):
    shape, steps, offset = input.shape, list(input.steps), input.offset
    dims = wrap_dims(dims, input.ndim) if dims.__class__ is int or dims else ()
    for d in dims:
        if shape:
            offset += (shape[d] - 1) * steps[d]
            steps[d] = -steps[d]
    return clone_row_major(make_view(input, shape, tuple(steps), offset if input.size else input.offset))


# Joining


class _CatPart(NamedTuple):
    """Adjacent tensors of a concatenation, copied by one launch, or without a function by separate copies."""

    which: tuple[int, ...]
    at: int  # offset along the dimension
    first: int = 0  # their first element in the result
    function: Any = None
    items: tuple[int, ...] = ()
    group: tuple[int, ...] = ()
    numbers: tuple = ()


def _plan_cat_launch(
    device: Device, kind: str, which: tuple[int, ...], at: int, widths: list[int], rows: int, inner: int, pitch: int
) -> _CatPart:
    """Return the launch that copies contiguous arrays of `rows` rows side by side into result rows of length
    `pitch`.
    """
    total = sum(widths)
    take, items, group = choose_work_sizes(device, rows * total, 1024)
    function = device.function(texts.cat_source(len(which)), "join", "p" * len(which) + "piiiix", (16,), T=kind)
    return _CatPart(
        which,
        at,
        at * inner,
        function,
        items,
        group,
        (rows * total, take, total, pitch, struct.pack(f"{len(widths)}i", *widths)),
    )


def _plan_cat_parts(
    device: Device, kind: str, shapes: list[tuple[int, ...]], contiguous: list[bool], dim: int
) -> tuple[tuple[int, ...], list[_CatPart]]:
    """Return the result's shape and the parts of a concatenation. `kind` is that for moving elements."""
    kept = [i for i, shape in enumerate(shapes) if shape != (0,)] or [0]
    first = shapes[kept[0]]
    dim = wrap_dim(dim, len(first))
    if not first or any(
        len(shapes[i]) != len(first) or (shapes[i][:dim], shapes[i][dim + 1 :]) != (first[:dim], first[dim + 1 :])
        for i in kept
    ):
        raise RuntimeError("Sizes of tensors must match except in the dimension along which they are joined")
    shape = (*first[:dim], sum([shapes[i][dim] for i in kept]), *first[dim + 1 :])
    parts: list[_CatPart] = []
    if 0 in shape:
        return shape, parts
    rows, inner, at = math.prod(first[:dim]), math.prod(first[dim + 1 :]), 0
    kept = [i for i in kept if shapes[i][dim]]
    for start in range(0, len(kept), _MAX_CAT_INPUTS):
        which = tuple(kept[start : start + _MAX_CAT_INPUTS])
        lengths = [shapes[i][dim] for i in which]
        if len(which) > 1 and all(contiguous[i] for i in which):
            parts.append(
                _plan_cat_launch(device, kind, which, at, [n * inner for n in lengths], rows, inner, shape[dim] * inner)
            )
        else:
            parts += [_CatPart((i,), at + sum(lengths[:j])) for j, i in enumerate(which)]
        at += sum(lengths)
    return shape, parts


def _concatenate(
    tensors, shapes: list[tuple[int, ...]], dim: int, place: Callable[[Array, int, Array], Array]
) -> Array:
    """Concatenate tensors, taken with these shapes, along a dimension.

    `place(result, at, tensor)` views the result where a tensor goes.
    """
    like = next((t for t in tensors if t.shape != (0,)), tensors[0])
    device, contiguous = like.device, [t.contiguous for t in tensors]
    key = ("joined", dim, like.itemsize, *shapes, *contiguous)
    found = device.plans.get(key)
    if found is None:
        found = device.plans[key] = _plan_cat_parts(device, copy_kind(like), shapes, contiguous, dim)
    shape, parts = found
    out = empty(device, shape, like.kind)
    for part in parts:
        arrays = [tensors[i] for i in part.which]
        if part.function is None:
            copy_into(place(out, part.at, arrays[0]), arrays[0])
        else:
            part.function(part.items, part.group, *arrays, make_view(out, (1,), (1,), part.first), *part.numbers)
    return out


def cat(tensors, dim=0):
    if not tensors:
        raise ValueError("torch.cat(): expected a non-empty list of Tensors")
    if all(t.shape == (0,) for t in tensors):
        dim = 0
    return _concatenate(
        tensors, [t.shape for t in tensors], dim, lambda out, at, t: slice_view(out, dim, at, t.shape[dim])
    )


def stack(tensors, dim=0):
    shape = tensors[0].shape
    for t in tensors:
        if t.shape != shape:
            raise RuntimeError("stack expects each tensor to be equal size")
    dim = wrap_dim(dim, len(shape) + 1)
    return _concatenate(
        tensors, [(*shape[:dim], 1, *shape[dim:])] * len(tensors), dim, lambda out, at, t: select(out, dim, at)
    )


# Backward of rearranging ops


def _slice_backward(input, shape, dim, start, stop, step):
    out = full(input.device, shape, 0, input.kind)
    copy_into(_slice(out, dim, start, stop, step), input)
    return out


# Turning and repeating


def _roll_rows(x: Array, shift: int, width: int) -> Array:
    """Roll rows of `width` elements of a contiguous array."""
    out, device = empty(x.device, x.shape, x.kind), x.device
    take, items, group = choose_work_sizes(device, x.size, 1024)
    device.function(texts.ROLL, "roll", "ppiiii", (16,), T=copy_kind(x))(
        items, group, x, out, x.size, take, width, shift
    )
    return out


def roll(input: Array, shifts, dims=()):
    shifts = (shifts,) if isinstance(shifts, int) else tuple(shifts)
    dims = () if dims is None else (dims,) if isinstance(dims, int) else tuple(dims)
    dims = check_roll(input.ndim, shifts, dims)
    out: Array = as_contiguous(input)
    for i, shift in enumerate(shifts):
        dim = dims[i] if dims else 0
        if out.size and input.ndim:
            n, inner = (out.shape[dim], math.prod(out.shape[dim + 1 :])) if dims else (out.size, 1)
            if shift % n:
                out = _roll_rows(out, shift % n * inner, n * inner)
    return clone_row_major(input) if out is input or out.base is input else out


def repeat(input, repeats):
    if len(repeats) < input.ndim:
        raise RuntimeError("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor")
    lead = len(repeats) - input.ndim
    shape, steps = (1,) * lead + input.shape, (0,) * lead + input.steps
    wide = tuple([n for pair in zip(repeats, shape, strict=True) for n in pair])
    spread = make_view(input, wide, tuple([s for step in steps for s in (0, step)]), input.offset)
    return reshape(clone_row_major(spread), tuple([r * n for r, n in zip(repeats, shape, strict=True)]))


def unfold(input, dimension, size, step):
    dim = wrap_dim(dimension, input.ndim)
    length = input.shape[dim] if input.ndim else 1
    check_unfold(dim, length, size, step)
    if not input.ndim:
        return make_view(input, (size,), (1,), input.offset)
    shape, steps = input.shape, input.steps
    windows = (*shape[:dim], (length - size) // step + 1, *shape[dim + 1 :], size)
    return make_view(input, windows, (*steps[:dim], steps[dim] * step, *steps[dim + 1 :], steps[dim]), input.offset)


def _unfold_backward(grad, shape, dim, size, step):
    if not shape:
        return total(grad) if size else full(grad.device, (), 0, grad.kind)
    dim = wrap_dim(dim, len(shape))
    if not grad.size:
        return full(grad.device, shape, 0, grad.kind)
    device, g, out = grad.device, as_contiguous(grad), empty(grad.device, tuple(shape), grad.kind)
    take, items, group = choose_work_sizes(device, out.size, 64)
    run = device.function(texts.UNFOLD_BACKWARD, "unfold_backward", "ppiiiiiii", T=g.kind)
    run(items, group, g, out, out.size, take, shape[dim], math.prod(shape[dim + 1 :]), grad.shape[dim], size, step)
    return out


# The same bits seen otherwise


# Elements added up where a layout puts them


def _compute_strided_positions(shape, stride, offset):
    """Return the memory position of each element of a layout, computed by NumPy from strides alone."""
    import numpy as np

    positions = np.asarray(offset, np.int64)
    for n, s in zip(shape, stride, strict=True):
        positions = positions[..., None] + np.arange(n) * s
    return positions


def _move_strided(input, source, target, divide):
    import numpy as np

    device, (start, end) = input.device, (_compute_strided_positions(*source), _compute_strided_positions(*target))
    low = min([int(p.min()) for p in (start, end) if p.size], default=0)
    length = max([int(p.max()) for p in (start, end) if p.size], default=0) - low + 1
    start, end = start - low, end - low
    shared = np.bincount((start if divide == "source" else end).reshape(-1), minlength=length)
    flat, memory, places = as_contiguous(input), full(device, (length,), 0, input.kind), from_numpy(start, device)
    if divide == "source":
        flat = _divide_by_count(flat, shared[start])
    sizes = (1, start.size, 1)
    code = encode_error(SCATTERED)
    scatter_3d(
        "add",
        ThreeDimView(memory, (1, length, 1), (0, 1, 0)),
        ThreeDimView(places, sizes, (0, 1, 0)),
        ThreeDimView(flat, sizes, (0, 1, 0)),
        False,
        code,
    )
    out = take_slices(
        ThreeDimView(memory, (1, length, 1), (0, 1, 0)),
        from_numpy(end, device),
        empty(device, end.shape, input.kind),
        length,
        False,
        code,
    )
    return _divide_by_count(out, shared[end]) if divide == "target" else out


def _divide_by_count(x: Array, counts) -> Array:
    return apply_pointwise_rule(RULES["div"], (x, cast(broadcast_view(from_numpy(counts, x.device), x.shape), x.kind)))
