"""Ops of the domain com.microsoft on levels: what ONNX Runtime's quantizer writes into files.

Each rounds where ONNX Runtime 1.32 does on x86, so levels are equal. Zero points and scales are tensors.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import torchlite as torch
from torchlite import Tensor
from torchlite.nn import functional as F

from .com_microsoft import _DOMAIN, attend, embed_and_normalize
from .conv_pool import average_pool
from .op_registry import Ints, op
from .quantization import (
    dequantize,
    dynamic_quantize,
    integer_matmul,
    matmul_integer,
    qlinear_conv,
    quantize,
    to_levels,
)
from .recurrent import check_direction, choose_activations, make_initial_state, run_steps, split_biases
from .resource_limits import check_broadcast, check_elements, check_matmul

op("QuantizeLinear", domain=_DOMAIN)(quantize)
op("DequantizeLinear", domain=_DOMAIN)(dequantize)
op("MatMulInteger16", domain=_DOMAIN)(matmul_integer)


def _dynamic_product(x: Tensor, b: Tensor, b_zero: Tensor | None, b_scale: Tensor) -> Tensor:
    """The product of a tensor, rounded to 256 levels between its least and greatest element, with a quantized
    matrix.
    """
    levels, scale, zero = dynamic_quantize(x, outputs=3)
    return integer_matmul(levels, b, zero, b_zero, None, scale * b_scale)


@op("DynamicQuantizeMatMul", domain=_DOMAIN)
def dynamic_quantize_matmul(
    a: Tensor, b: Tensor, b_scale: Tensor, b_zero: Tensor | None = None, bias: Tensor | None = None
) -> Tensor:
    out = _dynamic_product(a, b, b_zero, b_scale)
    return out if bias is None else out + bias


@op("MatMulIntegerToFloat", domain=_DOMAIN)
def matmul_integer_to_float(
    a: Tensor, b: Tensor, a_scale: Tensor, b_scale: Tensor, a_zero: Tensor | None = None,
    b_zero: Tensor | None = None, bias: Tensor | None = None,
) -> Tensor:  # fmt: skip
    out = integer_matmul(a, b, a_zero, b_zero, None, a_scale * b_scale)
    return out if bias is None else out + bias


@op("QGemm", domain=_DOMAIN)
def qgemm(
    a: Tensor, a_scale: Tensor, a_zero: Tensor, b: Tensor, b_scale: Tensor, b_zero: Tensor, c: Tensor | None = None,
    y_scale: Tensor | None = None, y_zero: Tensor | None = None, *, alpha: float = 1.0, transA: int = 0,
    transB: int = 0,
) -> Tensor:  # fmt: skip
    left, right = a.t() if transA else a, b.t() if transB else b
    scale = alpha * a_scale * b_scale
    if y_scale is not None:
        scale = scale / y_scale
    if c is None or c.numel() == 1 or c.shape == right.shape[1:]:
        bias = c.reshape(()) if c is not None and c.numel() == 1 else c
        return integer_matmul(left, right, a_zero, b_zero, bias, scale, None if y_scale is None else y_zero)
    total = integer_matmul(left, right, a_zero, b_zero)
    check_broadcast("QGemm", total, c)
    out = (total + c).to(torch.float32) * scale
    # The scale of the result is in it already.
    return out if y_scale is None else quantize(out, torch.ones_like(y_scale), y_zero)


def _multiply_add(levels: Tensor, factor: Tensor, summand: Tensor) -> Tensor:
    """`levels * factor + summand`, rounded to float32 once. The product is exact in float64."""
    return (levels.to(torch.float64) * factor.to(torch.float64) + summand.to(torch.float64)).to(torch.float32)


def _number(zero: Tensor | None) -> Any:
    return 0.0 if zero is None else zero.to(torch.float32)


@op("QLinearAdd", domain=_DOMAIN)
def qlinear_add(
    a: Tensor, a_scale: Tensor, a_zero: Tensor | None, b: Tensor, b_scale: Tensor, b_zero: Tensor | None,
    c_scale: Tensor, c_zero: Tensor | None = None,
) -> Tensor:  # fmt: skip
    check_broadcast("QLinearAdd", a, b)
    if a.ndim and a.shape[-1] == 1 != b.shape[-1] or not a.ndim:
        # The operand that is one number in each row is added first.
        a, a_scale, a_zero, b, b_scale, b_zero = b, b_scale, b_zero, a, a_scale, a_zero
    a_factor, b_factor = a_scale / c_scale, b_scale / c_scale
    zeros = [torch.zeros_like(c_scale) if zero is None else zero.to(torch.float32) for zero in (a_zero, b_zero)]
    shift = _number(c_zero) - _multiply_add(zeros[0], a_factor, b_factor * zeros[1])
    return to_levels(_multiply_add(a, a_factor, _multiply_add(b, b_factor, shift)), a.dtype)


@op("QLinearMul", domain=_DOMAIN)
def qlinear_mul(
    a: Tensor, a_scale: Tensor, a_zero: Tensor | None, b: Tensor, b_scale: Tensor, b_zero: Tensor | None,
    c_scale: Tensor, c_zero: Tensor | None = None,
) -> Tensor:  # fmt: skip
    check_broadcast("QLinearMul", a, b)
    product = (a.to(torch.float32) - _number(a_zero)) * (b.to(torch.float32) - _number(b_zero))
    return to_levels(product * (a_scale * b_scale / c_scale) + _number(c_zero), a.dtype)


@op("QLinearWhere", domain=_DOMAIN)
def qlinear_where(
    condition: Tensor, x: Tensor, x_scale: Tensor, x_zero: Tensor, y: Tensor, y_scale: Tensor, y_zero: Tensor,
    z_scale: Tensor, z_zero: Tensor,
) -> Tensor:  # fmt: skip
    check_broadcast("QLinearWhere", condition, x, y)
    return quantize(
        torch.where(condition, dequantize(x, x_scale, x_zero), dequantize(y, y_scale, y_zero)), z_scale, z_zero
    )


@op("QLinearSigmoid", domain=_DOMAIN)
def qlinear_sigmoid(
    x: Tensor, x_scale: Tensor, x_zero: Tensor | None, y_scale: Tensor, y_zero: Tensor | None = None
) -> Tensor:
    return quantize(torch.sigmoid(dequantize(x, x_scale, x_zero)), y_scale, y_zero)


@op("QLinearLeakyRelu", domain=_DOMAIN)
def qlinear_leaky_relu(
    x: Tensor, x_scale: Tensor, x_zero: Tensor | None, y_scale: Tensor, y_zero: Tensor | None = None, *,
    alpha: float = 0.01,
) -> Tensor:  # fmt: skip
    return quantize(F.leaky_relu(dequantize(x, x_scale, x_zero), alpha), y_scale, y_zero)


# The exponents of levels are moved so far up that the sum of a row comes near float32's largest number.
_HEADROOM = 5.0


@op("QLinearSoftmax", domain=_DOMAIN)
def qlinear_softmax(
    x: Tensor, x_scale: Tensor, x_zero: Tensor | None, y_scale: Tensor, y_zero: Tensor | None = None, *,
    axis: int | None = None, opset: int = 13,
) -> Tensor:  # fmt: skip
    """The exponentials of the 256 distances from a row's greatest level are a table. A row is multiplied by a whole
    number, the reciprocal of the result's scale rounded down.
    """
    axis = (-1 if opset >= 13 else 1) if axis is None else axis
    if opset < 13:
        rows = x.reshape(math.prod(x.shape[: axis % x.ndim]), -1)
        return qlinear_softmax(rows, x_scale, x_zero, y_scale, y_zero).reshape(x.shape)
    shift = math.log(torch.finfo(torch.float32).max / max(x.shape[axis], 1)) - _HEADROOM
    distance = torch.arange(-255, 1, dtype=torch.float64, device=x.device)
    table = torch.exp(distance * x_scale.to(torch.float64).reshape(()) + shift).to(torch.float32)
    levels = x.to(torch.int64)
    powers = table[levels - (levels.amax(axis, True) - 255)]
    scaled = powers * torch.floor(1 / y_scale.reshape(()))
    return to_levels(torch.round(scaled / powers.sum(axis, keepdim=True)) + _number(y_zero), x.dtype)


@op("QLinearConcat", domain=_DOMAIN)
def qlinear_concat(y_scale: Tensor, y_zero: Tensor, *parts: Any, axis: int) -> Tensor:
    check_elements("QLinearConcat", sum(part.numel() for part in parts[::3]))
    wide = [dequantize(*parts[i : i + 3]) for i in range(0, len(parts), 3)]
    return quantize(torch.cat(wide, axis), y_scale, y_zero)


def _channels_first(x: Tensor, channels_last: int) -> Tensor:
    return x.movedim(-1, 1) if channels_last else x


@op("QLinearGlobalAveragePool", domain=_DOMAIN)
def qlinear_global_average_pool(
    x: Tensor, x_scale: Tensor, x_zero: Tensor, y_scale: Tensor, y_zero: Tensor, *, channels_last: int = 0
) -> Tensor:
    wide = _channels_first(dequantize(x, x_scale, x_zero), channels_last)
    out = quantize(wide.mean(tuple(range(2, x.ndim)), True), y_scale, y_zero)
    return out.movedim(1, -1) if channels_last else out


@op("QLinearAveragePool", domain=_DOMAIN)
def qlinear_average_pool(
    x: Tensor, x_scale: Tensor, x_zero: Tensor | None, y_scale: Tensor, y_zero: Tensor | None = None, *,
    auto_pad: str = "NOTSET", ceil_mode: int = 0, channels_last: int = 0, count_include_pad: int = 0,
    kernel_shape: Ints, pads: Ints = None, strides: Ints = None,
) -> Tensor:  # fmt: skip
    wide = _channels_first(dequantize(x, x_scale, x_zero), channels_last)
    out = average_pool(
        wide, auto_pad=auto_pad, ceil_mode=ceil_mode, count_include_pad=count_include_pad, kernel_shape=kernel_shape,
        pads=pads, strides=strides,
    )  # fmt: skip
    out = quantize(out, y_scale, y_zero)
    return out.movedim(1, -1) if channels_last else out


@op("QLinearConv", domain=_DOMAIN)
def qlinear_convolution(
    x: Tensor, x_scale: Tensor, x_zero: Tensor, w: Tensor, w_scale: Tensor, w_zero: Tensor, y_scale: Tensor,
    y_zero: Tensor, b: Tensor | None = None, *, auto_pad: str = "NOTSET", channels_last: int = 0,
    dilations: Ints = None, group: int = 1, kernel_shape: Ints = None, pads: Ints = None, strides: Ints = None,
) -> Tensor:  # fmt: skip
    out = qlinear_conv(
        _channels_first(x, channels_last), x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, b, auto_pad=auto_pad,
        dilations=dilations, group=group, kernel_shape=kernel_shape, pads=pads, strides=strides,
    )  # fmt: skip
    return out.movedim(1, -1) if channels_last else out


@op("DynamicQuantizeLSTM", domain=_DOMAIN)
def dynamic_quantize_lstm(
    x: Tensor, w: Tensor, r: Tensor, b: Tensor | None = None, lengths: Tensor | None = None,
    initial_h: Tensor | None = None, initial_c: Tensor | None = None, p: Tensor | None = None, *quantization: Tensor,
    activation_alpha: Any = None, activation_beta: Any = None, activations: Any = None, clip: float | None = None,
    direction: str = "forward", hidden_size: int | None = None, input_forget: int = 0, outputs: int = 1,
) -> Any:  # fmt: skip
    """The LSTM op with transposed, quantized weights. Inputs and states are quantized by their own range."""
    w_scale, w_zero, r_scale, r_zero = quantization
    ways = check_direction(direction)
    hidden = r.shape[1]
    check_matmul(x, w[0])
    start = tuple([make_initial_state(given, 0, x, len(ways), hidden) for given in (initial_h, initial_c)])
    functions = choose_activations(activations, activation_alpha, activation_beta, ["Sigmoid", "Tanh", "Tanh"], ways)
    size, depth = w.shape[2], w.shape[1]
    joined = w[0] if len(ways) == 1 else w.permute(1, 0, 2).reshape(depth, -1)
    scale, zero = (_of_columns(value, size) for value in (w_scale, w_zero))
    of_input, of_state = split_biases(b, ways, 4, hidden, x)
    places = None
    if lengths is not None:
        check_elements("DynamicQuantizeLSTM", x.shape[0], lengths.numel())
        steps = torch.arange(x.shape[0], device=x.device).reshape(-1, 1)
        # The range is that of the steps up to the longest length.
        x = torch.where(steps[:, :, None] < lengths.max(), x, torch.zeros_like(x))
        # A direction runs backwards from the end of each sequence, so all sequences are in the same step.
        places = torch.where(steps < lengths, lengths - 1 - steps, steps).to(torch.int64)
    sums = _dynamic_product(x, joined, zero, scale) + (of_input + of_state).reshape(-1)
    run = functools.partial(
        run_steps, "lstm", weight=r, state=start, activations=functions, peepholes=p, scale=r_scale, zero=r_zero,
        clip=clip, option=input_forget, outputs=3,
    )  # fmt: skip
    if places is None or not any(ways):
        y, *last = run(sums, ways=ways, lengths=lengths)
    else:
        parts = [
            _reverse_sequences(part, places) if backward else part
            for part, backward in zip(sums.chunk(len(ways), 2), ways, strict=True)
        ]
        y, *last = run(torch.cat(parts, 2), ways=(False,) * len(ways), lengths=lengths)
        found = [
            _reverse_sequences(part, places) if backward else part
            for part, backward in zip(y.unbind(1), ways, strict=True)
        ]
        y = torch.stack(found, 1)
    return (y, *last)[:outputs] if outputs > 1 else y


def _reverse_sequences(x: Tensor, places: Tensor) -> Tensor:
    return torch.gather(x, 0, places[:, :, None].expand(x.shape))


def _of_columns(value: Tensor, size: int) -> Tensor:
    """Return numbers of directions, or of their columns, as numbers of all columns."""
    if value.numel() == 1:
        return value.reshape(())
    return value.reshape(-1) if value.ndim > 1 else value.repeat_interleave(size)


@op("QAttention", domain=_DOMAIN)
def qattention(
    x: Tensor, weights: Tensor, bias: Tensor, x_scale: Tensor, w_scale: Tensor, mask: Tensor | None = None,
    x_zero: Tensor | None = None, w_zero: Tensor | None = None, past: Tensor | None = None, *, num_heads: int,
    do_rotary: int = 0, mask_filter_value: float = -10000.0, past_present_share_buffer: int = 0,
    scale: float | None = None, unidirectional: int = 0, outputs: int = 1,
) -> Any:  # fmt: skip
    if do_rotary or past_present_share_buffer:
        raise ValueError("QAttention: rotary embeddings, and a past state that shares the present one's memory")
    joined = matmul_integer_to_float(x, weights, x_scale, w_scale, x_zero, w_zero, bias)
    query, key, value = joined.chunk(3, -1)
    found = attend(query, key, value, num_heads, mask, mask_filter_value, scale=scale, causal=unidirectional, past=past)
    return found[0] if outputs == 1 else found[:outputs]


@op("QEmbedLayerNormalization", domain=_DOMAIN)
def qembed_layer_normalization(
    ids: Tensor, segments: Tensor | None, words: Tensor, places: Tensor, segment_table: Tensor | None, gamma: Tensor,
    beta: Tensor, mask: Tensor | None, *quantization: Tensor | None, epsilon: float = 1e-12, outputs: int = 1,
) -> Any:  # fmt: skip
    """The tables, gamma and beta are levels, whose scales and zero points follow in their order."""
    if len(quantization) != 10:
        raise ValueError(f"QEmbedLayerNormalization: {len(quantization)} scales and zero points, not 10")
    scales, zeros = quantization[:5], quantization[5:]
    parts: list[Any] = [
        None if levels is None or factor is None else dequantize(levels, factor, zero)
        for levels, factor, zero in zip((words, places, segment_table, gamma, beta), scales, zeros, strict=True)
    ]
    tables: Any = (*parts, mask)
    return embed_and_normalize(ids, segments, *tables, epsilon=epsilon, outputs=outputs)
