"""Export rules of scans other than `cumsum`: log2(n) steps, each of which combines a value with one further left."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import OnnxExporterError
from .elementwise import to_float_type
from .graph_builder import LAST, OnnxGraphBuilder, WriterValue, dtype_name, translates


def _scan(w: OnnxGraphBuilder, values: list[Any], dim: int, size: int, combine: Callable) -> list[Any]:
    """Return the scans of values along a dimension. `combine` takes the earlier values and the later ones."""
    step = 1
    while step < size:
        begins = [w.slice(v, dim, 0, step) for v in values]
        earlier = [w.slice(v, dim, 0, -step) for v in values]
        later = [w.slice(v, dim, step, LAST) for v in values]
        joined = combine(earlier, later)
        values = [w.op("Concat", a, b, axis=dim) for a, b in zip(begins, joined, strict=True)]
        step *= 2
    return values


def _size_of(x: WriterValue, dim: int, what: str) -> tuple[int, int]:
    dim %= x.ndim
    size = x.sizes[dim]
    if size is None:
        raise OnnxExporterError(f"{what}: dimension {dim} has no fixed size")
    return dim, size


@translates("aten.cumprod")
def cumprod(w: OnnxGraphBuilder, x: WriterValue, dim: int, *, dtype: Any = None) -> str:
    kind = dtype_name(dtype) if dtype is not None else x.dtype if x.is_float else "int64"
    value = w.cast(x, kind)
    if not x.ndim:
        return w.op("Identity", value)
    place, size = _size_of(x, dim, "cumprod")
    return w.put(_scan(w, [value], place, size, lambda a, b: [w.op("Mul", a[0], b[0])])[0])


def _register_extreme(name: str, better: str) -> None:
    @translates(f"aten.{name}")
    def extreme(w: OnnxGraphBuilder, x: WriterValue, dim: int) -> list[str]:
        if not x.ndim:
            return [w.op("Identity", x), w.constant(0, "int64")]
        place, size = _size_of(x, dim, name)
        shape = [size if d == place else 1 for d in range(x.ndim)]
        places = w.op("Expand", w.constant(np.arange(size).reshape(shape), "int64"), w.shape(x))

        def combine(earlier: list, later: list) -> list:
            kept = w.op(better, earlier[0], later[0])  # of equal ones the last
            if x.is_float:  # NaN stays
                kept = w.op("And", w.op("Or", kept, w.op("IsNaN", earlier[0])), w.op("Not", w.op("IsNaN", later[0])))
            return [w.op("Where", kept, a, b) for a, b in zip(earlier, later, strict=True)]

        return [w.put(v) for v in _scan(w, [x, places], place, size, combine)]


_register_extreme("cummax", "Greater")
_register_extreme("cummin", "Less")


@translates("aten.logcumsumexp")
def logcumsumexp(w: OnnxGraphBuilder, x: WriterValue, dim: int) -> str:
    value = to_float_type(w, x)
    if not x.ndim:
        return w.op("Identity", value)
    place, size = _size_of(x, dim, "logcumsumexp")

    def combine(earlier: list, later: list) -> list:
        most = w.op("Max", earlier[0], later[0])
        least = w.op("Min", earlier[0], later[0])
        more = w.op("Log", w.op("Add", w.op("Exp", w.op("Sub", least, most)), w.constant(1, value.dtype)))
        infinite = w.op("And", w.op("IsInf", most), w.op("Equal", most, least))
        return [w.op("Where", infinite, most, w.op("Add", most, more))]

    return w.put(_scan(w, [value], place, size, combine)[0])
