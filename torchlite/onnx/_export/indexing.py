"""Export rules of gather, scatter and index ops."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import OnnxExporterError
from .elementwise import to_common_type
from .graph_builder import LAST, OnnxGraphBuilder, WriterValue, translates
from .reductions import reduce_with


@translates("aten.embedding")
def embedding(w: OnnxGraphBuilder, weight: WriterValue, indices: WriterValue, _padding_idx: int = -1) -> str:
    """Gather rows; the padding's row differs from others in backward alone."""
    return w.op("Gather", weight, indices)


@translates("aten.index_select")
def index_select(w: OnnxGraphBuilder, x: WriterValue, dim: int, index: WriterValue) -> str:
    places = w.reshape(index, [1]) if not index.ndim else index.name
    return w.op("Gather", x, places, axis=dim % x.ndim)


@translates("aten.gather")
def gather(w: OnnxGraphBuilder, x: WriterValue, dim: int, index: WriterValue) -> str:
    if not x.ndim or not index.ndim:
        places = w.reshape(index, [-1]) if not index.ndim else index
        values = w.reshape(x, [-1]) if not x.ndim else x
        return w.op("Reshape", w.op("GatherElements", values, places, axis=0), w.shape(index))
    return w.op("GatherElements", x, index, axis=dim % x.ndim)


@translates("aten.take_along_dim")
def take_along_dim(w: OnnxGraphBuilder, x: WriterValue, index: WriterValue, dim: int | None = None) -> str:
    if dim is None:
        return w.op("GatherElements", w.reshape(x, [-1]), w.reshape(index, [-1]), axis=0)
    axis, names = dim % x.ndim, []
    for value in (x, index):  # both are broadcast in the other dimensions
        sizes = [value.sizes[d] if d == axis else None if None in (a, b) else max(a, b) if a and b else 0
                 for d, (a, b) in enumerate(zip(x.sizes, index.sizes, strict=True))]  # fmt: skip
        if None in sizes and x.sizes != index.sizes:
            raise OnnxExporterError("take_along_dim: values of no fixed size that may be broadcast")
        names.append(value.name if tuple(sizes) == value.sizes else w.op("Expand", value, w.ints(sizes)))
    return w.op("GatherElements", *names, axis=axis)


@translates("aten.index", "aten._unsafe_index")
def index(w: OnnxGraphBuilder, x: WriterValue, indices: Any) -> str:
    used = [(d, i) for d, i in enumerate(indices) if i is not None]
    if len(used) == 1 and used[0][1].dtype == "bool":
        return _select_by_mask(w, x, used[0][0], used[0][1])
    if any(i.dtype == "bool" for _, i in used):
        used = [(d + n, part) for d, i in used for n, part in enumerate(_mask_indices(w, i))]
    if len(used) == 1:
        d, one = used[0]
        return w.op("Gather", x, one, axis=d)
    return _index_many(w, x, [d for d, _ in used], [i for _, i in used])


def _mask_indices(w: OnnxGraphBuilder, mask: WriterValue) -> list[WriterValue]:
    if mask.dtype != "bool":
        return [mask]
    found = w.op("NonZero", mask)
    rows = [w.squeeze(w.slice(found, 0, n, n + 1), 0) for n in range(mask.ndim)]
    return [WriterValue(row, "int64", (None,)) for row in rows]


def _select_by_mask(w: OnnxGraphBuilder, x: WriterValue, dim: int, mask: WriterValue) -> str:
    if mask.ndim == 1:
        return w.op("Compress", x, mask, axis=dim)
    places = w.permute(w.op("NonZero", mask), [1, 0])
    if dim == 0:
        return w.op("GatherND", x, places)
    raise OnnxExporterError("index: a mask of several dimensions behind others")


