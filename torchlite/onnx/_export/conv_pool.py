"""Export rules of convolutions and pools."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import OnnxExporterError
from .graph_builder import OnnxGraphBuilder, WriterValue, translates
from .reductions import reduce_with


def _repeat_value(value: Any, rank: int) -> list[int]:
    if isinstance(value, int):
        return [value] * rank
    return list(value) * rank if len(value) == 1 else list(value)


def _add_conv(
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
            "VALID" if padding == "valid" else _compute_same_padding(weight, given)
        )
    else:
        given["pads"] = _repeat_value(padding, rank) * 2
    out = w.op("Conv", value, weight, bias, kernel_shape=list(weight.sizes[2:]), **given)
    return w.squeeze(out, 0) if alone else out


def _compute_same_padding(weight: WriterValue, given: dict[str, Any]) -> list[int]:
    missing = [d * ((k or 1) - 1) for k, d in zip(weight.sizes[2:], given["dilations"], strict=True)]
    return [n // 2 for n in missing] + [n - n // 2 for n in missing]


@translates("aten.conv1d", "aten.conv2d", "aten.conv3d")
def conv(
    w: OnnxGraphBuilder, x: WriterValue, weight: WriterValue, bias: WriterValue | None = None, stride: Any = 1,
    padding: Any = 0, dilation: Any = 1,
    groups: int = 1,
) -> str:  # fmt: skip
    return _add_conv(w, x, weight, bias, stride, padding, dilation, groups)


def _add_conv_transpose(
    w: OnnxGraphBuilder, x: WriterValue, weight: WriterValue, bias: WriterValue | None, stride: Any, padding: Any,
    output_padding: Any, groups: int,
    dilation: Any,
) -> str:  # fmt: skip
    rank = weight.ndim - 2
    alone = x.ndim == rank + 1
    value = w.unsqueeze(x, 0) if alone else x
    begins, more, steps = (_repeat_value(v, rank) for v in (padding, output_padding, stride))
    # Runtimes refuse an output padding as large as the stride: rows of zeros at the end make as many results.
    extra = [-(-b // s) if b >= s else 0 for b, s in zip(more, steps, strict=True)]
    if any(extra):
        value = w.op("Pad", value, w.ints([0] * (rank + 4) + extra), w.constant(0, x.dtype), mode="constant")
    out = w.op(
        "ConvTranspose", value, weight, bias, kernel_shape=list(weight.sizes[2:]), strides=steps, pads=begins * 2,
        output_padding=[0 if e else b for b, e in zip(more, extra, strict=True)], group=groups,
        dilations=_repeat_value(dilation, rank),
    )  # fmt: skip
    for i, e in enumerate(extra):
        if e * steps[i] > more[i] and e:
            out = w.slice(out, 2 + i, 0, more[i] - e * steps[i])
    return w.squeeze(out, 0) if alone else out


@translates("aten.conv_transpose1d", "aten.conv_transpose2d", "aten.conv_transpose3d")
def conv_transpose(
    w: OnnxGraphBuilder, x: WriterValue, weight: WriterValue, bias: WriterValue | None = None, stride: Any = 1,
    padding: Any = 0, output_padding: Any = 0,
    groups: int = 1, dilation: Any = 1,
) -> str:  # fmt: skip
    return _add_conv_transpose(w, x, weight, bias, stride, padding, output_padding, groups, dilation)


@translates("aten.convolution")
def convolution(
    w: OnnxGraphBuilder, x: WriterValue, weight: WriterValue, bias: WriterValue | None, stride: Any, padding: Any,
    dilation: Any, transposed: bool,
    output_padding: Any, groups: int,
) -> str:  # fmt: skip
    if transposed:
        return _add_conv_transpose(w, x, weight, bias, stride, padding, output_padding, groups, dilation)
    return _add_conv(w, x, weight, bias, stride, padding, dilation, groups)


def _with_batch(w: OnnxGraphBuilder, x: WriterValue, rank: int) -> tuple[Any, bool]:
    alone = x.ndim == rank + 1
    return (w.unsqueeze(x, 0) if alone else x), alone


def _add_max_pool(
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
        strides=_repeat_value(stride if stride not in (None, [], ()) else kernel, rank),
        pads=_repeat_value(padding, rank) * 2,
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


def _add_average_pool(
    w: OnnxGraphBuilder, x: WriterValue, rank: int, kernel: Any, stride: Any, padding: Any, ceil_mode: bool,
    count_include_pad: bool, divisor: int | None,
) -> str:  # fmt: skip
    value, alone = _with_batch(w, x, rank)
    sizes, steps, pads = (_repeat_value(v, rank) for v in (kernel, stride, padding))
    if divisor is None and not ceil_mode:
        out = w.op(
            "AveragePool", value, kernel_shape=sizes, strides=steps, pads=pads * 2,
            count_include_pad=int(count_include_pad),
        )  # fmt: skip
        return w.squeeze(out, 0) if alone else out
    # Runtimes count windows over the edge in different ways: divide sums by counts that are known.
    ends, counts = _window_counts(x, rank, sizes, steps, pads, ceil_mode, count_include_pad, divisor is None)
    channels = x.sizes[x.ndim - rank - 1]
    if channels is None:
        raise OnnxExporterError("avg_pool: channels of no fixed number")
    ones = w.constant(np.ones((channels, 1, *sizes)), x.dtype)
    total = w.op("Conv", value, ones, group=channels, kernel_shape=sizes, strides=steps, pads=[*pads, *ends])
    out = w.op("Div", total, w.constant(counts if divisor is None else divisor, x.dtype))
    return w.squeeze(out, 0) if alone else out


def _window_counts(
    x: WriterValue, rank: int, sizes: list[int], steps: list[int], pads: list[int], ceil_mode: bool, padded: bool,
    counted: bool,
) -> tuple[list[int], Any]:  # fmt: skip
    """Return the padding at the ends that makes all windows whole, and each window's number of elements."""
    ends, counts = [], np.ones((), np.int64)
    for n, k, step, pad in zip(x.sizes[x.ndim - rank :], sizes, steps, pads, strict=True):
        if n is None:
            if ceil_mode or counted:
                raise OnnxExporterError("avg_pool: windows over the edge of images of no fixed size")
            ends.append(pad)
            continue
        rest = n + 2 * pad - k
        many = (-(-rest // step) if ceil_mode else rest // step) + 1
        if ceil_mode and (many - 1) * step >= n + pad:  # the last window begins in the image or the padding before it
            many -= 1
        ends.append(max((many - 1) * step + k - n - pad, 0))
        begins = np.arange(many) * step - pad
        low, high = (-pad, n + pad) if padded else (0, n)
        count = np.minimum(begins + k, high) - np.maximum(begins, low)
        counts = counts[..., None] * count
    return ends, counts


def _register_pools(rank: int) -> None:
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
        return _add_max_pool(w, x, rank, kernel, stride, padding, dilation, ceil_mode, 1)

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
        return _add_max_pool(w, x, rank, kernel, stride, padding, dilation, ceil_mode, 2)

    @translates(f"aten.avg_pool{rank}d")
    def avg_pool(
        w: OnnxGraphBuilder, x: WriterValue, kernel: Any, stride: Any = (), padding: Any = 0, ceil_mode: bool = False,
        count_include_pad: bool = True, divisor_override: int | None = None,
    ) -> str:  # fmt: skip
        return _add_average_pool(
            w, x, rank, kernel, stride or kernel, padding, ceil_mode, count_include_pad, divisor_override
        )

    @translates(f"aten.adaptive_avg_pool{rank}d", f"aten._adaptive_avg_pool{rank}d")
    def adaptive_avg_pool(w: OnnxGraphBuilder, x: WriterValue, size: Any) -> str:
        return _adaptive_pool(w, x, rank, size, "AveragePool")

    @translates(f"aten.adaptive_max_pool{rank}d")
    def adaptive_max_pool(w: OnnxGraphBuilder, x: WriterValue, size: Any) -> list[str]:
        return _adaptive_pool(w, x, rank, size, "MaxPool")


def _adaptive_pool(w: OnnxGraphBuilder, x: WriterValue, rank: int, size: Any, kind: str) -> Any:
    """Pool adaptively: globally, by equal windows if they fit, else by products (average) or gathers (maximum)."""
    target, now = _repeat_value(size, rank), x.sizes[x.ndim - rank :]
    target = [n if n is not None else now[i] for i, n in enumerate(target)]
    if all(n == 1 for n in target):
        dims = list(range(x.ndim - rank, x.ndim))
        if kind == "AveragePool":
            return reduce_with(w, "ReduceMean", x, dims, True)
        flat = w.op("Flatten", x, axis=x.ndim - rank)
        place = w.op("ArgMax", flat, axis=1, keepdims=1)
        whole = w.op("Concat", w.op("Shape", x, end=x.ndim - rank), w.ints([1] * rank), axis=0)
        return [reduce_with(w, "ReduceMax", x, dims, True), w.op("Reshape", place, whole)]
    if any(n is None for n in now):
        raise OnnxExporterError(f"adaptive pooling to {target} of images of no fixed size")
    if all(n % k == 0 for n, k in zip(now, target, strict=True)):  # type: ignore[operator]
        kernel = [n // k for n, k in zip(now, target, strict=True)]  # type: ignore[operator]
        if kind == "MaxPool":
            return _add_max_pool(w, x, rank, kernel, kernel, 0, 1, False, 2)
        value, alone = _with_batch(w, x, rank)
        pooled = w.op("AveragePool", value, kernel_shape=kernel, strides=kernel)
        return w.squeeze(pooled, 0) if alone else pooled
    if kind == "MaxPool":
        return _adaptive_max_pool(w, x, now, target)
    out: Any = x
    for i, (n, k) in enumerate(zip(now, target, strict=True)):
        shares = np.zeros((n, k))  # type: ignore[type-var]
        for j in range(k):
            begin, end = _adaptive_window(n, k, j)  # type: ignore[arg-type]
            shares[begin:end, j] = 1 / (end - begin)
        order = list(range(x.ndim))
        order[x.ndim - rank + i], order[-1] = order[-1], order[x.ndim - rank + i]
        turned = out if order == sorted(order) else w.permute(out, order)
        out = w.op("MatMul", turned, w.constant(shares, x.dtype))
        out = out if order == sorted(order) else w.permute(out, order)
    return out


def _adaptive_window(size: int, count: int, at: int) -> tuple[int, int]:
    """Return begin and end of an adaptive pooling window."""
    return at * size // count, -(-(at + 1) * size // count)


def _adaptive_max_pool(w: OnnxGraphBuilder, x: WriterValue, now: Sequence[Any], wanted: Sequence[Any]) -> list[str]:
    """Pool the maximum of unequal windows, gathered with the longest length; shorter ones repeat their last element."""
    rank, lines = len(now), []
    for size, count in zip(now, wanted, strict=True):
        ends = [_adaptive_window(size, count, i) for i in range(count)]
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


for _rank in (1, 2, 3):
    _register_pools(_rank)
