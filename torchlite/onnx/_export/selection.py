"""Export rules of diagonals, windows, unique elements and counts."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import OnnxExporterError
from .elementwise import to_common_type
from .graph_builder import LAST, OnnxGraphBuilder, WriterValue, is_fixed, translates
from .reductions import norm, reduce_with, topk


def _range(w: OnnxGraphBuilder, count: Any) -> str:
    if is_fixed(count):
        return w.constant(np.arange(count), "int64")
    return w.op("Range", w.constant(0, "int64"), count, w.constant(1, "int64"))


@translates("aten.diagonal", "aten.diagonal_copy")
def diagonal(w: OnnxGraphBuilder, x: WriterValue, offset: int = 0, dim1: int = 0, dim2: int = 1) -> str:
    """Gather the elements from the two dimensions as one."""
    places, order, rest = _diagonal_places(w, x, offset, dim1, dim2)
    flat = w.reshape(w.permute(x, order), [*(w.size(x, d) for d in rest), -1])
    return w.op("Gather", flat, places, axis=len(rest))


def _diagonal_places(w: OnnxGraphBuilder, x: WriterValue, offset: int, dim1: int, dim2: int) -> tuple[str, list, list]:
    """Return the places of a diagonal in the two dimensions as one, the order with these last, and the others."""
    dim1, dim2 = dim1 % x.ndim, dim2 % x.ndim
    rest = [d for d in range(x.ndim) if d not in (dim1, dim2)]
    rows, columns = w.size(x, dim1), w.size(x, dim2)
    below, right = max(-offset, 0), max(offset, 0)
    if is_fixed(rows) and is_fixed(columns):
        count = max(min(rows - below, columns - right), 0)
        places = w.constant((np.arange(count) + below) * columns + np.arange(count) + right, "int64")
    else:
        ends = [w.op("Sub", n, w.constant(by, "int64")) for n, by in ((rows, below), (columns, right))]
        count = w.op("Max", w.op("Min", *ends), w.constant(0, "int64"))
        every = _range(w, count)
        down = w.op("Mul", w.op("Add", every, w.constant(below, "int64")), columns)
        places = w.op("Add", down, w.op("Add", every, w.constant(right, "int64")))
    return places, [*rest, dim1, dim2], rest


@translates("aten.diagonal_scatter")
def diagonal_scatter(
    w: OnnxGraphBuilder, x: WriterValue, src: WriterValue, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> str:
    places, order, rest = _diagonal_places(w, x, offset, dim1, dim2)
    sizes = [w.size(x, d) for d in order]
    flat = w.reshape(w.permute(x, order), [*sizes[: len(rest)], -1])
    whole = w.op("Expand", places, w.shape(src))
    out = w.reshape(w.op("ScatterElements", flat, whole, w.cast(src, x.dtype), axis=len(rest)), sizes)
    return w.permute(out, [order.index(d) for d in range(x.ndim)])


@translates("aten.unfold", "aten.unfold_copy")
def unfold(w: OnnxGraphBuilder, x: WriterValue, dim: int, size: int, step: int) -> str:
    """Gather windows of a dimension, and put the place in the window last."""
    if not x.ndim:
        return w.op("Expand", x, w.ints([size]))
    dim %= x.ndim
    length = w.size(x, dim)
    if is_fixed(length):
        places = w.constant(np.arange(0, length - size + 1, step)[:, None] + np.arange(size), "int64")
    else:
        last = w.op("Div", w.op("Sub", length, w.constant(size, "int64")), w.constant(step, "int64"))
        begins = w.op("Mul", _range(w, w.op("Add", last, w.constant(1, "int64"))), w.constant(step, "int64"))
        places = w.op("Add", w.unsqueeze(begins, 1), w.constant(np.arange(size), "int64"))
    out = w.op("Gather", x, places, axis=dim)
    return w.permute(out, [*range(dim + 1), *range(dim + 2, x.ndim + 1), dim + 1])


@translates("aten.as_strided", "aten.as_strided_copy")
def as_strided(w: OnnxGraphBuilder, x: WriterValue, size: Any, stride: Any, storage_offset: int | None = None) -> str:
    """Gather from the flat elements of a contiguous tensor."""
    if not x.dense:
        raise OnnxExporterError("as_strided: of a tensor that is not contiguous")
    places = np.asarray(storage_offset or 0)
    for n, step in zip(size, stride, strict=True):
        places = places[..., None] + np.arange(n) * step
    return w.op("Gather", w.reshape(x, [-1]), w.constant(places, "int64"))


@translates("aten._unique2")
def unique(
    w: OnnxGraphBuilder, x: WriterValue, _sorted: bool = True, return_inverse: bool = False,
    return_counts: bool = False,
) -> list[str | None]:  # fmt: skip
    """The unique elements in order, as PyTorch's CPU kernel gives them also if they need not be sorted."""
    values, _, inverse, counts = w.op("Unique", x, outputs=4, sorted=1)
    return [values, w.op("Reshape", inverse, w.shape(x)) if return_inverse else None, counts if return_counts else None]