def _index_many(w: OnnxGraphBuilder, x: WriterValue, dims: list[int], indices: list[WriterValue]) -> str:
    """Index by several broadcast indices: move their dimensions first, then to the position of the first."""
    shape: Any = indices[0].name
    for other in indices[1:]:
        shape = w.op("Add", shape, other)
    whole = w.op("Shape", shape)
    wide = [w.unsqueeze(w.op("Expand", i, whole), max(j.ndim for j in indices)) for i in indices]
    rank = max(i.ndim for i in indices)
    places = w.op("Concat", *wide, axis=rank)
    rest = [d for d in range(x.ndim) if d not in dims]
    front: Any = x if dims == list(range(len(dims))) else w.permute(x, [*dims, *rest])
    out = w.op("GatherND", front, places)
    together = dims == list(range(dims[0], dims[0] + len(dims)))
    if not together or dims[0] == 0:
        return out
    before = dims[0]
    order = [*range(rank, rank + before), *range(rank), *range(rank + before, rank + len(rest))]
    return w.permute(out, order)


@translates("aten.index_put", "aten._unsafe_index_put", "aten.index_put_")
def index_put(w: OnnxGraphBuilder, x: WriterValue, indices: Any, values: WriterValue, accumulate: bool = False) -> str:
    used = [(d, i) for d, i in enumerate(indices) if i is not None]
    if len(used) == 1 and used[0][1].dtype == "bool" and not accumulate and values.ndim == 0:
        d, mask = used[0]
        rest = x.ndim - d - mask.ndim
        wide = w.reshape(mask, [*(w.size(mask, n) for n in range(mask.ndim)), *[1] * rest]) if rest else mask.name
        return w.op("Where", wide, w.cast(values, x.dtype), x)
    parts = [(d + n, part) for d, i in used for n, part in enumerate(_mask_indices(w, i))]
    dims = [d for d, _ in parts]
    if dims != list(range(len(dims))):
        raise OnnxExporterError("index_put: indices behind dimensions that have none")
    rank = max(i.ndim for _, i in parts)
    total: Any = parts[0][1].name
    for _, other in parts[1:]:
        total = w.op("Add", total, other)
    whole = w.op("Shape", total)
    places = w.op("Concat", *(w.unsqueeze(w.op("Expand", i, whole), rank) for _, i in parts), axis=rank)
    tail = w.op("Shape", x, start=len(dims)) if x.ndim > len(dims) else w.constant(np.zeros(0), "int64")
    filled = w.op("Expand", w.cast(values, x.dtype), w.op("Concat", whole, tail, axis=0))
    return w.op("ScatterND", x, places, filled, reduction="add" if accumulate else None)


@translates("aten.scatter", "aten.scatter.src", "aten.scatter.value")
def scatter(
    w: OnnxGraphBuilder, x: WriterValue, dim: int, index: WriterValue, src: Any, *, reduce: str | None = None
) -> str:
    if not isinstance(src, WriterValue):
        src = WriterValue(w.op("Expand", w.constant(src, x.dtype), w.shape(index)), x.dtype, index.sizes)
    elif src.sizes != index.sizes:
        src = WriterValue(_trim_source(w, src, index), src.dtype, index.sizes)
    kind = {None: None, "add": "add", "multiply": "mul"}[reduce]
    return w.op("ScatterElements", x, index, w.cast(src, x.dtype), axis=dim % max(x.ndim, 1), reduction=kind)


def _trim_source(w: OnnxGraphBuilder, src: WriterValue, index: WriterValue) -> str:
    """Return the part of a source that an index covers."""
    dims = list(range(src.ndim))
    return w.op("Slice", src, w.ints([0] * len(dims)), w.shape(index), w.ints(dims))


@translates("aten.scatter_add")
def scatter_add(w: OnnxGraphBuilder, x: WriterValue, dim: int, index: WriterValue, src: WriterValue) -> str:
    return scatter(w, x, dim, index, src, reduce="add")


