"""Export rules of matrix products, einsum and linear layers."""

from __future__ import annotations

from typing import Any

from ..errors import OnnxExporterError
from .elementwise import to_common_type
from .graph_builder import OnnxGraphBuilder, WriterValue, translates


@translates("aten.matmul", "aten.mm", "aten.bmm", "aten.mv", "aten.dot", "aten.linalg_matmul")
def matmul(w: OnnxGraphBuilder, x: WriterValue, y: WriterValue) -> str:
    return w.op("MatMul", *to_common_type(w, x, y)[0])


@translates("aten.linear")
def linear(w: OnnxGraphBuilder, x: WriterValue, weight: WriterValue, bias: WriterValue | None = None) -> str:
    if x.ndim == 2 and weight.ndim == 2:
        return w.op("Gemm", x, weight, bias, transB=1)
    out = w.op("MatMul", x, w.permute(weight, [1, 0]) if weight.ndim == 2 else weight)
    return out if bias is None else w.op("Add", out, bias)


@translates("aten._int_mm")
def int_mm(w: OnnxGraphBuilder, a: WriterValue, b: WriterValue) -> str:
    return w.op("MatMulInteger", a, b)


def _add_matmul(
    w: OnnxGraphBuilder, base: WriterValue, a: WriterValue, b: WriterValue, beta: float, alpha: float
) -> str:
    out = w.op("MatMul", a, b)
    out = out if alpha == 1 else w.op("Mul", out, w.constant(alpha, a.dtype))
    if beta == 0:
        return out
    return w.op("Add", base if beta == 1 else w.op("Mul", base, w.constant(beta, base.dtype)), out)


@translates("aten.addmm")
def addmm(
    w: OnnxGraphBuilder, base: WriterValue, a: WriterValue, b: WriterValue, *, beta: float = 1, alpha: float = 1
) -> str:
    if a.is_float:
        return w.op("Gemm", a, b, base, alpha=float(alpha), beta=float(beta))
    return _add_matmul(w, base, a, b, beta, alpha)


@translates("aten.baddbmm", "aten.addmv")
def baddbmm(
    w: OnnxGraphBuilder, base: WriterValue, a: WriterValue, b: WriterValue, *, beta: float = 1, alpha: float = 1
) -> str:
    return _add_matmul(w, base, a, b, beta, alpha)


@translates("aten.einsum")
def einsum(w: OnnxGraphBuilder, equation: str, tensors: Any) -> str:
    terms = equation.partition("->")[0].split(",")
    wide = [x.ndim - len(t.replace("...", "").replace(" ", "")) for t, x in zip(terms, tensors, strict=True)]
    if len({n for n, t in zip(wide, terms, strict=True) if "..." in t}) > 1:
        raise OnnxExporterError("einsum: dots that stand for different numbers of dimensions")
    return w.op("Einsum", *tensors, equation=equation)


@translates("aten.outer", "aten.ger")
def outer(w: OnnxGraphBuilder, x: WriterValue, y: WriterValue) -> str:
    return w.op("Mul", w.unsqueeze(x, 1), w.unsqueeze(y, 0))


@translates("aten.bilinear")
def bilinear(
    w: OnnxGraphBuilder, x: WriterValue, y: WriterValue, weight: WriterValue, bias: WriterValue | None = None
) -> str:
    out = w.op("Einsum", x, weight, y, equation="...i,oij,...j->...o")
    return out if bias is None else w.op("Add", out, bias)
