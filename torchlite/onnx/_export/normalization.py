"""Export rules of normalization layers and dropout."""

from __future__ import annotations

from typing import Any

import numpy as np

from .graph_builder import OnnxGraphBuilder, WriterValue, translates
from .reductions import reduce_with


def _unsqueeze_channels(w: OnnxGraphBuilder, value: Any, x: WriterValue) -> str:
    return w.reshape(value, [-1, *[1] * (x.ndim - 2)])


def batch_norm_with(
    w: OnnxGraphBuilder,
    x: WriterValue,
    weight: WriterValue | None,
    bias: WriterValue | None,
    mean: Any,
    var: Any,
    eps: float,
) -> str:
    count = x.sizes[1]
    scale = weight if weight is not None else w.constant(np.ones(count or 1), x.dtype)
    shift = bias if bias is not None else w.constant(np.zeros(count or 1), x.dtype)
    return w.op("BatchNormalization", x, scale, shift, mean, var, epsilon=float(eps))


@translates("aten.batch_norm")
def batch_norm(
    w: OnnxGraphBuilder, x: WriterValue, weight: WriterValue | None, bias: WriterValue | None, mean: WriterValue | None,
    var: WriterValue | None, training: bool,
    _momentum: float, eps: float,
) -> str:  # fmt: skip
    if not training:
        return batch_norm_with(w, x, weight, bias, mean, var, eps)
    return batch_statistics(w, x, weight, bias, eps)[0]


def batch_statistics(w: OnnxGraphBuilder, x: WriterValue, weight: Any, bias: Any, eps: float) -> list[str]:
    """Return batch norm by batch statistics: the result, mean and reciprocal standard deviation."""
    dims = [d for d in range(x.ndim) if d != 1]
    middle = reduce_with(w, "ReduceMean", x, dims, True)
    apart = w.op("Sub", x, middle)
    spread = reduce_with(w, "ReduceMean", w.op("Mul", apart, apart), dims, True)
    inverse = w.op("Reciprocal", w.op("Sqrt", w.op("Add", spread, w.constant(eps, x.dtype))))
    out = w.op("Mul", apart, inverse)
    out = out if weight is None else w.op("Mul", out, _unsqueeze_channels(w, weight, x))
    out = out if bias is None else w.op("Add", out, _unsqueeze_channels(w, bias, x))
    return [out, w.reshape(middle, [-1]), w.reshape(inverse, [-1])]


@translates("aten._native_batch_norm_legit_no_training", "aten._batch_norm_no_update")
def batch_norm_no_training(
    w: OnnxGraphBuilder,
    x: WriterValue,
    weight: WriterValue | None,
    bias: WriterValue | None,
    mean: WriterValue,
    var: WriterValue,
    _momentum: float,
    eps: float,
) -> list[str | None]:
    return [batch_norm_with(w, x, weight, bias, mean, var, eps), None, None]


@translates("aten._native_batch_norm_legit.no_stats")
def batch_norm_no_stats(
    w: OnnxGraphBuilder,
    x: WriterValue,
    weight: WriterValue | None,
    bias: WriterValue | None,
    _training: bool,
    _momentum: float,
    eps: float,
) -> list[str]:
    return batch_statistics(w, x, weight, bias, eps)


@translates("aten._native_batch_norm_legit_functional", "aten.native_batch_norm")
def batch_norm_functional(
    w: OnnxGraphBuilder, x: WriterValue, weight: WriterValue | None, bias: WriterValue | None, mean: WriterValue,
    var: WriterValue, training: bool, momentum: float,
    eps: float,
) -> list[str]:  # fmt: skip
    if not training:
        return [*batch_norm_no_training(w, x, weight, bias, mean, var, momentum, eps), mean.name, var.name]
    out, middle, inverse = batch_statistics(w, x, weight, bias, eps)
    count = w.cast(w.product([w.size(x, d) for d in range(x.ndim) if d != 1]), x.dtype, "int64")
    one = w.constant(1, x.dtype)
    spread = w.op("Sub", w.op("Reciprocal", w.op("Mul", inverse, inverse)), w.constant(eps, x.dtype))
    spread = w.op("Div", w.op("Mul", spread, count), w.op("Sub", count, one))
    results = [out, middle, inverse]
    for old, new in ((mean, middle), (var, spread)):
        kept = w.op("Mul", old, w.constant(1 - momentum, x.dtype))
        results.append(w.op("Add", kept, w.op("Mul", new, w.constant(momentum, x.dtype))))
    return results


