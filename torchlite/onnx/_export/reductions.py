"""Export rules of reductions, scans and sorting."""

from __future__ import annotations

import math
from typing import Any

from .elementwise import to_float_type
from .graph_builder import OnnxGraphBuilder, WriterValue, dtype_name, translates


def _normalize_dims(x: WriterValue, dim: Any) -> list[int]:
    if dim is None or isinstance(dim, (list, tuple)) and not dim:
        return list(range(x.ndim))
    return [d % x.ndim for d in ([dim] if isinstance(dim, int) else dim)] if x.ndim else []


def reduce_with(w: OnnxGraphBuilder, kind: str, x: Any, dims: list[int], keepdim: bool) -> str:
    """Reduce over dimensions; over none, return the value."""
    if not dims:
        return w.op("Identity", x)
    axes = w.constant(dims, "int64")
    return w.op(kind, x, axes, keepdims=int(keepdim))


@translates("aten.sum")
def sum_(w: OnnxGraphBuilder, x: WriterValue, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> str:
    kind = dtype_name(dtype) if dtype is not None else x.dtype if x.is_float else "int64"
    return reduce_with(w, "ReduceSum", w.cast(x, kind), _normalize_dims(x, dim), keepdim)


@translates("aten.mean")
def mean(w: OnnxGraphBuilder, x: WriterValue, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> str:
    value = w.cast(x, dtype_name(dtype)) if dtype is not None else to_float_type(w, x)
    dims = _normalize_dims(x, dim)
    if any(x.sizes[d] == 0 for d in dims):  # runtimes give zero
        zero = w.constant(0, dtype_name(dtype) if dtype is not None else x.dtype if x.is_float else "float32")
        return w.op("Div", reduce_with(w, "ReduceSum", value, dims, keepdim), zero)
    return reduce_with(w, "ReduceMean", value, dims, keepdim)


@translates("aten.prod")
def prod(
    w: OnnxGraphBuilder, x: WriterValue, dim: int | None = None, keepdim: bool = False, *, dtype: Any = None
) -> str:
    kind = dtype_name(dtype) if dtype is not None else x.dtype if x.is_float else "int64"
    return reduce_with(w, "ReduceProd", w.cast(x, kind), _normalize_dims(x, dim), keepdim)


def _reduce_max_or_min(w: OnnxGraphBuilder, kind: str, x: WriterValue, dims: list[int], keepdim: bool) -> str:
    if x.dtype == "bool":
        return w.cast(reduce_with(w, kind, w.cast(x, "int32"), dims, keepdim), "bool", "int32")
    return reduce_with(w, kind, x, dims, keepdim)


@translates("aten.amax", "aten.max.default")
def amax(w: OnnxGraphBuilder, x: WriterValue, dim: Any = None, keepdim: bool = False) -> str:
    return _reduce_max_or_min(w, "ReduceMax", x, _normalize_dims(x, dim), keepdim)


@translates("aten.amin", "aten.min.default")
def amin(w: OnnxGraphBuilder, x: WriterValue, dim: Any = None, keepdim: bool = False) -> str:
    return _reduce_max_or_min(w, "ReduceMin", x, _normalize_dims(x, dim), keepdim)


@translates("aten.any")
def any_(w: OnnxGraphBuilder, x: WriterValue, dim: Any = None, keepdim: bool = False) -> str:
    return _reduce_truth(w, "ReduceMax", x, dim, keepdim)


def _reduce_truth(w: OnnxGraphBuilder, kind: str, x: WriterValue, dim: Any, keepdim: bool) -> str:
    integers = w.cast(w.cast(x, "bool"), "int32", "bool")
    found = reduce_with(w, kind, integers, _normalize_dims(x, dim), keepdim)
    return w.cast(found, "uint8" if x.dtype == "uint8" else "bool", "int32")


@translates("aten.all")
def all_(w: OnnxGraphBuilder, x: WriterValue, dim: Any = None, keepdim: bool = False) -> str:
    return _reduce_truth(w, "ReduceMin", x, dim, keepdim)


def _add_argmax_or_argmin(w: OnnxGraphBuilder, kind: str, x: WriterValue, dim: int | None, keepdim: bool) -> str:
    value = w.cast(x, "int32") if x.dtype == "bool" else x.name
    if dim is None:
        place = w.op(kind, w.reshape(value, [-1]), axis=0, keepdims=0)
        return w.reshape(place, [1] * x.ndim) if keepdim else place
    if not x.ndim:
        return w.constant(0, "int64")
    return w.op(kind, value, axis=dim % x.ndim, keepdims=int(keepdim))


@translates("aten.argmax")
def argmax(w: OnnxGraphBuilder, x: WriterValue, dim: int | None = None, keepdim: bool = False) -> str:
    return _add_argmax_or_argmin(w, "ArgMax", x, dim, keepdim)


@translates("aten.argmin")
def argmin(w: OnnxGraphBuilder, x: WriterValue, dim: int | None = None, keepdim: bool = False) -> str:
    return _add_argmax_or_argmin(w, "ArgMin", x, dim, keepdim)


@translates("aten.max.dim")
def max_dim(w: OnnxGraphBuilder, x: WriterValue, dim: int, keepdim: bool = False) -> list[str]:
    return [
        _reduce_max_or_min(w, "ReduceMax", x, _normalize_dims(x, dim), keepdim),
        _add_argmax_or_argmin(w, "ArgMax", x, dim, keepdim),
    ]


@translates("aten.min.dim")
def min_dim(w: OnnxGraphBuilder, x: WriterValue, dim: int, keepdim: bool = False) -> list[str]:
    return [
        _reduce_max_or_min(w, "ReduceMin", x, _normalize_dims(x, dim), keepdim),
        _add_argmax_or_argmin(w, "ArgMin", x, dim, keepdim),
    ]


@translates("aten.logsumexp")
def logsumexp(w: OnnxGraphBuilder, x: WriterValue, dim: Any, keepdim: bool = False) -> str:
    return reduce_with(w, "ReduceLogSumExp", to_float_type(w, x), _normalize_dims(x, dim), keepdim)


@translates("aten.linalg_vector_norm", "aten.norm")
def norm(
    w: OnnxGraphBuilder, x: WriterValue, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> str:
    value = (
        to_float_type(w, x) if dtype is None else WriterValue(w.cast(x, dtype_name(dtype)), dtype_name(dtype), x.sizes)
    )
    if not x.ndim:
        value, dims, keepdim = WriterValue(w.unsqueeze(value, 0), value.dtype, (1,)), [0], False
    else:
        dims = _normalize_dims(x, dim)
    kind = {1: "ReduceL1", 2: "ReduceL2", None: "ReduceL2"}.get(ord)
    if kind:
        return reduce_with(w, kind, value, dims, keepdim)
    size = w.op("Abs", value)
    if ord in (math.inf, -math.inf):
        return reduce_with(w, "ReduceMax" if ord > 0 else "ReduceMin", size, dims, keepdim)
    if ord == 0:
        some = w.cast(w.op("Greater", size, w.constant(0, value.dtype)), value.dtype, "bool")
        return reduce_with(w, "ReduceSum", some, dims, keepdim)
    power = w.op("Pow", size, w.constant(ord, value.dtype))
    return w.op("Pow", reduce_with(w, "ReduceSum", power, dims, keepdim), w.constant(1 / ord, value.dtype))


def _compute_var_and_mean(
    w: OnnxGraphBuilder, x: WriterValue, dims: list[int], correction: Any, keepdim: bool
) -> tuple[str, str]:
    """Return variance and mean."""
    value = to_float_type(w, x)
    middle = reduce_with(w, "ReduceMean", value, dims, True)
    apart = w.op("Sub", value, middle)
    out = reduce_with(w, "ReduceMean", w.op("Mul", apart, apart), dims, keepdim)
    by = 1 if correction is None else correction
    if by:
        count = w.cast(w.product([w.size(x, d) for d in dims]), value.dtype, "int64")
        left = w.op("Max", w.op("Sub", count, w.constant(by, value.dtype)), w.constant(0, value.dtype))
        out = w.op("Mul", out, w.op("Div", count, left))
    return out, middle if keepdim or not dims else w.squeeze(middle, *dims)


def _register_spread(kind: str) -> None:
    """Register an op of variances in the three forms of its arguments."""

    def results(w: OnnxGraphBuilder, x: WriterValue, dim: Any, correction: Any, keepdim: bool) -> Any:
        spread, middle = _compute_var_and_mean(w, x, _normalize_dims(x, dim), correction, keepdim)
        spread = w.op("Sqrt", spread) if kind.startswith("std") else spread
        return [spread, middle] if kind.endswith("_mean") else spread

    @translates(f"aten.{kind}.default")
    def whole(w: OnnxGraphBuilder, x: WriterValue, unbiased: bool = True) -> Any:
        return results(w, x, None, int(unbiased), False)

    @translates(f"aten.{kind}.dim")
    def along(w: OnnxGraphBuilder, x: WriterValue, dim: Any, unbiased: bool = True, keepdim: bool = False) -> Any:
        return results(w, x, dim, int(unbiased), keepdim)

    @translates(f"aten.{kind}.correction")
    def corrected(
        w: OnnxGraphBuilder, x: WriterValue, dim: Any = None, *, correction: Any = None, keepdim: bool = False
    ) -> Any:
        return results(w, x, dim, correction, keepdim)


for _kind in ("var", "std", "var_mean", "std_mean"):
    _register_spread(_kind)


def _register_softmax(name: str, kind: str) -> None:
    def normalized(w: OnnxGraphBuilder, x: WriterValue, dim: int, dtype: str) -> str:
        if not x.ndim:
            return w.constant(1 if kind == "Softmax" else 0, dtype)
        return w.op(kind, WriterValue(w.cast(x, dtype), dtype, x.sizes), axis=dim % x.ndim)

    @translates(f"aten.{name}")
    def in_dtype(w: OnnxGraphBuilder, x: WriterValue, dim: int, dtype: Any = None) -> str:
        return normalized(w, x, dim, x.dtype if dtype is None else dtype_name(dtype))

    @translates(f"aten._{name}")
    def widened(w: OnnxGraphBuilder, x: WriterValue, dim: int, half_to_float: bool) -> str:
        return normalized(w, x, dim, "float32" if half_to_float else x.dtype)


_register_softmax("softmax", "Softmax")
_register_softmax("log_softmax", "LogSoftmax")


@translates("aten._safe_softmax")
def safe_softmax(w: OnnxGraphBuilder, x: WriterValue, dim: int, dtype: Any = None) -> str:
    """Softmax that is zero in rows of nothing but minus infinity."""
    kind = x.dtype if dtype is None else dtype_name(dtype)
    value = WriterValue(w.cast(x, kind), kind, x.sizes)
    most = reduce_with(w, "ReduceMax", value, [dim % x.ndim], True)
    lost = w.op("Equal", most, w.constant(-math.inf, kind))
    return w.op("Where", lost, w.constant(0, kind), w.op("Softmax", value, axis=dim % x.ndim))


@translates("aten.cumsum")
def cumsum(w: OnnxGraphBuilder, x: WriterValue, dim: int, *, dtype: Any = None) -> str:
    kind = dtype_name(dtype) if dtype is not None else x.dtype if x.is_float else "int64"
    if not x.ndim:
        return w.op("Identity", w.cast(x, kind))
    return w.op("CumSum", w.cast(x, kind), w.constant(dim % max(x.ndim, 1), "int64"))


@translates("aten.topk")
def topk(
    w: OnnxGraphBuilder, x: WriterValue, k: Any, dim: int = -1, largest: bool = True, _sorted: bool = True
) -> list[str]:
    """The largest elements in order, which they may have in PyTorch also if they need not be sorted."""
    if not x.ndim:
        return [w.op("Identity", x), w.constant(0, "int64")]
    return w.op("TopK", x, w.ints([k]), outputs=2, axis=dim % x.ndim, largest=int(largest), sorted=1)


@translates("aten.sort", "aten.sort.stable")
def sort(w: OnnxGraphBuilder, x: WriterValue, dim: int = -1, descending: bool = False) -> list[str]:
    """Sort stably: of equal elements TopK takes the one with the lower index first."""
    if not x.ndim:
        return [w.op("Identity", x), w.constant(0, "int64")]
    return topk(w, x, w.size(x, dim), dim, bool(descending))


@translates("aten.argsort", "aten.argsort.stable")
def argsort(w: OnnxGraphBuilder, x: WriterValue, dim: int = -1, descending: bool = False) -> str:
    return sort(w, x, dim, descending)[1]
