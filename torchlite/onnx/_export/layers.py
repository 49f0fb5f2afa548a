"""Export rules of neural network layers: products, convolutions, pools, normalizations, attention, resize, losses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import OnnxExporterError
from .elementwise import to_common_type
from .graph_builder import OnnxGraphBuilder, WriterValue, dtype_name, translates
from .reductions import reduce_with


@translates("aten.matmul", "aten.mm", "aten.bmm", "aten.mv", "aten.dot", "aten.inner", "aten.linalg_matmul")
def matmul(w: OnnxGraphBuilder, x: WriterValue, y: WriterValue) -> str:
    return w.op("MatMul", *to_common_type(w, x, y)[0])


@translates("aten.linear")
def linear(w: OnnxGraphBuilder, x: WriterValue, weight: WriterValue, bias: WriterValue | None = None) -> str:
    if x.ndim == 2 and weight.ndim == 2:
        return w.op("Gemm", x, weight, bias, transB=1)
    out = w.op("MatMul", x, w.permute(weight, [1, 0]) if weight.ndim == 2 else weight)
    return out if bias is None else w.op("Add", out, bias)


def _product(w: OnnxGraphBuilder, base: WriterValue, a: WriterValue, b: WriterValue, beta: float, alpha: float) -> str:
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
    return _product(w, base, a, b, beta, alpha)


@translates("aten.baddbmm", "aten.addmv")
def baddbmm(
    w: OnnxGraphBuilder, base: WriterValue, a: WriterValue, b: WriterValue, *, beta: float = 1, alpha: float = 1
) -> str:
    return _product(w, base, a, b, beta, alpha)


@translates("aten.einsum")
def einsum(w: OnnxGraphBuilder, equation: str, tensors: Any, *, path: Any = None) -> str:
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


def _repeat_value(value: Any, rank: int) -> list[int]:
    if isinstance(value, int):
        return [value] * rank
    return list(value) * rank if len(value) == 1 else list(value)


def _conv(
    w: OnnxGraphBuilder,
    x: WriterValue,
    weight: WriterValue,
    bias: WriterValue | None,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int,
) -> str:
    rank = weight.ndim - 2
    alone = x.ndim == rank + 1
    value = w.unsqueeze(x, 0) if alone else x
    given: dict[str, Any] = {
        "strides": _repeat_value(stride, rank),
        "dilations": _repeat_value(dilation, rank),
        "group": groups,
    }
    if isinstance(padding, str):
        given["auto_pad" if padding == "valid" else "pads"] = (
            "VALID" if padding == "valid" else _same_padding(weight, given)
        )
    else:
        given["pads"] = _repeat_value(padding, rank) * 2
    out = w.op("Conv", value, weight, bias, kernel_shape=list(weight.sizes[2:]), **given)
    return w.squeeze(out, 0) if alone else out


def _same_padding(weight: WriterValue, given: dict[str, Any]) -> list[int]:
    missing = [d * ((k or 1) - 1) for k, d in zip(weight.sizes[2:], given["dilations"], strict=True)]
    return [n // 2 for n in missing] + [n - n // 2 for n in missing]


@translates("aten.conv1d", "aten.conv2d", "aten.conv3d")
def conv(
    w: OnnxGraphBuilder, x: WriterValue, weight: WriterValue, bias: WriterValue | None = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
    groups: int = 1,
) -> str:  # fmt: skip
    return _conv(w, x, weight, bias, stride, padding, dilation, groups)


def _conv_transpose(
    w: OnnxGraphBuilder, x: WriterValue, weight: WriterValue, bias: WriterValue | None, stride: Any, padding: Any, output_padding: Any, groups: int,
    dilation: Any,
) -> str:  # fmt: skip
    rank = weight.ndim - 2
    alone = x.ndim == rank + 1
    value = w.unsqueeze(x, 0) if alone else x
    out = w.op(
        "ConvTranspose", value, weight, bias, kernel_shape=list(weight.sizes[2:]), strides=_repeat_value(stride, rank),
        pads=_repeat_value(padding, rank) * 2, output_padding=_repeat_value(output_padding, rank), group=groups,
        dilations=_repeat_value(dilation, rank),
    )  # fmt: skip
    return w.squeeze(out, 0) if alone else out


@translates("aten.conv_transpose1d", "aten.conv_transpose2d", "aten.conv_transpose3d")
def conv_transpose(
    w: OnnxGraphBuilder, x: WriterValue, weight: WriterValue, bias: WriterValue | None = None, stride: Any = 1, padding: Any = 0, output_padding: Any = 0,
    groups: int = 1, dilation: Any = 1,
) -> str:  # fmt: skip
    return _conv_transpose(w, x, weight, bias, stride, padding, output_padding, groups, dilation)


@translates("aten.convolution")
def convolution(
    w: OnnxGraphBuilder, x: WriterValue, weight: WriterValue, bias: WriterValue | None, stride: Any, padding: Any, dilation: Any, transposed: bool,
    output_padding: Any, groups: int,
) -> str:  # fmt: skip
    if transposed:
        return _conv_transpose(w, x, weight, bias, stride, padding, output_padding, groups, dilation)
    return _conv(w, x, weight, bias, stride, padding, dilation, groups)


def _with_batch(w: OnnxGraphBuilder, x: WriterValue, rank: int) -> tuple[Any, bool]:
    alone = x.ndim == rank + 1
    return (w.unsqueeze(x, 0) if alone else x), alone


def _max_pool(
    w: OnnxGraphBuilder,
    x: WriterValue,
    rank: int,
    kernel: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
    outputs: int,
) -> Any:
    value, alone = _with_batch(w, x, rank)
    out = w.op(
        "MaxPool", value, outputs=outputs, kernel_shape=_repeat_value(kernel, rank),
        strides=_repeat_value(stride if stride not in (None, [], ()) else kernel, rank), pads=_repeat_value(padding, rank) * 2,
        dilations=_repeat_value(dilation, rank), ceil_mode=int(ceil_mode),
    )  # fmt: skip
    if outputs == 2:
        # Indices count per image, in ONNX per tensor: subtract the image's offset.
        per = math.prod(n or 0 for n in x.sizes[x.ndim - rank :])
        if not per:
            raise OnnxExporterError("max_pool: indices in images of no fixed size")
        out[1] = w.op("Mod", out[1], w.constant(per, "int64"))
        return [w.squeeze(part, 0) if alone else part for part in out]
    return w.squeeze(out, 0) if alone else out


def _pools(rank: int) -> None:
    @translates(f"aten.max_pool{rank}d")
    def max_pool(
        w: OnnxGraphBuilder,
        x: WriterValue,
        kernel: Any,
        stride: Any = (),
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
    ) -> str:
        return _max_pool(w, x, rank, kernel, stride, padding, dilation, ceil_mode, 1)

    @translates(f"aten.max_pool{rank}d_with_indices")
    def with_indices(
        w: OnnxGraphBuilder,
        x: WriterValue,
        kernel: Any,
        stride: Any = (),
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
    ) -> list[str]:
        return _max_pool(w, x, rank, kernel, stride, padding, dilation, ceil_mode, 2)

    @translates(f"aten.avg_pool{rank}d")
    def avg_pool(
        w: OnnxGraphBuilder, x: WriterValue, kernel: Any, stride: Any = (), padding: Any = 0, ceil_mode: bool = False,
        count_include_pad: bool = True, divisor_override: int | None = None,
    ) -> str:  # fmt: skip
        value, alone = _with_batch(w, x, rank)
        size = _repeat_value(kernel, rank)
        out = w.op(
            "AveragePool", value, kernel_shape=size, strides=_repeat_value(stride or kernel, rank),
            pads=_repeat_value(padding, rank) * 2, ceil_mode=int(ceil_mode), count_include_pad=int(count_include_pad),
        )  # fmt: skip
        if divisor_override is not None:
            out = w.op("Mul", out, w.constant(math.prod(size) / divisor_override, x.dtype))
        return w.squeeze(out, 0) if alone else out

    @translates(f"aten.adaptive_avg_pool{rank}d", f"aten._adaptive_avg_pool{rank}d")
    def adaptive_avg_pool(w: OnnxGraphBuilder, x: WriterValue, size: Any) -> str:
        return _adaptive(w, x, rank, size, "AveragePool")

    @translates(f"aten.adaptive_max_pool{rank}d")
    def adaptive_max_pool(w: OnnxGraphBuilder, x: WriterValue, size: Any) -> list[str]:
        return _adaptive(w, x, rank, size, "MaxPool")


for _rank in (1, 2, 3):
    _pools(_rank)


def _adaptive(w: OnnxGraphBuilder, x: WriterValue, rank: int, size: Any, kind: str) -> Any:
    """Pool adaptively by equal windows if they fit, else by a product with a weight matrix."""
    wanted, now = _repeat_value(size, rank), x.sizes[x.ndim - rank :]
    wanted = [n if n is not None else now[i] for i, n in enumerate(wanted)]
    if all(n == 1 for n in wanted):
        dims = list(range(x.ndim - rank, x.ndim))
        if kind == "AveragePool":
            return reduce_with(w, "ReduceMean", x, dims, True)
        flat = w.op("Flatten", x, axis=x.ndim - rank)
        place = w.op("ArgMax", flat, axis=1, keepdims=1)
        whole = w.op("Concat", w.op("Shape", x, end=x.ndim - rank), w.ints([1] * rank), axis=0)
        return [reduce_with(w, "ReduceMax", x, dims, True), w.op("Reshape", place, whole)]
    if any(n is None for n in now):
        raise OnnxExporterError(f"adaptive pooling to {wanted} of images of no fixed size")
    if all(n % k == 0 for n, k in zip(now, wanted, strict=True)):  # type: ignore[operator]
        kernel = [n // k for n, k in zip(now, wanted, strict=True)]  # type: ignore[operator]
        if kind == "MaxPool":
            return _max_pool(w, x, rank, kernel, kernel, 0, 1, False, 2)
        value, alone = _with_batch(w, x, rank)
        pooled = w.op("AveragePool", value, kernel_shape=kernel, strides=kernel)
        return w.squeeze(pooled, 0) if alone else pooled
    if kind == "MaxPool":
        return _adaptive_max(w, x, now, wanted)
    out: Any = x
    for i, (n, k) in enumerate(zip(now, wanted, strict=True)):
        shares = np.zeros((n, k))  # type: ignore[type-var]
        for j in range(k):
            begin, end = _window(n, k, j)  # type: ignore[arg-type]
            shares[begin:end, j] = 1 / (end - begin)
        order = list(range(x.ndim))
        order[x.ndim - rank + i], order[-1] = order[-1], order[x.ndim - rank + i]
        turned = out if order == sorted(order) else w.permute(out, order)
        out = w.op("MatMul", turned, w.constant(shares, x.dtype))
        out = out if order == sorted(order) else w.permute(out, order)
    return out


def _window(size: int, count: int, at: int) -> tuple[int, int]:
    """Return begin and end of an adaptive pooling window."""
    return at * size // count, -(-(at + 1) * size // count)


def _adaptive_max(w: OnnxGraphBuilder, x: WriterValue, now: Sequence[Any], wanted: Sequence[Any]) -> list[str]:
    """Pool the maximum of unequal windows, gathered with the longest length; shorter ones repeat their last element."""
    rank, lines = len(now), []
    for size, count in zip(now, wanted, strict=True):
        ends = [_window(size, count, i) for i in range(count)]
        longest = max(end - begin for begin, end in ends)
        lines.append(np.array([[min(begin + i, end - 1) for i in range(longest)] for begin, end in ends]))
    places = np.zeros([1] * 2 * rank, np.int64)
    for i, line in enumerate(lines):
        sizes = [1] * 2 * rank
        sizes[i], sizes[rank + i] = line.shape
        places = places * now[i] + line.reshape(sizes)
    count = math.prod(wanted)
    places = places.reshape(count, -1)
    flat = w.op("Reshape", x, w.ints([*[0] * (x.ndim - rank), -1]))
    windows = w.op("Gather", flat, w.constant(places, "int64"), axis=-1)
    value = reduce_with(
        w, "ReduceMax", WriterValue(windows, x.dtype, (None,) * (x.ndim - rank + 2)), [x.ndim - rank + 1], False
    )
    chosen = w.op("ArgMax", windows, axis=-1, keepdims=0)
    chosen = w.op("Add", chosen, w.constant(np.arange(count) * places.shape[1], "int64"))
    place = w.op("Gather", w.constant(places.reshape(-1), "int64"), chosen)
    whole = w.ints([*[0] * (x.ndim - rank), *wanted])
    return [w.op("Reshape", value, whole), w.op("Reshape", place, whole)]


def _per_channel(w: OnnxGraphBuilder, value: Any, x: WriterValue) -> str:
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
    w: OnnxGraphBuilder, x: WriterValue, weight: WriterValue | None, bias: WriterValue | None, mean: WriterValue | None, var: WriterValue | None, training: bool,
    momentum: float, eps: float, cudnn_enabled: bool = False,
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
    out = out if weight is None else w.op("Mul", out, _per_channel(w, weight, x))
    out = out if bias is None else w.op("Add", out, _per_channel(w, bias, x))
    return [out, w.reshape(middle, [-1]), w.reshape(inverse, [-1])]


@translates("aten._native_batch_norm_legit_no_training", "aten._batch_norm_no_update")
def batch_norm_no_training(
    w: OnnxGraphBuilder,
    x: WriterValue,
    weight: WriterValue | None,
    bias: WriterValue | None,
    mean: WriterValue,
    var: WriterValue,
    momentum: float,
    eps: float,
) -> list[str]:
    nothing = w.constant(np.zeros(0), x.dtype)
    return [batch_norm_with(w, x, weight, bias, mean, var, eps), nothing, nothing]


@translates("aten._native_batch_norm_legit.no_stats")
def batch_norm_no_stats(
    w: OnnxGraphBuilder,
    x: WriterValue,
    weight: WriterValue | None,
    bias: WriterValue | None,
    training: bool,
    momentum: float,
    eps: float,
) -> list[str]:
    return batch_statistics(w, x, weight, bias, eps)


@translates("aten._native_batch_norm_legit_functional", "aten.native_batch_norm")
def batch_norm_functional(
    w: OnnxGraphBuilder, x: WriterValue, weight: WriterValue | None, bias: WriterValue | None, mean: WriterValue, var: WriterValue, training: bool, momentum: float,
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
    w: OnnxGraphBuilder, x: WriterValue, weight: WriterValue | None, bias: WriterValue | None, mean: Any, var: Any, use_input_stats: bool,
    momentum: float, eps: float, cudnn_enabled: bool = False,
) -> str:  # fmt: skip
    if not use_input_stats:
        return batch_norm_with(w, x, weight, bias, mean, var, eps)
    count = x.sizes[1] or 1
    scale = weight if weight is not None else w.constant(np.ones(count), x.dtype)
    shift = bias if bias is not None else w.constant(np.zeros(count), x.dtype)
    return w.op("InstanceNormalization", x, scale, shift, epsilon=float(eps))


@translates("aten.layer_norm")
def layer_norm(
    w: OnnxGraphBuilder, x: WriterValue, shape: Any, weight: WriterValue | None = None, bias: WriterValue | None = None, eps: float = 1e-5,
    cudnn_enable: bool = True,
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
    w: OnnxGraphBuilder, x: WriterValue, groups: int, weight: WriterValue | None = None, bias: WriterValue | None = None, eps: float = 1e-5,
    cudnn_enabled: bool = True,
) -> str:  # fmt: skip
    count = x.sizes[1] or 1
    if w.version >= 21:
        scale = weight if weight is not None else w.constant(np.ones(count), x.dtype)
        shift = bias if bias is not None else w.constant(np.zeros(count), x.dtype)
        return w.op("GroupNormalization", x, scale, shift, epsilon=float(eps), num_groups=groups)
    flat = w.op("Reshape", x, w.constant([0, groups, -1], "int64"))
    one, zero = w.constant(np.ones(groups), x.dtype), w.constant(np.zeros(groups), x.dtype)
    out = w.op("Reshape", w.op("InstanceNormalization", flat, one, zero, epsilon=float(eps)), w.shape(x))
    out = out if weight is None else w.op("Mul", out, _per_channel(w, weight, x))
    return out if bias is None else w.op("Add", out, _per_channel(w, bias, x))


@translates("aten.native_group_norm")
def native_group_norm(
    w: OnnxGraphBuilder,
    x: WriterValue,
    weight: WriterValue | None,
    bias: WriterValue | None,
    n: Any,
    c: Any,
    hw: Any,
    groups: int,
    eps: float,
) -> list[str]:
    nothing = w.constant(np.zeros(0), x.dtype)
    return [group_norm(w, x, groups, weight, bias, eps), nothing, nothing]


@translates("aten.dropout", "aten.dropout_")
def dropout(w: OnnxGraphBuilder, x: WriterValue, p: float, train: bool) -> str:
    if not train or p == 0:
        return x.name
    return w.op("Dropout", x, w.constant(p, "float32"), w.constant(True, "bool"))


@translates("aten.native_dropout")
def native_dropout(w: OnnxGraphBuilder, x: WriterValue, p: float, train: bool | None) -> list[str]:
    training = w.constant(bool(train is not False), "bool")
    return w.op("Dropout", x, w.constant(p, "float32"), training, outputs=2)


@translates("aten.scaled_dot_product_attention")
def attention(
    w: OnnxGraphBuilder, q: WriterValue, k: WriterValue, v: WriterValue, mask: WriterValue | None = None, dropout_p: float = 0.0, is_causal: bool = False, *,
    scale: float | None = None, enable_gqa: bool = False,
) -> str:  # fmt: skip
    head = q.sizes[-1]
    if scale is None:
        if head is None:
            raise OnnxExporterError("scaled_dot_product_attention: heads of no fixed size")
        scale = 1 / math.sqrt(head)
    if enable_gqa and q.sizes[-3] != k.sizes[-3]:
        k, v = (_repeat_heads(w, x, (q.sizes[-3] or 0) // (x.sizes[-3] or 1)) for x in (k, v))
    order = [*range(k.ndim - 2), k.ndim - 1, k.ndim - 2]
    root = w.constant(math.sqrt(scale), q.dtype)
    scores = w.op("MatMul", w.op("Mul", q, root), w.op("Mul", w.permute(k, order), root))
    lowest = w.constant(-math.inf, q.dtype)
    if is_causal:
        rows, columns = w.size(q, q.ndim - 2), w.size(k, k.ndim - 2)
        whole = w.op("Expand", w.constant(1, "int64"), w.ints([rows, columns]))
        seen = w.cast(w.op("Trilu", whole, upper=0), "bool", "int64")
        scores = w.op("Where", seen, scores, lowest)
    blind = None
    if mask is not None:
        if mask.dtype == "bool":
            scores, blind = w.op("Where", mask, scores, lowest), w.op("Not", mask)
        else:
            scores = w.op("Add", scores, mask)
    weights = w.op("Softmax", scores, axis=-1)
    if blind is not None:  # a fully masked row is NaN after softmax, and zero in attention
        weights = w.op("Where", w.op("IsNaN", weights), w.constant(0, q.dtype), weights)
    if dropout_p:
        weights = w.op("Dropout", weights, w.constant(dropout_p, "float32"), w.constant(True, "bool"))
    return w.op("MatMul", weights, v)


def _repeat_heads(w: OnnxGraphBuilder, x: WriterValue, times: int) -> WriterValue:
    sizes = [w.size(x, d) for d in range(x.ndim)]
    repeats = [1] * (x.ndim + 1)
    repeats[x.ndim - 2] = times
    wide = w.op("Tile", w.unsqueeze(x, x.ndim - 2), w.ints(repeats))
    heads = w.product([sizes[-3], times])
    name = w.reshape(wide, [*sizes[:-3], heads, *sizes[-2:]])
    return WriterValue(name, x.dtype, (*x.sizes[:-3], heads if isinstance(heads, int) else None, *x.sizes[-2:]))


def _scaled_dot_product(*names: str) -> None:
    @translates(*names)
    def write(
        w: OnnxGraphBuilder,
        q: WriterValue,
        k: WriterValue,
        v: WriterValue,
        *rest: Any,
        scale: float | None = None,
        **options: Any,
    ) -> list[str]:
        mask = rest[0] if rest and isinstance(rest[0], WriterValue) else options.get("attn_mask")
        flags = [item for item in rest if isinstance(item, bool)]
        causal = flags[-1] if flags else options.get("is_causal", False)
        nothing = w.constant(np.zeros(0), q.dtype)
        return [attention(w, q, k, v, mask, 0.0, bool(causal), scale=scale), nothing]


_scaled_dot_product("aten._scaled_dot_product_flash_attention_for_cpu", "aten._scaled_dot_product_attention_math")


@translates("aten.upsample_nearest1d", "aten.upsample_nearest2d", "aten.upsample_nearest3d")
def interpolate_nearest(w: OnnxGraphBuilder, x: WriterValue, size: Any, scales: Any = None, *rest: Any) -> str:
    return _resize(w, x, size, scales, rest, mode="nearest", coordinate_transformation_mode="asymmetric",
                   nearest_mode="floor")  # fmt: skip


@translates("aten._upsample_nearest_exact1d", "aten._upsample_nearest_exact2d", "aten._upsample_nearest_exact3d")
def interpolate_nearest_exact(w: OnnxGraphBuilder, x: WriterValue, size: Any, scales: Any = None, *rest: Any) -> str:
    return _resize(w, x, size, scales, rest, mode="nearest", coordinate_transformation_mode="half_pixel",
                   nearest_mode="round_prefer_ceil")  # fmt: skip


@translates(
    "aten.upsample_linear1d", "aten.upsample_bilinear2d", "aten.upsample_trilinear3d", "aten._upsample_bilinear2d_aa"
)
def interpolate_linear(
    w: OnnxGraphBuilder, x: WriterValue, size: Any, align_corners: bool, scales: Any = None, *rest: Any
) -> str:
    way = "align_corners" if align_corners else "pytorch_half_pixel"
    return _resize(w, x, size, scales, rest, mode="linear", coordinate_transformation_mode=way)


@translates("aten.upsample_bicubic2d", "aten._upsample_bicubic2d_aa")
def interpolate_cubic(
    w: OnnxGraphBuilder, x: WriterValue, size: Any, align_corners: bool, scales: Any = None, *rest: Any
) -> str:
    way = "align_corners" if align_corners else "pytorch_half_pixel"
    return _resize(w, x, size, scales, rest, mode="cubic", coordinate_transformation_mode=way, cubic_coeff_a=-0.75)


def _resize(w: OnnxGraphBuilder, x: WriterValue, size: Any, scales: Any, rest: tuple, **attributes: Any) -> str:
    if size is not None:
        whole = w.op("Concat", w.op("Shape", x, end=2), w.ints(list(size)), axis=0)
        return w.op("Resize", x, None, None, whole, **attributes)
    factors = list(scales) if isinstance(scales, (list, tuple)) else [scales, *rest]
    return w.op("Resize", x, None, w.constant([1, 1, *factors], "float32"), **attributes)


@translates("aten.grid_sampler", "aten.grid_sampler_2d", "aten.grid_sampler_3d")
def grid_sampler(
    w: OnnxGraphBuilder, x: WriterValue, grid: WriterValue, mode: int, padding: int, align_corners: bool
) -> str:
    modes = ("linear", "nearest", "cubic") if w.version >= 20 else ("bilinear", "nearest", "bicubic")
    return w.op("GridSample", x, grid, mode=modes[mode], padding_mode=("zeros", "border", "reflection")[padding],
                align_corners=int(align_corners))  # fmt: skip


@translates("aten.im2col")
def im2col(w: OnnxGraphBuilder, x: WriterValue, kernel: Any, dilation: Any, padding: Any, stride: Any) -> str:
    """Unfold windows by a convolution with one-hot kernels."""
    (kh, kw), count = kernel, x.sizes[1]
    eye = np.tile(np.eye(kh * kw).reshape(kh * kw, 1, kh, kw), (count or 1, 1, 1, 1))
    out = w.op("Conv", x, w.constant(eye, x.dtype), group=count, dilations=list(dilation), strides=list(stride),
               pads=list(padding) * 2, kernel_shape=[kh, kw])  # fmt: skip
    return w.op("Reshape", out, w.constant([0, (count or 1) * kh * kw, -1], "int64"))


@translates("aten.col2im")
def col2im(
    w: OnnxGraphBuilder, x: WriterValue, size: Any, kernel: Any, dilation: Any, padding: Any, stride: Any
) -> str:
    return w.op("Col2Im", x, w.ints(list(size)), w.ints(list(kernel)), dilations=list(dilation),
                pads=list(padding) * 2, strides=list(stride))  # fmt: skip


@translates("aten.cosine_similarity")
def cosine_similarity(w: OnnxGraphBuilder, x: WriterValue, y: WriterValue, dim: int = 1, eps: float = 1e-8) -> str:
    dims = [dim % x.ndim]
    sizes = [w.op("Max", reduce_with(w, "ReduceL2", v, dims, False), w.constant(eps, x.dtype)) for v in (x, y)]
    return w.op("Div", reduce_with(w, "ReduceSum", w.op("Mul", x, y), dims, False), w.op("Mul", *sizes))


def _mean_or_sum(w: OnnxGraphBuilder, value: str, x: WriterValue, reduction: int) -> str:
    if reduction == 0:
        return value
    return reduce_with(w, "ReduceMean" if reduction == 1 else "ReduceSum", value, list(range(x.ndim)), False)


@translates("aten.mse_loss")
def mse_loss(w: OnnxGraphBuilder, x: WriterValue, target: WriterValue, reduction: int = 1) -> str:
    apart = w.op("Sub", x, target)
    return _mean_or_sum(w, w.op("Mul", apart, apart), x, reduction)


@translates("aten.l1_loss")
def l1_loss(w: OnnxGraphBuilder, x: WriterValue, target: WriterValue, reduction: int = 1) -> str:
    return _mean_or_sum(w, w.op("Abs", w.op("Sub", x, target)), x, reduction)


_REDUCTIONS = ("none", "mean", "sum")


@translates("aten.cross_entropy_loss")
def cross_entropy(
    w: OnnxGraphBuilder, x: WriterValue, target: WriterValue, weight: WriterValue | None = None, reduction: int = 1, ignore_index: int = -100,
    label_smoothing: float = 0.0,
) -> str:  # fmt: skip
    if label_smoothing or target.is_float:
        raise OnnxExporterError("cross_entropy: probabilities as targets, or smoothed ones")
    return w.op(
        "SoftmaxCrossEntropyLoss", x, target, weight, reduction=_REDUCTIONS[reduction], ignore_index=ignore_index
    )


@translates("aten.nll_loss", "aten.nll_loss_nd", "aten.nll_loss2d")
def nll_loss(
    w: OnnxGraphBuilder,
    x: WriterValue,
    target: WriterValue,
    weight: WriterValue | None = None,
    reduction: int = 1,
    ignore_index: int = -100,
) -> str:
    return w.op("NegativeLogLikelihoodLoss", x, target, weight, reduction=_REDUCTIONS[reduction],
                ignore_index=ignore_index)  # fmt: skip


@translates("aten.rand", "aten.randn")
def random(w: OnnxGraphBuilder, size: Any, *, dtype: Any = None, **options: Any) -> str:
    raise OnnxExporterError("random numbers by a call of the program: give them as an input")


@translates("aten.rand_like")
def rand_like(w: OnnxGraphBuilder, x: WriterValue, *, dtype: Any = None, **options: Any) -> str:
    from .._element_types import NUMBERS

    return w.op("RandomUniformLike", x, dtype=NUMBERS[x.dtype if dtype is None else dtype_name(dtype)])


@translates("aten.randn_like")
def randn_like(w: OnnxGraphBuilder, x: WriterValue, *, dtype: Any = None, **options: Any) -> str:
    from .._element_types import NUMBERS

    return w.op("RandomNormalLike", x, dtype=NUMBERS[x.dtype if dtype is None else dtype_name(dtype)])
