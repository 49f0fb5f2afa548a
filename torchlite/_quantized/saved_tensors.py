"""Quantized tensors in checkpoints: the parameters of their quantizers, as PyTorch writes them."""

from __future__ import annotations

from typing import Any

import torchlite as torch

from .._types.qschemes import per_tensor_affine, qscheme
from .quantized_tensor import wrap_quantized
from .quantizers import QUANTIZED, PerTensor, make_per_channel


def saved_parts(tensor: Any) -> tuple[Any, tuple]:
    """Return the integers of a quantized tensor, and its quantizer as PyTorch writes it."""
    quantizer = tensor._tl_array.quantizer
    if isinstance(quantizer, PerTensor):
        return tensor._tl_array.values, (quantizer.scheme, quantizer.scale, quantizer.zero_point)
    return tensor._tl_array.values, (quantizer.scheme, quantizer.scales, quantizer.zero_points, quantizer.axis)


def rebuild(values: Any, quantizer: Any) -> Any:
    """A quantized tensor out of a file, which may contain anything. RuntimeError for parts that do not fit."""
    kinds = {3: (qscheme, float, int), 4: (qscheme, torch.Tensor, torch.Tensor, int)}.get(
        len(quantizer) if isinstance(quantizer, tuple) else 0
    )
    if kinds is None or any(not isinstance(part, kind) for part, kind in zip(quantizer, kinds, strict=True)):
        raise RuntimeError("the quantizer of a quantized tensor is invalid")
    if values.dtype not in QUANTIZED:
        raise RuntimeError(f"a quantized tensor has integers, but got {values.dtype}")
    if len(quantizer) == 3:
        if quantizer[0] is not per_tensor_affine:
            raise RuntimeError(f"Can't deserialize quantized tensor with qscheme {quantizer[0]}")
        return wrap_quantized(values, PerTensor(*quantizer[1:]))
    made = make_per_channel(*quantizer[1:])
    if made.scheme is not quantizer[0]:
        raise RuntimeError(f"Can't deserialize quantized tensor with qscheme {quantizer[0]}")
    made.check(tuple(values.shape))
    return wrap_quantized(values, made)
