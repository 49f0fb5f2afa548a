"""The repr of quantized tensors: their numbers, size, dtype, scheme and parameters."""

from __future__ import annotations

from typing import Any

import torchlite as torch

from .._tensor.printing import add_suffixes, format_array
from .quantizers import PerTensor


def quantized_repr(tensor: Any) -> str:
    """Return the repr of a quantized tensor."""
    quantizer = tensor._tl_array.quantizer
    lead = "Parameter containing:\n" if getattr(tensor, "_is_param", False) else ""
    suffixes = [] if tensor.is_cpu and torch.get_default_device().type == "cpu" else [f"device='{tensor.device}'"]
    suffixes += [
        f"size={tuple(tensor.shape)}", f"dtype={tensor.dtype}", f"quantization_scheme={quantizer.scheme}",
    ]  # fmt: skip
    if isinstance(quantizer, PerTensor):
        suffixes += [f"scale={quantizer.scale}", f"zero_point={quantizer.zero_point}"]
    else:
        suffixes += [
            f"scale={quantizer.scales}", f"zero_point={quantizer.zero_points}", f"axis={quantizer.axis}",
        ]  # fmt: skip
    shown = tensor.dequantize()
    contents = "[]" if 0 in tensor.shape else format_array(shown._tl_kernels.to_numpy(shown._tl_array), len("tensor("))
    return lead + add_suffixes("tensor(" + contents, suffixes, len("tensor("))
