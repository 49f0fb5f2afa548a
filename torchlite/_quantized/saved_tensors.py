"""Quantized tensors in checkpoints: the parameters of their quantizers, as PyTorch writes them."""

from __future__ import annotations

import math
from typing import Any

import torchlite as torch

from .._types.qschemes import per_channel_affine, per_tensor_affine, qscheme
from .packed_levels import is_packed, wrap_packed
from .quantized_tensor import wrap_quantized
from .quantizers import BITS, QUANTIZED, PerTensor, make_per_channel


def saved_parts(tensor: Any) -> tuple[Any, tuple]:
    """Return the integers of a quantized tensor, and its quantizer as PyTorch writes it."""
    data = tensor._tl_array
    quantizer, values = data.quantizer, data.packed if is_packed(tensor) else data.values
    if isinstance(quantizer, PerTensor):
        return values, (quantizer.scheme, quantizer.scale, quantizer.zero_point)
    # Files name this scheme for float zero points too.
    return values, (per_channel_affine, quantizer.scales, quantizer.zero_points, quantizer.axis)


def rebuild(values: Any, quantizer: Any, packed: Any = None) -> Any:
    """A quantized tensor out of a file, which may contain anything. RuntimeError for parts that do not fit.

    packed: the dtype and the shape of levels with fewer than eight bits, of which `values` has the bytes.
    """
    made = _rebuild_quantizer(quantizer)
    if packed is None:
        if values.dtype not in QUANTIZED:
            raise RuntimeError(f"a quantized tensor has integers, but got {values.dtype}")
        shape = tuple(values.shape)
    else:
        dtype, shape = packed
        if values.numel() * 8 < math.prod(shape) * BITS[dtype]:
            raise RuntimeError(f"{values.numel()} bytes are too few for {list(shape)} levels of {dtype}")
    if not isinstance(made, PerTensor):
        made.check(shape)
    return wrap_quantized(values, made) if packed is None else wrap_packed(values, shape, made, dtype)


def _rebuild_quantizer(quantizer: Any) -> Any:
    kinds = {3: (qscheme, float, int), 4: (qscheme, torch.Tensor, torch.Tensor, int)}.get(
        len(quantizer) if isinstance(quantizer, tuple) else 0
    )
    if kinds is None or any(not isinstance(part, kind) for part, kind in zip(quantizer, kinds, strict=True)):
        raise RuntimeError("the quantizer of a quantized tensor is invalid")
    if len(quantizer) == 3:
        if quantizer[0] is not per_tensor_affine:
            raise RuntimeError(f"Can't deserialize quantized tensor with qscheme {quantizer[0]}")
        return PerTensor(*quantizer[1:])
    made = make_per_channel(*quantizer[1:])
    if quantizer[0] not in (per_channel_affine, made.scheme):
        raise RuntimeError(f"Can't deserialize quantized tensor with qscheme {quantizer[0]}")
    return made
