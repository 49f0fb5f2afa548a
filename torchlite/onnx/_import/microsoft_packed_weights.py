"""Ops of the domain com.microsoft with packed weights of 2, 4 and 8 bits, which have a scale for each block."""

from __future__ import annotations

from typing import Any

import torchlite as torch
from torchlite import Tensor
from torchlite.nn import functional as F

from .._element_types import NarrowTensor
from .com_microsoft import _DOMAIN
from .indexing import gather
from .op_registry import op
from .quantization import dequantize
from .resource_limits import check_elements, check_matmul

# What the levels of 4-bit floats stand for, with a sign of their own and as quantiles of normal numbers.
_FLOAT4 = (0.0, 5.208333333e-03, 2 / 3, 1.0, 1 / 3, 0.5, 1 / 6, 0.25)
_NORMAL4 = (
    -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
    -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
    0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0,
)  # fmt: skip


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
    has_float_zeros = zero_points is not None and zero_points.is_floating_point()
    # ONNX Runtime 1.32 on x86 has no integer kernels for the other forms.
    if accuracy_level == 4 and g_idx is None and not has_float_zeros and (bits > 2 or block_size > 16):
        a = _round_blocks(a, block_size)
    out = torch.matmul(a, weight.t().to(a.dtype))
    return out if bias is None else out + bias


def _round_blocks(x: Tensor, block_size: int) -> Tensor:
    """Round each block of a row to 255 levels, whose greatest is the block's greatest number: ONNX Runtime multiplies
    these levels as integers.
    """
    padded = F.pad(x, (0, -x.shape[-1] % block_size)).unflatten(-1, (-1, block_size))
    greatest = padded.abs().amax(-1, keepdim=True)
    levels = torch.round(padded * torch.where(greatest == 0, 0.0, 127.0 / greatest))
    return (levels * (greatest / 127.0)).flatten(-2)[..., : x.shape[-1]]


def _unpack_bits(packed: Tensor, bits: int) -> Tensor:
    """Numbers of a few bits, the lowest first, along the last dimension."""
    wide = packed.to(torch.int32)
    parts = [(wide >> shift) & ((1 << bits) - 1) for shift in range(0, 8, bits)]
    return torch.stack(parts, -1).flatten(-2)


@op("MatMulBnb4", domain=_DOMAIN)
def matmul_bnb4(
    a: Tensor, b: Tensor, absmax: Tensor, *, K: int, N: int, block_size: int, quant_type: int,
    training_mode: int = 0, transB: int = 1,
) -> Tensor:  # fmt: skip
    """A product with a matrix of 4-bit floats (0) or normal quantiles (1), times the greatest number of each block."""
    if quant_type not in (0, 1) or block_size <= 0:
        raise ValueError(f"MatMulBnb4: type {quant_type} and blocks of {block_size}")
    check_elements("MatMulBnb4", N, K)
    values = torch.tensor(_NORMAL4 if quant_type else (*_FLOAT4, *(-x for x in _FLOAT4)), device=b.device)
    pairs = b.reshape(-1).to(torch.int64)
    numbers = values[torch.stack((pairs >> 4, pairs & 15), -1).reshape(-1)[: N * K]]
    blocks = torch.arange(N * K, device=b.device) // block_size
    weight = (numbers * absmax.reshape(-1).to(torch.float32)[blocks]).reshape(N, K)
    weight = (weight.t() if transB else weight).to(a.dtype)
    check_matmul(a, weight)
    return torch.matmul(a, weight)


@op("GatherBlockQuantized", domain=_DOMAIN)
def gather_block_quantized(
    data: Any, indices: Tensor, scales: Tensor, zero_points: Any = None, *, bits: int = 4, block_size: int = 128,
    gather_axis: int = 0, quantize_axis: int = 1,
) -> Tensor:  # fmt: skip
    """Slices of a table whose levels have a scale for each block. Levels of an uint8 table are packed along a row."""
    bias = None
    if isinstance(data, Tensor) and data.dtype is torch.uint8:
        if bits not in (2, 4, 8):
            raise ValueError(f"GatherBlockQuantized: a table of {bits} bits")
        if quantize_axis % data.ndim != data.ndim - 1:
            raise ValueError("GatherBlockQuantized: packed levels have blocks along the last dimension")
        check_elements("GatherBlockQuantized", data.numel(), 8 // bits)
        data = _unpack_bits(data, bits)
        if zero_points is None:
            bias = torch.full_like(scales, 1 << (bits - 1), dtype=torch.int32)
        else:
            bias = _unpack_bits(zero_points, bits)[..., : scales.shape[-1]]
    elif zero_points is not None:
        bias = zero_points
    blocks = block_size or (data.values if isinstance(data, NarrowTensor) else data).shape[quantize_axis]
    whole = (quantize_axis % scales.ndim) != (gather_axis % scales.ndim)
    if not whole:
        return gather(dequantize(data, scales, bias, axis=quantize_axis, block_size=blocks), indices, axis=gather_axis)
    # Only the chosen slices are dequantized.
    parts = [None if part is None else gather(part, indices, axis=gather_axis) for part in (data, scales, bias)]
    axis = quantize_axis % scales.ndim
    moved = axis + (indices.ndim - 1 if axis > gather_axis % scales.ndim else 0)
    return dequantize(*parts, axis=moved, block_size=blocks)
