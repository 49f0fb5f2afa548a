"""Export rules of losses."""

from __future__ import annotations

from typing import Any

from ..errors import OnnxExporterError
from .graph_builder import OnnxGraphBuilder, WriterValue, translates
from .reductions import reduce_with


@translates("aten.cosine_similarity")
def cosine_similarity(w: OnnxGraphBuilder, x: WriterValue, y: WriterValue, dim: int = 1, eps: float = 1e-8) -> str:
    rank = max(x.ndim, y.ndim)
    x, y = (_with_leading_ones(w, v, rank) for v in (x, y))
    if x.sizes != y.sizes or None in x.sizes:
        whole = w.op("Shape", w.op("Mul", x, y))
        x, y = (WriterValue(w.op("Expand", v, whole), v.dtype, (None,) * rank) for v in (x, y))
    dims = [dim % rank]
    sizes = [w.op("Max", reduce_with(w, "ReduceL2", v, dims, False), w.constant(eps, x.dtype)) for v in (x, y)]
    return w.op("Div", reduce_with(w, "ReduceSum", w.op("Mul", x, y), dims, False), w.op("Mul", *sizes))


def _with_leading_ones(w: OnnxGraphBuilder, x: WriterValue, rank: int) -> WriterValue:
    """Return a value with leading dimensions of size 1 up to a rank."""
    more = rank - x.ndim
    return WriterValue(w.unsqueeze(x, *range(more)), x.dtype, (1,) * more + x.sizes) if more else x


def _reduce_loss(w: OnnxGraphBuilder, value: str, x: WriterValue, reduction: int) -> str:
    if reduction == 0:
        return value
    return reduce_with(w, "ReduceMean" if reduction == 1 else "ReduceSum", value, list(range(x.ndim)), False)


@translates("aten.mse_loss")
def mse_loss(w: OnnxGraphBuilder, x: WriterValue, target: WriterValue, reduction: int = 1) -> str:
    apart = w.op("Sub", x, target)
    return _reduce_loss(w, w.op("Mul", apart, apart), x, reduction)


@translates("aten.l1_loss")
def l1_loss(w: OnnxGraphBuilder, x: WriterValue, target: WriterValue, reduction: int = 1) -> str:
    return _reduce_loss(w, w.op("Abs", w.op("Sub", x, target)), x, reduction)


_REDUCTIONS = ("none", "mean", "sum")


@translates("aten.cross_entropy_loss")
def cross_entropy(
    w: OnnxGraphBuilder, x: WriterValue, target: WriterValue, weight: WriterValue | None = None, reduction: int = 1,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
) -> str:  # fmt: skip
    if label_smoothing or target.is_float:
        raise OnnxExporterError("cross_entropy: probabilities as targets, or smoothed ones")
    return _add_nll(w, "SoftmaxCrossEntropyLoss", x, target, weight, reduction, ignore_index)


def _add_nll(
    w: OnnxGraphBuilder, kind: str, x: WriterValue, target: WriterValue, weight: WriterValue | None, reduction: int,
    ignore_index: int,
) -> str:  # fmt: skip
    """Add a node of a loss over classes, with a batch of one where there is none."""
    alone = x.ndim == 1
    values: list[Any] = [w.unsqueeze(x, 0), w.reshape(target, [1])] if alone else [x, target]
    out = w.op(kind, *values, weight, reduction=_REDUCTIONS[reduction], ignore_index=ignore_index)
    return w.squeeze(out, 0) if alone and reduction == 0 else out


@translates("aten.nll_loss", "aten.nll_loss_nd", "aten.nll_loss2d")
def nll_loss(
    w: OnnxGraphBuilder,
    x: WriterValue,
    target: WriterValue,
    weight: WriterValue | None = None,
    reduction: int = 1,
    ignore_index: int = -100,
) -> str:
    return _add_nll(w, "NegativeLogLikelihoodLoss", x, target, weight, reduction, ignore_index)
