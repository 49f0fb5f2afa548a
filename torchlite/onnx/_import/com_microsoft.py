"""Ops of the domain com.microsoft: what ONNX Runtime's optimizer and quantizer write into files."""

from __future__ import annotations

import functools
import math
from typing import Any

import torchlite as torch
from torchlite import Tensor
from torchlite.nn import functional as F

from .conv_pool import average_pool, conv
from .op_registry import Ints, op
from .quantization import dequantize, dynamic_quantize, integer_matmul, quantize
from .recurrent import check_direction, choose_activations, make_initial_state, run_steps, split_biases
from .resource_limits import check_broadcast, check_elements, check_matmul

_DOMAIN = "com.microsoft"


# -- quantized ops ---------------------------------------------------------------------------------

op("QuantizeLinear", domain=_DOMAIN)(quantize)
op("DequantizeLinear", domain=_DOMAIN)(dequantize)


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


def _binary(function: Any, a: Tensor, a_scale: Tensor, a_zero: Any, b: Tensor, b_scale: Tensor, b_zero: Any) -> Tensor:
    check_broadcast("a quantized op", a, b)
    return function(dequantize(a, a_scale, a_zero), dequantize(b, b_scale, b_zero))


@op("QLinearAdd", domain=_DOMAIN)
def qlinear_add(
    a: Tensor, a_scale: Tensor, a_zero: Tensor | None, b: Tensor, b_scale: Tensor, b_zero: Tensor | None,
    c_scale: Tensor, c_zero: Tensor | None = None,
) -> Tensor:  # fmt: skip
    return quantize(_binary(torch.add, a, a_scale, a_zero, b, b_scale, b_zero), c_scale, c_zero)


@op("QLinearMul", domain=_DOMAIN)
def qlinear_mul(
    a: Tensor, a_scale: Tensor, a_zero: Tensor | None, b: Tensor, b_scale: Tensor, b_zero: Tensor | None,
    c_scale: Tensor, c_zero: Tensor | None = None,
) -> Tensor:  # fmt: skip
    return quantize(_binary(torch.mul, a, a_scale, a_zero, b, b_scale, b_zero), c_scale, c_zero)


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


@op("QLinearSoftmax", domain=_DOMAIN)
def qlinear_softmax(
    x: Tensor, x_scale: Tensor, x_zero: Tensor | None, y_scale: Tensor, y_zero: Tensor, *, axis: int = -1,
    opset: int = 13,
) -> Tensor:  # fmt: skip
    wide = dequantize(x, x_scale, x_zero)
    if opset >= 13:
        return quantize(torch.softmax(wide, axis), y_scale, y_zero)
    rows = wide.reshape(math.prod(x.shape[: axis % x.ndim]), -1)
    return quantize(torch.softmax(rows, 1).reshape(x.shape), y_scale, y_zero)


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