@translates("aten._unique")
def unique_values(
    w: OnnxGraphBuilder, x: WriterValue, _sorted: bool = True, return_inverse: bool = False
) -> list[str | None]:
    return unique(w, x, True, return_inverse)[:2]


@translates("aten.unique_dim")
def unique_dim(
    w: OnnxGraphBuilder, x: WriterValue, dim: int, _sorted: bool = True, return_inverse: bool = False,
    return_counts: bool = False,
) -> list[str | None]:  # fmt: skip
    values, _, inverse, counts = w.op("Unique", x, outputs=4, sorted=1, axis=dim % x.ndim)
    return [values, inverse if return_inverse else None, counts if return_counts else None]


@translates("aten.unique_consecutive")
def unique_consecutive(
    w: OnnxGraphBuilder, x: WriterValue, return_inverse: bool = False, return_counts: bool = False,
    dim: int | None = None,
) -> list[str | None]:  # fmt: skip
    if dim is not None and x.ndim != 1:
        raise OnnxExporterError("unique_consecutive: slices of a dimension")
    flat = w.reshape(x, [-1])
    changed = w.op("Not", w.op("Equal", w.slice(flat, 0, 1, LAST), w.slice(flat, 0, 0, -1)))
    size = w.op("Shape", flat)
    first = w.op("Expand", w.constant(True, "bool"), w.op("Min", size, w.constant([1], "int64")))
    kept = w.op("Concat", first, changed, axis=0)
    values = w.op("Compress", flat, kept, axis=0)
    inverse = counts = None
    if return_inverse:
        group = w.op("CumSum", w.cast(kept, "int64", "bool"), w.constant(0, "int64"))
        inverse = w.op("Reshape", w.op("Sub", group, w.constant(1, "int64")), w.shape(x))
    if return_counts:
        begins = w.squeeze(w.op("NonZero", kept), 0)
        counts = w.op("Sub", w.op("Concat", w.slice(begins, 0, 1, LAST), size, axis=0), begins)
    return [values, inverse, counts]


@translates("aten.bincount")
def bincount(w: OnnxGraphBuilder, x: WriterValue, weights: WriterValue | None = None, minlength: Any = 0) -> str:
    places = w.cast(x, "int64")
    most = reduce_with(w, "ReduceMax", w.op("Concat", places, w.constant([-1], "int64"), axis=0), [0], False)
    count = w.op("Max", w.op("Add", most, w.constant(1, "int64")), w.put(minlength))
    kind = "int64" if weights is None else weights.dtype if weights.dtype == "float32" else "float64"
    if weights is None:
        added = w.op("Expand", w.constant(1, kind), w.shape(x))
    else:
        added = w.cast(weights, kind)
    zeros = w.op("Expand", w.constant(0, kind), w.reshape(count, [1]))
    return w.op("ScatterElements", zeros, places, added, axis=0, reduction="add")


@translates("aten.isin")
def isin(w: OnnxGraphBuilder, elements: Any, tests: Any, *, assume_unique: bool = False, invert: bool = False) -> str:
    """Compare each element with each test; that they are unique speeds up PyTorch alone."""
    del assume_unique
    (a, b), _ = to_common_type(w, elements, tests)
    rank = elements.ndim if isinstance(elements, WriterValue) else 0
    equal = w.op("Equal", w.unsqueeze(a, rank), w.reshape(b, [-1]))
    found = w.op("Greater", reduce_with(w, "ReduceSum", w.cast(equal, "int32", "bool"), [rank], False),
                 w.constant(0, "int32"))  # fmt: skip
    return w.op("Not", found) if invert else found