@translates("aten.instance_norm")
def instance_norm(
    w: OnnxGraphBuilder, x: WriterValue, weight: WriterValue | None, bias: WriterValue | None, mean: Any, var: Any,
    use_input_stats: bool,
    _momentum: float, eps: float,
) -> str:  # fmt: skip
    if not use_input_stats:
        return batch_norm_with(w, x, weight, bias, mean, var, eps)
    count = x.sizes[1] or 1
    scale = weight if weight is not None else w.constant(np.ones(count), x.dtype)
    shift = bias if bias is not None else w.constant(np.zeros(count), x.dtype)
    return w.op("InstanceNormalization", x, scale, shift, epsilon=float(eps))


@translates("aten.layer_norm")
def layer_norm(
    w: OnnxGraphBuilder, x: WriterValue, shape: Any, weight: WriterValue | None = None, bias: WriterValue | None = None,
    eps: float = 1e-5,
) -> str:  # fmt: skip
    scale = weight if weight is not None else w.constant(np.ones(tuple(shape)), x.dtype)
    return w.op("LayerNormalization", x, scale, bias, axis=-len(shape), epsilon=float(eps))


@translates("aten.native_layer_norm")
def native_layer_norm(
    w: OnnxGraphBuilder, x: WriterValue, shape: Any, weight: WriterValue | None, bias: WriterValue | None, eps: float
) -> list[str]:
    scale = weight if weight is not None else w.constant(np.ones(tuple(shape)), x.dtype)
    return w.op("LayerNormalization", x, scale, bias, outputs=3, axis=-len(shape), epsilon=float(eps))


@translates("aten.rms_norm")
def rms_norm(
    w: OnnxGraphBuilder, x: WriterValue, shape: Any, weight: WriterValue | None = None, eps: float | None = None
) -> str:
    small = float(np.finfo(x.dtype).eps) if eps is None else float(eps)
    if w.version >= 23:
        scale = weight if weight is not None else w.constant(np.ones(tuple(shape)), x.dtype)
        return w.op("RMSNormalization", x, scale, axis=-len(shape), epsilon=small)
    dims = list(range(x.ndim - len(shape), x.ndim))
    size = w.op("Add", reduce_with(w, "ReduceMean", w.op("Mul", x, x), dims, True), w.constant(small, x.dtype))
    out = w.op("Div", x, w.op("Sqrt", size))
    return out if weight is None else w.op("Mul", out, weight)


@translates("aten.group_norm")
def group_norm(
    w: OnnxGraphBuilder, x: WriterValue, groups: int, weight: WriterValue | None = None,
    bias: WriterValue | None = None, eps: float = 1e-5,
) -> str:  # fmt: skip
    count = x.sizes[1] or 1
    if w.version >= 21:
        scale = weight if weight is not None else w.constant(np.ones(count), x.dtype)
        shift = bias if bias is not None else w.constant(np.zeros(count), x.dtype)
        return w.op("GroupNormalization", x, scale, shift, epsilon=float(eps), num_groups=groups)
    flat = w.op("Reshape", x, w.constant([0, groups, -1], "int64"))
    one, zero = w.constant(np.ones(groups), x.dtype), w.constant(np.zeros(groups), x.dtype)
    out = w.op("Reshape", w.op("InstanceNormalization", flat, one, zero, epsilon=float(eps)), w.shape(x))
    out = out if weight is None else w.op("Mul", out, _unsqueeze_channels(w, weight, x))
    return out if bias is None else w.op("Add", out, _unsqueeze_channels(w, bias, x))


@translates("aten.native_group_norm")
def native_group_norm(
    w: OnnxGraphBuilder,
    x: WriterValue,
    weight: WriterValue | None,
    bias: WriterValue | None,
    _n: Any,
    _c: Any,
    _hw: Any,
    groups: int,
    eps: float,
) -> list[str | None]:
    return [group_norm(w, x, groups, weight, bias, eps), None, None]


@translates("aten.dropout", "aten.dropout_")
def dropout(w: OnnxGraphBuilder, x: WriterValue, p: float, train: bool) -> str:
    if not train or p == 0:
        return x.name
    return w.op("Dropout", x, w.constant(p, "float32"), w.constant(True, "bool"))


@translates("aten.native_dropout")
def native_dropout(w: OnnxGraphBuilder, x: WriterValue, p: float, train: bool | None) -> list[str]:
    training = w.constant(bool(train is not False), "bool")
    return w.op("Dropout", x, w.constant(p, "float32"), training, outputs=2)