@op("MatMulNBits", domain=_DOMAIN)
def matmul_n_bits(
    a: Tensor, b: Tensor, scales: Tensor, zero_points: Tensor | None = None, g_idx: Tensor | None = None,
    bias: Tensor | None = None, *, K: int, N: int, accuracy_level: int = 0, bits: int = 4, block_size: int,
) -> Tensor:  # fmt: skip
    """A product with a matrix of 2, 4 or 8 bits, which has a scale for each block of a column."""
    if bits not in (2, 4, 8):
        raise ValueError(f"MatMulNBits: a matrix of {bits} bits")
    blocks = -(-K // block_size)
    check_elements("MatMulNBits", N, blocks * block_size)
    values = _unpack_bits(b.reshape(N, blocks, -1), bits)[..., :block_size].to(torch.float32)
    if zero_points is None:
        zero: Any = float(1 << (bits - 1))
    elif zero_points.is_floating_point():
        zero = zero_points.reshape(N, blocks, 1).to(torch.float32)
    else:
        zero = _unpack_bits(zero_points.reshape(N, -1), bits)[:, :blocks].reshape(N, blocks, 1).to(torch.float32)
    scale = scales.reshape(N, blocks).to(torch.float32)
    if g_idx is None:
        weight = ((values - zero) * scale[:, :, None]).reshape(N, -1)[:, :K]
    else:
        rows = g_idx.to(torch.int64)[:K]
        shift = zero if isinstance(zero, float) else zero[:, :, 0][:, rows]
        weight = (values.reshape(N, -1)[:, :K] - shift) * scale[:, rows]
    check_matmul(a, weight.t())
    out = torch.matmul(a, weight.t().to(a.dtype))
    return out if bias is None else out + bias


def _unpack_bits(packed: Tensor, bits: int) -> Tensor:
    """Numbers of a few bits, the lowest first, along the last dimension."""
    wide = packed.to(torch.int32)
    parts = [(wide >> shift) & ((1 << bits) - 1) for shift in range(0, 8, bits)]
    return torch.stack(parts, -1).flatten(-2)


# -- fused ops -------------------------------------------------------------------------------------


@op("Gelu", domain=_DOMAIN)
def gelu(x: Tensor) -> Tensor:
    return F.gelu(x)


@op("BiasGelu", domain=_DOMAIN)
def bias_gelu(x: Tensor, bias: Tensor) -> Tensor:
    check_broadcast("BiasGelu", x, bias)
    return F.gelu(x + bias)


@op("FastGelu", domain=_DOMAIN)
def fast_gelu(x: Tensor, bias: Tensor | None = None) -> Tensor:
    return F.gelu(x if bias is None else x + bias, approximate="tanh")


@op("QuickGelu", domain=_DOMAIN)
def quick_gelu(x: Tensor, *, alpha: float = 1.702) -> Tensor:
    return x * torch.sigmoid(alpha * x)


@op("FusedMatMul", domain=_DOMAIN)
def fused_matmul(
    a: Tensor, b: Tensor, *, alpha: float = 1.0, transA: int = 0, transB: int = 0, transBatchA: int = 0,
    transBatchB: int = 0,
) -> Tensor:  # fmt: skip
    def arrange(x: Tensor, swap: int, batch_last: int) -> Tensor:
        if batch_last and x.ndim > 2:  # the batch is between the rows and the columns
            x = x.movedim(0, -2)
        return x.transpose(-1, -2) if swap and x.ndim > 1 else x

    left, right = arrange(a, transA, transBatchA), arrange(b, transB, transBatchB)
    check_matmul(left, right)
    return torch.matmul(left, right) * alpha


_FUSED_ACTIVATIONS = {
    "": lambda x: x, "Relu": torch.relu, "Sigmoid": torch.sigmoid, "Tanh": torch.tanh,
}  # fmt: skip


def _activate(x: Tensor, name: str, params: Any) -> Tensor:
    given = list(params or [])
    if name in _FUSED_ACTIVATIONS:
        return _FUSED_ACTIVATIONS[name](x)
    if name == "LeakyRelu":
        return F.leaky_relu(x, *given[:1])
    if name == "Clip":
        return torch.clamp(x, *given[:2])
    if name == "HardSigmoid":
        alpha, beta = given[:2] if given else (0.2, 0.5)
        return torch.clamp(alpha * x + beta, 0, 1)
    raise ValueError(f"there is no activation {name!r}")


@op("FusedConv", domain=_DOMAIN)
def fused_conv(
    x: Tensor, w: Tensor, b: Tensor | None = None, z: Tensor | None = None, *, activation: str = "",
    activation_params: Any = None, auto_pad: str = "NOTSET", dilations: Ints = None, group: int = 1,
    kernel_shape: Ints = None, pads: Ints = None, strides: Ints = None,
) -> Tensor:  # fmt: skip
    out = conv(
        x, w, b, auto_pad=auto_pad, dilations=dilations, group=group, kernel_shape=kernel_shape, pads=pads,
        strides=strides,
    )  # fmt: skip
    return _activate(out if z is None else out + z, activation, activation_params)


@op("FusedGemm", domain=_DOMAIN)
def fused_gemm(
    a: Tensor, b: Tensor, c: Tensor | None = None, *, activation: str = "", activation_alpha: float = 0.0,
    activation_beta: float = 0.0, activation_gamma: float = 0.0, alpha: float = 1.0, beta: float = 1.0,
    transA: int = 0, transB: int = 0,
) -> Tensor:  # fmt: skip
    from .matmul import gemm

    out = gemm(a, b, c, alpha=alpha, beta=beta, transA=transA, transB=transB)
    given = [value for value in (activation_alpha, activation_beta, activation_gamma) if value]
    return _activate(out, activation, given)


def _skip_norm(norm: Any, x: Tensor, skip: Tensor, bias: Tensor | None, outputs: int) -> Any:
    check_broadcast("SkipLayerNormalization", x, skip)
    total = x + skip if bias is None else x + skip + bias
    out = norm(total)
    # The second and third output, mean and inverse deviation, are for training alone.
    return out if outputs == 1 else (out, None, None, total)[:outputs]


@op("SkipLayerNormalization", domain=_DOMAIN)
def skip_layer_normalization(
    x: Tensor, skip: Tensor, gamma: Tensor, beta: Tensor | None = None, bias: Tensor | None = None, *,
    epsilon: float = 1e-12, outputs: int = 1,
) -> Any:  # fmt: skip
    return _skip_norm(lambda t: F.layer_norm(t, gamma.shape, gamma, beta, epsilon), x, skip, bias, outputs)


@op("SkipSimplifiedLayerNormalization", domain=_DOMAIN)
def skip_simplified_layer_normalization(
    x: Tensor, skip: Tensor, gamma: Tensor, bias: Tensor | None = None, *, epsilon: float = 1e-12, outputs: int = 1
) -> Any:
    return _skip_norm(lambda t: F.rms_norm(t, gamma.shape, gamma, epsilon), x, skip, bias, outputs)


@op("EmbedLayerNormalization", domain=_DOMAIN)
def embed_layer_normalization(
    ids: Tensor, segments: Tensor | None, words: Tensor, places: Tensor, segment_table: Tensor | None, gamma: Tensor,
    beta: Tensor, mask: Tensor | None = None, position_ids: Tensor | None = None, *, epsilon: float = 1e-12,
    mask_index_type: int = 0, outputs: int = 1,
) -> Any:  # fmt: skip
    check_elements("EmbedLayerNormalization", ids.numel(), words.shape[1])
    at = torch.arange(ids.shape[1], device=ids.device) if position_ids is None else position_ids
    total = F.embedding(ids, words) + F.embedding(at, places)
    if segments is not None and segment_table is not None:
        total = total + F.embedding(segments, segment_table)
    out = F.layer_norm(total, gamma.shape, gamma, beta, epsilon)
    count = ids.new_zeros(ids.shape[0], dtype=torch.int32) if mask is None else mask.sum(1).to(torch.int32)
    return out if outputs == 1 else (out, count, total)[:outputs]


@op("MultiHeadAttention", domain=_DOMAIN)
def multi_head_attention(
    query: Tensor, key: Tensor | None = None, value: Tensor | None = None, bias: Tensor | None = None,
    mask: Tensor | None = None, attention_bias: Tensor | None = None, *, num_heads: int,
    mask_filter_value: float = -10000.0, scale: float | None = None, unidirectional: int = 0,
) -> Tensor:  # fmt: skip
    if key is None or value is None:
        raise ValueError("MultiHeadAttention: packed inputs")
    width = query.shape[-1]
    if bias is not None:
        query, key, value = query + bias[:width], key + bias[width : 2 * width], value + bias[2 * width :]
    return _attend(query, key, value, num_heads, mask, mask_filter_value, attention_bias, scale, unidirectional)


@op("Attention", domain=_DOMAIN)
def attention(
    x: Tensor, weights: Tensor, bias: Tensor | None = None, mask: Tensor | None = None, past: Tensor | None = None,
    attention_bias: Tensor | None = None, *, num_heads: int, mask_filter_value: float = -10000.0,
    qkv_hidden_sizes: Any = None, scale: float | None = None, unidirectional: int = 0,
) -> Tensor:  # fmt: skip
    if past is not None:
        raise ValueError("Attention: a past state")
    check_matmul(x, weights)
    all_three = torch.matmul(x, weights)
    all_three = all_three if bias is None else all_three + bias
    sizes = list(qkv_hidden_sizes or [weights.shape[1] // 3] * 3)
    query, key, value = torch.split(all_three, sizes, -1)
    return _attend(query, key, value, num_heads, mask, mask_filter_value, attention_bias, scale, unidirectional)


def _attend(
    query: Tensor, key: Tensor, value: Tensor, heads: int, mask: Tensor | None, filtered: float,
    attention_bias: Tensor | None, scale: float | None, causal: int,
) -> Tensor:  # fmt: skip
    """Attention of (batch, positions, heads * features)."""
    q, k, v = (part.unflatten(-1, (heads, -1)).transpose(1, 2) for part in (query, key, value))
    check_matmul(q, k.transpose(-1, -2))
    scores = torch.matmul(q, k.transpose(-1, -2)) * (scale or 1 / math.sqrt(q.shape[-1]))
    if attention_bias is not None:
        scores = scores + attention_bias
    if mask is not None:
        scores = scores + _mask_bias(mask, key.shape[1], filtered).to(scores.dtype)
    if causal:
        rows, columns = scores.shape[-2:]
        seen = torch.ones(rows, columns, dtype=torch.bool, device=scores.device).tril(columns - rows)
        scores = torch.where(seen, scores, torch.full_like(scores, -math.inf))
    out = torch.matmul(torch.softmax(scores, -1), v)
    return out.transpose(1, 2).flatten(-2)


def _mask_bias(mask: Tensor, keys: int, filtered: float) -> Tensor:
    """A summand of the scores: `filtered` where a mask of the keys, or the number of keys, hides one."""
    if mask.ndim == 1:
        mask = torch.arange(keys, device=mask.device) < mask[:, None]
    if mask.ndim == 2:
        mask = mask[:, None, None]
    elif mask.ndim == 3:
        mask = mask[:, None]
    return (1 - mask.to(torch.float32)) * filtered
