"""Export rules of random number ops."""

from __future__ import annotations

from typing import Any

from ..errors import OnnxExporterError
from .graph_builder import OnnxGraphBuilder, WriterValue, dtype_name, translates


@translates("aten.rand", "aten.randn", "aten.randint", "aten.randperm")
def random(w: OnnxGraphBuilder, *_given: Any, **_options: Any) -> str:
    raise OnnxExporterError("random numbers by a call of the program: give them as an input")


@translates("aten.rand_like")
def rand_like(w: OnnxGraphBuilder, x: WriterValue, *, dtype: Any = None) -> str:
    from .._element_types import NUMBERS

    return w.op("RandomUniformLike", x, dtype=NUMBERS[x.dtype if dtype is None else dtype_name(dtype)])


@translates("aten.randn_like")
def randn_like(w: OnnxGraphBuilder, x: WriterValue, *, dtype: Any = None) -> str:
    from .._element_types import NUMBERS

    return w.op("RandomNormalLike", x, dtype=NUMBERS[x.dtype if dtype is None else dtype_name(dtype)])