@translates("aten.scatter_reduce")
def scatter_reduce(
    w: OnnxGraphBuilder,
    x: WriterValue,
    dim: int,
    index: WriterValue,
    src: WriterValue,
    reduce: str,
    *,
    include_self: bool = True,
) -> str:
    kinds = {"sum": "add", "prod": "mul", "amax": "max", "amin": "min"}
    if reduce == "mean":
        start: WriterValue = x
        if not include_self:
            zeros = scatter(w, x, dim, index, 0)
            start = WriterValue(zeros, x.dtype, x.sizes)
        total = scatter(w, start, dim, index, src, reduce="add")
        own = w.op("Expand", w.constant(int(include_self), x.dtype), w.shape(x))
        ones = WriterValue(w.op("Expand", w.constant(1, x.dtype), w.shape(index)), x.dtype, index.sizes)
        count = scatter(w, WriterValue(own, x.dtype, x.sizes), dim, index, ones, reduce="add")
        count = w.op("Max", count, w.constant(1, x.dtype))
        if x.is_float:
            return w.op("Div", total, count)
        return w.op("Div", w.op("Sub", total, w.op("Mod", total, count)), count)
    base: Any = x
    if not include_self:
        info = np.finfo if x.is_float else np.iinfo
        first = {"sum": 0, "prod": 1, "amax": -np.inf if x.is_float else info(x.dtype).min,
                 "amin": np.inf if x.is_float else info(x.dtype).max}[reduce]  # fmt: skip
        filled = w.op("Expand", w.constant(first, x.dtype), w.shape(index))
        base = w.op("ScatterElements", x, index, filled, axis=dim % max(x.ndim, 1))
    part = src if src.sizes == index.sizes else WriterValue(_trim_source(w, src, index), src.dtype, index.sizes)
    return w.op("ScatterElements", base, index, part, axis=dim % max(x.ndim, 1), reduction=kinds[reduce])


def _expand_row_index(w: OnnxGraphBuilder, x: WriterValue, dim: int, index: WriterValue, source: WriterValue) -> str:
    """Expand a one-dimensional index to every element of a source."""
    shaped = w.reshape(index, [-1 if d == dim % x.ndim else 1 for d in range(x.ndim)])
    return w.op("Expand", shaped, w.shape(source))


@translates("aten.index_add")
def index_add(
    w: OnnxGraphBuilder, x: WriterValue, dim: int, index: WriterValue, source: WriterValue, *, alpha: Any = 1
) -> str:
    part = source.name if alpha == 1 else w.op("Mul", source, w.constant(alpha, source.dtype))
    return w.op(
        "ScatterElements", x, _expand_row_index(w, x, dim, index, source), part, axis=dim % x.ndim, reduction="add"
    )


@translates("aten.index_copy")
def index_copy(w: OnnxGraphBuilder, x: WriterValue, dim: int, index: WriterValue, source: WriterValue) -> str:
    return w.op("ScatterElements", x, _expand_row_index(w, x, dim, index, source), source, axis=dim % x.ndim)


@translates("aten.index_fill")
def index_fill(w: OnnxGraphBuilder, x: WriterValue, dim: int, index: WriterValue, value: Any) -> str:
    sizes = [w.size(x, d) for d in range(x.ndim)]
    sizes[dim % x.ndim] = w.size(index, 0)
    shaped = w.reshape(index, [-1 if d == dim % x.ndim else 1 for d in range(x.ndim)])
    whole = w.op("Expand", shaped, w.ints(sizes))
    filled = w.op("Expand", w.cast(value, x.dtype), w.ints(sizes))
    return w.op("ScatterElements", x, whole, filled, axis=dim % x.ndim)


@translates("aten.slice_scatter")
def slice_scatter(
    w: OnnxGraphBuilder,
    x: WriterValue,
    src: WriterValue,
    dim: int = 0,
    start: Any = None,
    end: Any = None,
    step: int = 1,
) -> str:
    dim %= x.ndim
    size = w.size(x, dim)
    every = w.op("Range", w.constant(0, "int64"), w.put(size), w.constant(1, "int64"))
    places = w.slice(every, 0, 0 if start is None else start, LAST if end is None else end, step)
    return index_copy(w, x, dim, WriterValue(places, "int64", (None,)), src)


