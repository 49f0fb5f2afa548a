"""Export rules of shape, view, copy and factory ops."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..errors import OnnxExporterError
from ..symbolic_opset9 import _prepare_onnx_paddings
from .elementwise import to_common_type
from .graph_builder import LAST, OnnxGraphBuilder, WriterValue, dtype_name, is_fixed, translates


@translates("aten.view", "aten.reshape", "aten._unsafe_view", "aten.view_copy", "aten._reshape_copy")
def view(w: OnnxGraphBuilder, x: WriterValue, size: Any) -> str:
    return w.reshape(x, list(size))


@translates("aten.view_as", "aten.reshape_as")
def view_as(w: OnnxGraphBuilder, x: WriterValue, other: WriterValue) -> str:
    return w.op("Reshape", x, w.shape(other))


@translates("aten.flatten")
def flatten(w: OnnxGraphBuilder, x: WriterValue, start_dim: int = 0, end_dim: int = -1) -> str:
    if not x.ndim:
        return w.reshape(x, [1])
    start, end = start_dim % x.ndim, end_dim % x.ndim
    sizes = [w.size(x, d) for d in range(x.ndim)]
    return w.reshape(x, [*sizes[:start], w.product(sizes[start : end + 1]), *sizes[end + 1 :]])


@translates("aten.unflatten")
def unflatten(w: OnnxGraphBuilder, x: WriterValue, dim: int, sizes: Any) -> str:
    dim %= x.ndim
    whole = [w.size(x, d) for d in range(x.ndim)]
    return w.reshape(x, [*whole[:dim], *sizes, *whole[dim + 1 :]])


@translates("aten.unsqueeze", "aten.unsqueeze_copy")
def unsqueeze(w: OnnxGraphBuilder, x: WriterValue, dim: int) -> str:
    return w.unsqueeze(x, dim % (x.ndim + 1))


@translates("aten.squeeze", "aten.squeeze_copy")
def squeeze(w: OnnxGraphBuilder, x: WriterValue, dim: Any = None) -> str:
    dims = range(x.ndim) if dim is None else [d % x.ndim for d in ([dim] if isinstance(dim, int) else dim) if x.ndim]
    ones = [d for d in dims if x.sizes[d] == 1]
    return w.squeeze(x, *ones) if ones else x.name


@translates("aten.permute", "aten.permute_copy")
def permute(w: OnnxGraphBuilder, x: WriterValue, dims: Any) -> str:
    return w.permute(x, [d % x.ndim for d in dims])


@translates("aten.transpose", "aten.swapaxes", "aten.transpose_copy")
def transpose(w: OnnxGraphBuilder, x: WriterValue, dim0: int, dim1: int) -> str:
    order = list(range(x.ndim))
    if order:
        order[dim0 % x.ndim], order[dim1 % x.ndim] = order[dim1 % x.ndim], order[dim0 % x.ndim]
    return w.permute(x, order)


@translates("aten.t", "aten.numpy_T", "aten.mT", "aten.adjoint")
def t(w: OnnxGraphBuilder, x: WriterValue) -> str:
    order = list(range(x.ndim))
    order[-2:] = order[-2:][::-1]
    return w.permute(x, order) if x.ndim > 1 else x.name


@translates("aten.movedim", "aten.moveaxis")
def movedim(w: OnnxGraphBuilder, x: WriterValue, source: Any, destination: Any) -> str:
    a, b = (v if isinstance(v, (list, tuple)) else [v] for v in (source, destination))
    pairs = {y % x.ndim: v % x.ndim for v, y in zip(a, b, strict=True)}
    rest = iter(d for d in range(x.ndim) if d not in pairs.values())
    return w.permute(x, [pairs[d] if d in pairs else next(rest) for d in range(x.ndim)])


@translates("aten.expand", "aten.expand_copy")
def expand(w: OnnxGraphBuilder, x: WriterValue, size: Any) -> str:
    sizes = [1 if is_fixed(n) and n == -1 else n for n in size]
    return w.op("Expand", x, w.ints(sizes))


@translates("aten.expand_as")
def expand_as(w: OnnxGraphBuilder, x: WriterValue, other: WriterValue) -> str:
    return w.op("Expand", x, w.shape(other))


@translates("aten.broadcast_to")
def broadcast_to(w: OnnxGraphBuilder, x: WriterValue, size: Any) -> str:
    return expand(w, x, size)


@translates("aten.repeat", "aten.tile")
def repeat(w: OnnxGraphBuilder, x: WriterValue, repeats: Any) -> str:
    lead = len(repeats) - x.ndim
    given: Any = w.reshape(x, [1] * lead + [w.size(x, d) for d in range(x.ndim)]) if lead > 0 else x
    return w.op("Tile", given, w.ints([1] * max(-lead, 0) + list(repeats)))


@translates("aten.repeat_interleave")
def repeat_interleave(
    w: OnnxGraphBuilder, x: WriterValue, repeats: Any, dim: int | None = None, *, output_size: Any = None
) -> str:
    del output_size  # the repeats give it
    if isinstance(repeats, WriterValue) and repeats.ndim:
        raise OnnxExporterError("repeat_interleave: repeats of several sizes")
    if dim is None:
        x, dim = WriterValue(w.reshape(x, [-1]), x.dtype, (None,)), 0
    dim %= x.ndim
    sizes = [w.size(x, d) for d in range(x.ndim)]
    times = [1] * (x.ndim + 1)
    times[dim + 1] = repeats
    wide = w.op("Tile", w.unsqueeze(x, dim + 1), w.ints(times))
    return w.reshape(wide, [*sizes[:dim], w.product([sizes[dim], repeats]), *sizes[dim + 1 :]])


@translates("aten.cat", "aten.concat", "aten.concatenate")
def cat(w: OnnxGraphBuilder, tensors: Any, dim: int = 0) -> str:
    kept = [x for x in tensors if x.sizes != (0,)] or list(tensors)[:1]
    names, _ = to_common_type(w, *kept)
    return w.op("Concat", *names, axis=dim % kept[0].ndim) if len(names) > 1 else names[0]


@translates("aten.stack")
def stack(w: OnnxGraphBuilder, tensors: Any, dim: int = 0) -> str:
    dim %= tensors[0].ndim + 1
    names, _ = to_common_type(w, *tensors)
    return w.op("Concat", *(w.unsqueeze(name, dim) for name in names), axis=dim)


def _slice_dim(w: OnnxGraphBuilder, x: WriterValue, sizes: list[Any], dim: int) -> list[str]:
    if len(sizes) == 1:
        return [w.op("Identity", x)]
    return w.op("Split", x, w.ints(sizes), outputs=len(sizes), axis=dim % x.ndim)


@translates("aten.split_with_sizes", "aten.split_with_sizes_copy")
def split_with_sizes(w: OnnxGraphBuilder, x: WriterValue, sizes: Any, dim: int = 0) -> list[str]:
    return _slice_dim(w, x, list(sizes), dim)


def _require_fixed_size(x: WriterValue, dim: int, what: str) -> int:
    n = x.sizes[dim % x.ndim]
    if n is None:
        raise OnnxExporterError(f"{what}: dimension {dim} has no fixed size, so the number of parts has none")
    return n


@translates("aten.split", "aten.unsafe_split", "aten.split_copy")
def split(w: OnnxGraphBuilder, x: WriterValue, size: Any, dim: int = 0) -> list[str]:
    if isinstance(size, (list, tuple)):
        return _slice_dim(w, x, list(size), dim)
    n = _require_fixed_size(x, dim, "split")
    return _slice_dim(w, x, [min(size, n - i) for i in range(0, n, size)] or [0], dim)


@translates("aten.chunk", "aten.unsafe_chunk")
def chunk(w: OnnxGraphBuilder, x: WriterValue, chunks: int, dim: int = 0) -> list[str]:
    n = _require_fixed_size(x, dim, "chunk")
    return split(w, x, max(-(-n // chunks), 1), dim)


@translates("aten.tensor_split")
def tensor_split(w: OnnxGraphBuilder, x: WriterValue, parts: Any, dim: int = 0) -> list[str]:
    n = _require_fixed_size(x, dim, "tensor_split")
    if isinstance(parts, int):
        return _slice_dim(w, x, [n // parts + (i < n % parts) for i in range(parts)], dim)
    bounds = [min(max(p + n if p < 0 else p, 0), n) for p in parts]
    begins, ends = [0, *bounds], [*bounds, n]
    return [w.slice(x, dim % x.ndim, a, max(a, b)) for a, b in zip(begins, ends, strict=True)]


@translates("aten.unbind", "aten.unbind_copy")
def unbind(w: OnnxGraphBuilder, x: WriterValue, dim: int = 0) -> list[str]:
    dim %= x.ndim
    return [w.squeeze(part, dim) for part in _slice_dim(w, x, [1] * _require_fixed_size(x, dim, "unbind"), dim)]


@translates("aten.slice", "aten.slice_copy")
def slice_(w: OnnxGraphBuilder, x: WriterValue, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> str:
    start, end = 0 if start is None else start, LAST if end is None else end
    if is_fixed(start) and start == 0 and is_fixed(end) and end >= LAST and step == 1:
        return x.name
    return w.slice(x, dim % x.ndim, start, end, step)


@translates("aten.narrow")
def narrow(w: OnnxGraphBuilder, x: WriterValue, dim: int, start: Any, length: Any) -> str:
    if is_fixed(start) and start < 0:
        start = (
            start + x.sizes[dim % x.ndim] if x.sizes[dim % x.ndim] is not None else w.op("Add", w.size(x, dim), start)
        )
    end = start + length if is_fixed(start) and is_fixed(length) else w.op("Add", start, w.put(length))
    return w.slice(x, dim % x.ndim, start, end)


@translates("aten.select", "aten.select_copy")
def select(w: OnnxGraphBuilder, x: WriterValue, dim: int, index: Any) -> str:
    place = w.constant(index, "int64") if is_fixed(index) else index
    return w.op("Gather", x, place, axis=dim % x.ndim)


@translates("aten.flip")
def flip(w: OnnxGraphBuilder, x: WriterValue, dims: Any) -> str:
    axes = [d % x.ndim for d in dims]
    if not axes:
        return x.name
    return w.op(
        "Slice", x, w.ints([-1] * len(axes)), w.ints([-LAST] * len(axes)), w.ints(axes), w.ints([-1] * len(axes))
    )


@translates("aten.roll")
def roll(w: OnnxGraphBuilder, x: WriterValue, shifts: Any, dims: Any = ()) -> str:
    moves = [shifts] if isinstance(shifts, int) else list(shifts)
    axes = [dims] if isinstance(dims, int) else list(dims)
    out: Any = x
    if not axes:
        out, axes = w.reshape(x, [-1]), [0]
    for move, d in zip(moves, axes, strict=True):
        n = x.sizes[d % x.ndim] if dims else math.prod(n or 0 for n in x.sizes)
        cut = -(move % n) if n else -move  # from the end, so the size may be unknown
        if cut:
            out = w.op("Concat", w.slice(out, d, cut, LAST), w.slice(out, d, 0, cut), axis=d % x.ndim)
    return out if dims else w.op("Reshape", out, w.shape(x))


@translates("aten.pad", "aten.constant_pad_nd")
def pad(w: OnnxGraphBuilder, x: WriterValue, pad: Any, mode: Any = "constant", value: Any = None) -> str:
    if not isinstance(mode, str):  # constant_pad_nd has its value here
        mode, value = "constant", mode
    if mode == "constant" and value is None:
        value = 0
    name = {"replicate": "edge", "circular": "wrap"}.get(mode, mode)
    if not len(pad):
        return w.op("Identity", x)
    both = _prepare_onnx_paddings(x.ndim, pad)
    begin, end = both[: x.ndim], both[x.ndim :]
    if name == "wrap" and w.version < 19:
        out: Any = x
        for d in range(x.ndim):
            parts = [out]
            if begin[d]:
                parts.insert(0, w.slice(out, d, -begin[d], LAST))
            if end[d]:
                parts.append(w.slice(out, d, 0, end[d]))
            out = w.op("Concat", *parts, axis=d) if len(parts) > 1 else out
        return w.put(out)
    filling = w.constant(value or 0, x.dtype) if name == "constant" else None
    return w.op("Pad", x, w.ints(both), filling, mode=name)


for _name in ("reflection", "replication"):
    for _rank in (1, 2, 3):
        _mode = {"reflection": "reflect", "replication": "edge"}[_name]
        translates(f"aten.{_name}_pad{_rank}d")(lambda w, x, padding, mode=_mode: pad(w, x, padding, mode))


@translates("aten.tril")
def tril(w: OnnxGraphBuilder, x: WriterValue, diagonal: int = 0) -> str:
    return _tril_or_triu(w, x, diagonal, 0)


@translates("aten.triu")
def triu(w: OnnxGraphBuilder, x: WriterValue, diagonal: int = 0) -> str:
    return _tril_or_triu(w, x, diagonal, 1)


def _tril_or_triu(w: OnnxGraphBuilder, x: WriterValue, diagonal: int, upper: int) -> str:
    if x.dtype == "bool":  # onnxruntime cannot slice bool
        return w.cast(w.op("Trilu", w.cast(x, "int64"), w.constant(diagonal, "int64"), upper=upper), "bool", "int64")
    return w.op("Trilu", x, w.constant(diagonal, "int64") if diagonal else None, upper=upper)


def _constant_fill(w: OnnxGraphBuilder, sizes: Any, value: Any, dtype: str) -> str:
    if isinstance(value, WriterValue):
        return w.op("Expand", w.cast(value, dtype), w.ints(sizes))
    if all(is_fixed(n) for n in sizes) and math.prod(sizes) <= 64:
        return w.constant(np.full(tuple(sizes), value), dtype)
    return w.op("Expand", w.constant(value, dtype), w.ints(sizes))


def _element_type(dtype: Any, default: str = "float32") -> str:
    return default if dtype is None else dtype_name(dtype)


@translates("aten.zeros")
def zeros(w: OnnxGraphBuilder, size: Any, *, dtype: Any = None) -> str:
    return _constant_fill(w, size, 0, _element_type(dtype))


@translates("aten.ones")
def ones(w: OnnxGraphBuilder, size: Any, *, dtype: Any = None) -> str:
    return _constant_fill(w, size, 1, _element_type(dtype))


@translates("aten.full")
def full(w: OnnxGraphBuilder, size: Any, value: Any, *, dtype: Any = None) -> str:
    kind = "bool" if isinstance(value, bool) else "int64" if isinstance(value, int) else "float32"
    return _constant_fill(w, size, value, _element_type(dtype, value.dtype if isinstance(value, WriterValue) else kind))


@translates("aten.empty")
def empty(w: OnnxGraphBuilder, size: Any, *, dtype: Any = None) -> str:
    return _constant_fill(w, size, 0, _element_type(dtype))


@translates("aten.empty_strided")
def empty_strided(w: OnnxGraphBuilder, size: Any, _stride: Any, *, dtype: Any = None) -> str:
    return _constant_fill(w, size, 0, _element_type(dtype))


@translates("aten.new_empty_strided")
def new_empty_strided(w: OnnxGraphBuilder, x: WriterValue, size: Any, _stride: Any, *, dtype: Any = None) -> str:
    return _constant_fill(w, size, 0, _element_type(dtype, x.dtype))


@translates("aten.empty_permuted")
def empty_permuted(w: OnnxGraphBuilder, size: Any, _layout: Any, *, dtype: Any = None) -> str:
    return _constant_fill(w, size, 0, _element_type(dtype))


def _fill_like(w: OnnxGraphBuilder, x: WriterValue, value: Any, dtype: Any) -> str:
    return _constant_fill(w, [w.size(x, d) for d in range(x.ndim)], value, _element_type(dtype, x.dtype))


@translates("aten.zeros_like", "aten.empty_like")
def zeros_like(w: OnnxGraphBuilder, x: WriterValue, *, dtype: Any = None) -> str:
    return _fill_like(w, x, 0, dtype)


@translates("aten.ones_like")
def ones_like(w: OnnxGraphBuilder, x: WriterValue, *, dtype: Any = None) -> str:
    return _fill_like(w, x, 1, dtype)


@translates("aten.full_like", "aten.fill")
def full_like(w: OnnxGraphBuilder, x: WriterValue, value: Any, *, dtype: Any = None) -> str:
    return _fill_like(w, x, value, dtype)


@translates("aten.zero")
def zero(w: OnnxGraphBuilder, x: WriterValue) -> str:
    return _fill_like(w, x, 0, None)


@translates("aten.new_zeros", "aten.new_empty")
def new_zeros(w: OnnxGraphBuilder, x: WriterValue, size: Any, *, dtype: Any = None) -> str:
    return _constant_fill(w, size, 0, _element_type(dtype, x.dtype))


@translates("aten.new_ones")
def new_ones(w: OnnxGraphBuilder, x: WriterValue, size: Any, *, dtype: Any = None) -> str:
    return _constant_fill(w, size, 1, _element_type(dtype, x.dtype))


@translates("aten.new_full")
def new_full(w: OnnxGraphBuilder, x: WriterValue, size: Any, value: Any, *, dtype: Any = None) -> str:
    return _constant_fill(w, size, value, _element_type(dtype, x.dtype))


@translates("aten.scalar_tensor")
def scalar_tensor(w: OnnxGraphBuilder, value: Any, *, dtype: Any = None) -> str:
    kind = "float32" if dtype is None else dtype_name(dtype)
    return w.cast(value, kind)


@translates("aten.arange.default")
def arange_to(w: OnnxGraphBuilder, end: Any, *, dtype: Any = None) -> str:
    return arange(w, 0, end, dtype=dtype)


@translates("aten.arange.start", "aten.arange.start_step")
def arange(w: OnnxGraphBuilder, start: Any, end: Any, step: Any = 1, *, dtype: Any = None) -> str:
    floats = any(isinstance(v, float) or isinstance(v, WriterValue) and v.is_float for v in (start, end, step))
    kind = _element_type(dtype, "float32" if floats else "int64")
    if floats and not kind.startswith(("float", "bfloat")):
        raise OnnxExporterError("arange: integers between floating-point numbers")
    within = "float32" if floats else "int64"
    return w.cast(w.op("Range", *(w.cast(v, within) for v in (start, end, step))), kind, within)


@translates("aten.eye")
def eye(w: OnnxGraphBuilder, n: Any, m: Any = None, *, dtype: Any = None) -> str:
    from .._element_types import NUMBERS

    return w.op(
        "EyeLike", _constant_fill(w, [n, n if m is None else m], 0, "float32"), dtype=NUMBERS[_element_type(dtype)]
    )


@translates("aten.linspace")
def linspace(w: OnnxGraphBuilder, start: Any, end: Any, steps: int, *, dtype: Any = None) -> str:
    kind = _element_type(dtype)
    if not kind.startswith(("float", "bfloat")):
        raise OnnxExporterError("linspace: integers between floating-point numbers")
    return w.constant(np.linspace(start, end, steps), kind)


@translates("aten.meshgrid")
def meshgrid(w: OnnxGraphBuilder, tensors: Any, *, indexing: str = "ij") -> list[str]:
    sizes = [w.size(x, 0) if x.ndim else 1 for x in tensors]
    out = []
    for i, x in enumerate(tensors):
        shaped = w.reshape(x, [-1 if d == i else 1 for d in range(len(tensors))])
        whole = w.op("Expand", shaped, w.ints(sizes))
        if indexing == "xy" and len(tensors) > 1:
            whole = w.permute(whole, [1, 0, *range(2, len(tensors))])
        out.append(whole)
    return out


@translates("aten.sym_size", "aten.size")
def sym_size(w: OnnxGraphBuilder, x: WriterValue, dim: int) -> str:
    return w.put(w.size(WriterValue(x.name, x.dtype, (None,) * x.ndim), dim))


@translates("aten.sym_numel", "aten.numel")
def sym_numel(w: OnnxGraphBuilder, x: WriterValue) -> str:
    return w.op("Size", x)


@translates("aten.item", "aten._local_scalar_dense")
def item(w: OnnxGraphBuilder, x: WriterValue) -> str:
    return w.reshape(x, []) if x.ndim else x.name


@translates("_operator.neg", "math.neg")
def negative(w: OnnxGraphBuilder, x: WriterValue) -> str:
    return w.op("Neg", x)


@translates("math.trunc", "torch.sym_int", "math.floor", "math.ceil", "torch.sym_float")
def to_int(w: OnnxGraphBuilder, x: WriterValue) -> str:
    return w.cast(x, "int64")


@translates("torch.sym_max", "builtins.max")
def sym_max(w: OnnxGraphBuilder, *values: Any) -> str:
    return w.op("Max", *(w.put(v) for v in values))


@translates("torch.sym_min", "builtins.min")
def sym_min(w: OnnxGraphBuilder, *values: Any) -> str:
    return w.op("Min", *(w.put(v) for v in values))


@translates("aten.pixel_shuffle")
def pixel_shuffle(w: OnnxGraphBuilder, x: WriterValue, factor: int) -> str:
    value, sizes = _as_images(w, x)
    out = w.op("DepthToSpace", value, blocksize=factor, mode="CRD")
    if x.ndim == 4:
        return out
    c, h, v = sizes[-3:]
    count = c // (factor * factor) if is_fixed(c) else w.op("Div", c, w.constant(factor * factor, "int64"))
    return w.reshape(out, [*sizes[:-3], count, w.product([h, factor]), w.product([v, factor])])


def _as_images(w: OnnxGraphBuilder, x: WriterValue) -> tuple[Any, list[Any]]:
    """Return a value with one batch dimension before the last three, and its sizes."""
    sizes = [w.size(x, d) for d in range(x.ndim)]
    return (x if x.ndim == 4 else w.reshape(x, [w.product(sizes[:-3]), *sizes[-3:]])), sizes


@translates("aten.pixel_unshuffle")
def pixel_unshuffle(w: OnnxGraphBuilder, x: WriterValue, factor: int) -> str:
    value, sizes = _as_images(w, x)
    c, h, v = sizes[-3:]
    n = w.product(sizes[:-3])
    rows, columns = (k // factor if is_fixed(k) else w.op("Div", k, w.constant(factor, "int64")) for k in (h, v))
    cut = w.reshape(value, [n, c, rows, factor, columns, factor])
    return w.reshape(w.permute(cut, [0, 1, 3, 5, 2, 4]), [*sizes[:-3], w.product([c, factor * factor]), rows, columns])


@translates("aten.channel_shuffle")
def channel_shuffle(w: OnnxGraphBuilder, x: WriterValue, groups: int) -> str:
    sizes = [w.size(x, d) for d in range(x.ndim)]
    cut = w.reshape(x, [sizes[0], groups, x.sizes[1] // groups, *sizes[2:]])  # type: ignore[operator]
    return w.reshape(w.permute(cut, [0, 2, 1, *range(3, x.ndim + 1)]), sizes)


@translates("aten.diff")
def diff(
    w: OnnxGraphBuilder,
    x: WriterValue,
    n: int = 1,
    dim: int = -1,
    prepend: WriterValue | None = None,
    append: WriterValue | None = None,
) -> str:
    if not n:
        return w.op("Identity", x)
    parts = [part for part in (prepend, x, append) if part is not None]
    out = w.op("Concat", *parts, axis=dim) if len(parts) > 1 else x.name
    for _ in range(n):
        ahead, behind = w.slice(out, dim, 1, LAST), w.slice(out, dim, 0, -1)
        out = w.op("Xor" if x.dtype == "bool" else "Sub", ahead, behind)
    return out