@translates("aten.cdist", "aten._cdist_forward")
def cdist(w: OnnxGraphBuilder, x: WriterValue, y: WriterValue, p: float = 2, _compute_mode: int | None = None) -> str:
    """Norms of all differences of two rows; PyTorch's modes differ in speed."""
    apart = WriterValue(w.op("Sub", w.unsqueeze(x, x.ndim - 1), w.unsqueeze(y, y.ndim - 2)), x.dtype,
                        (None,) * (max(x.ndim, y.ndim) + 1))  # fmt: skip
    return norm(w, apart, p, [apart.ndim - 1])


@translates("aten.pdist", "aten._pdist_forward")
def pdist(w: OnnxGraphBuilder, x: WriterValue, p: float = 2) -> str:
    rows = x.sizes[0]
    if rows is None:
        raise OnnxExporterError("pdist: rows of no fixed number")
    first, second = (w.op("Gather", x, w.constant(i, "int64"), axis=0) for i in np.triu_indices(rows, 1))
    return norm(w, WriterValue(w.op("Sub", first, second), x.dtype, (None, None)), p, [1])


@translates("aten.kthvalue")
def kthvalue(w: OnnxGraphBuilder, x: WriterValue, k: int, dim: int = -1, keepdim: bool = False) -> list[str]:
    if not x.ndim:
        return [w.op("Identity", x), w.constant(0, "int64")]
    dim %= x.ndim
    parts = [w.slice(part, dim, k - 1, k) for part in topk(w, x, k, dim, False)]
    return parts if keepdim else [w.squeeze(part, dim) for part in parts]


@translates("aten.put")
def put(w: OnnxGraphBuilder, x: WriterValue, index: WriterValue, source: WriterValue, accumulate: bool = False) -> str:
    flat, places, values = (w.reshape(v, [-1]) for v in (x, index, source))
    out = w.op("ScatterElements", flat, places, values, axis=0, reduction="add" if accumulate else None)
    return w.op("Reshape", out, w.shape(x))


@translates("aten.repeat_interleave.Tensor")
def repeated_places(w: OnnxGraphBuilder, repeats: WriterValue, *, output_size: Any = None) -> str:
    """Return each place as often as given: a result belongs to the first place whose total is above its own. The sum of
    the repeats is computed, so `output_size` is not needed.
    """
    del output_size
    totals = w.op("CumSum", w.cast(repeats, "int64"), w.constant(0, "int64"))
    count = reduce_with(w, "ReduceSum", w.cast(repeats, "int64"), [0], False)
    reached = w.op("GreaterOrEqual", w.unsqueeze(_range(w, count), 1), totals)
    return w.cast(reduce_with(w, "ReduceSum", w.cast(reached, "int64", "bool"), [1], False), repeats.dtype, "int64")


@translates("aten.repeat_interleave.self_Tensor")
def repeat_each(
    w: OnnxGraphBuilder, x: WriterValue, repeats: WriterValue, dim: int | None = None, *, output_size: Any = None
) -> str:
    del output_size
    value: Any = x if dim is not None else w.reshape(x, [-1])
    axis = 0 if dim is None or not x.ndim else dim % x.ndim
    wide = repeats
    if not repeats.ndim or repeats.sizes == (1,):
        size = w.op("Shape", value, start=axis, end=axis + 1)
        wide = WriterValue(w.op("Expand", repeats, size), repeats.dtype, (None,))
    return w.op("Gather", value, repeated_places(w, wide), axis=axis)


@translates("aten._linalg_det")
def det(w: OnnxGraphBuilder, x: WriterValue) -> list[str | None]:
    return [w.op("Det", x), None, None]


@translates("aten._linalg_slogdet")
def slogdet(w: OnnxGraphBuilder, x: WriterValue) -> list[str | None]:
    found = w.op("Det", x)
    return [w.op("Sign", found), w.op("Log", w.op("Abs", found)), None, None]


@translates("aten.addbmm")
def addbmm(
    w: OnnxGraphBuilder, base: WriterValue, a: WriterValue, b: WriterValue, *, beta: float = 1, alpha: float = 1
) -> str:
    out = reduce_with(w, "ReduceSum", w.op("MatMul", a, b), [0], False)
    out = out if alpha == 1 else w.op("Mul", out, w.constant(alpha, a.dtype))
    if beta == 0:
        return out
    return w.op("Add", base if beta == 1 else w.op("Mul", base, w.constant(beta, base.dtype)), out)