@translates("aten.select_scatter")
def select_scatter(w: OnnxGraphBuilder, x: WriterValue, src: WriterValue, dim: int, index: int) -> str:
    dim %= x.ndim
    at = WriterValue(w.constant([index], "int64"), "int64", (1,))
    sizes = (*src.sizes[:dim], 1, *src.sizes[dim:])
    return index_copy(w, x, dim, at, WriterValue(w.unsqueeze(src, dim), src.dtype, sizes))


@translates("aten.one_hot")
def one_hot(w: OnnxGraphBuilder, x: WriterValue, num_classes: int = -1) -> str:
    depth: Any = num_classes
    if num_classes == -1:
        flat = reduce_with(w, "ReduceMax", w.reshape(x, [-1]), [0], False)
        depth = w.op("Add", flat, w.constant(1, "int64"))
    return w.op("OneHot", x, w.put(depth), w.constant([0, 1], "int64"))


@translates("aten.nonzero")
def nonzero(w: OnnxGraphBuilder, x: WriterValue) -> str:
    if not x.ndim:
        raise OnnxExporterError("nonzero: of a number, for which ONNX gives another shape")
    return w.permute(w.op("NonZero", x), [1, 0])


@translates("aten.masked_select")
def masked_select(w: OnnxGraphBuilder, x: WriterValue, mask: WriterValue) -> str:
    whole = w.op("Expand", mask, w.shape(x))
    return w.op("Compress", w.reshape(x, [-1]), w.reshape(whole, [-1]), axis=0)


@translates("aten.masked_scatter")
def masked_scatter(w: OnnxGraphBuilder, x: WriterValue, mask: WriterValue, source: WriterValue) -> str:
    places = w.permute(w.op("NonZero", w.op("Expand", mask, w.shape(x))), [1, 0])
    count = w.op("Shape", places, start=0, end=1)
    part = w.op("Slice", w.reshape(source, [-1]), w.ints([0]), count, w.ints([0]))
    return w.op("ScatterND", x, places, part)


@translates("aten.searchsorted")
def searchsorted(
    w: OnnxGraphBuilder, edges: WriterValue, values: Any, *, out_int32: bool = False, right: bool = False,
    side: str | None = None, sorter: WriterValue | None = None,
) -> str:  # fmt: skip
    """Count the edges below each value. NaN is above all others."""
    if not isinstance(values, WriterValue):
        values = WriterValue(w.constant(values, edges.dtype), edges.dtype, ())
    if sorter is not None:
        edges = WriterValue(w.op("GatherElements", edges, sorter, axis=edges.ndim - 1), edges.dtype, edges.sizes)
    (low, wide), dtype = to_common_type(w, edges, values)
    if edges.ndim > 1:  # one row of edges for each row of values
        low = w.unsqueeze(low, edges.ndim - 1)
    wide = w.unsqueeze(wide, values.ndim)
    reached = right or side == "right"
    if dtype.startswith(("float", "bfloat")):
        # A value of NaN is above every edge but those of NaN; an edge of NaN is above every value but those of NaN.
        below = w.op("Not", w.op("Less", wide, low) if reached else w.op("LessOrEqual", wide, low))
        edge_nan, value_nan = w.op("IsNaN", low), w.op("IsNaN", wide)
        among_nan = value_nan if reached else w.op("And", value_nan, w.op("Not", edge_nan))
        plain = w.op("Not", w.op("Or", edge_nan, value_nan))
        below = w.op("Or", among_nan, w.op("And", plain, below))
    else:
        below = w.op("GreaterOrEqual" if reached else "Greater", wide, low)
    count = reduce_with(w, "ReduceSum", w.cast(below, "int64", "bool"), [values.ndim], False)
    return w.cast(count, "int32", "int64") if out_int32 else count


@translates("aten.bucketize")
def bucketize(
    w: OnnxGraphBuilder, values: Any, edges: WriterValue, *, out_int32: bool = False, right: bool = False
) -> str:
    return searchsorted(w, edges, values, out_int32=out_int32, right=right)
