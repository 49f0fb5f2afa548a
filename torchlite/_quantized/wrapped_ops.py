"""`torch.ops._quantized`: linear layers whose packed weights are plain tensors, as graphs of PyTorch have them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torchlite as torch
import torchlite.nn.functional as F

from .half_parameters import saturate
from .packed_parameters import LinearPackedParams
from .quantized_tensor import wrap_quantized
from .quantizers import PerTensor


def _as_bytes(numbers: Any) -> Any:
    return numbers.reshape(-1).contiguous().view(torch.uint8)


def _pack(weight: Any, scale: Any, zero_point: Any, bias: Any) -> Any:
    """Return the bytes of the scale, the zero point, the bias and the weight's levels."""
    levels = torch.quantize_per_tensor(weight, scale, zero_point, torch.qint8).int_repr()
    parts = scale.to(torch.float64), zero_point.to(torch.int64), bias.detach().to(torch.float32), levels
    return torch.cat([_as_bytes(part) for part in parts])


def _product(
    x: Any, x_scale: Any, x_zero: Any, packed: Any, scale: Any, zero_point: Any, out_channel: int
) -> Any:  # fmt: skip
    size = out_channel * x.shape[-1]
    if packed.numel() != size + 16 + 4 * out_channel:
        raise RuntimeError(f"expected a packed weight of {out_channel} x {x.shape[-1]}, but got {packed.numel()} bytes")
    w_scale, w_zero, bias, levels = (
        part.view(dtype)
        for part, dtype in zip(
            packed.split([8, 8, 4 * out_channel, size]),
            (torch.float64, torch.int64, torch.float32, torch.int8), strict=True,
        )
    )  # fmt: skip
    quantizer = PerTensor(w_scale.item(), int(w_zero.item()))
    weight = wrap_quantized(levels.reshape(out_channel, -1), quantizer)
    qx = torch.quantize_per_tensor(x, x_scale, x_zero, torch.quint8)
    return LinearPackedParams(weight, bias)(qx, float(scale), int(zero_point)).dequantize()


def _quantized_linear(
    x: Any, x_scale: Any, x_zero: Any, w: Any, w_scale: Any, w_zero: Any, bias: Any, scale: Any, zero_point: Any,
    out_channel: int,
) -> Any:  # fmt: skip
    packed = _pack(w, w_scale, w_zero, bias)
    return _product(x, x_scale, x_zero, packed, scale, zero_point, len(w))


# The functions that compute the ops, by schema.
WRAPPED_OPS: dict[str, Callable[..., Any]] = {
    "wrapped_fbgemm_pack_gemm_matrix_fp16(Tensor W) -> Tensor": lambda w: saturate(w.detach()).to(torch.float16),
    "wrapped_fbgemm_linear_fp16_weight(Tensor X, Tensor W, Tensor B, int out_channel) -> Tensor":
        lambda x, w, bias, out_channel: F.linear(x, w.to(torch.float32), bias),
    "wrapped_quantized_linear(Tensor X, Tensor X_scale, Tensor X_zero_point, Tensor W, Tensor W_scale, "
    "Tensor W_zero_point, Tensor B, Tensor output_scale, Tensor output_zero_point, int out_channel) -> Tensor Y":
        _quantized_linear,
    "_wrapped_linear_prepack(Tensor W, Tensor W_scale, Tensor W_zero_point, Tensor B) -> Tensor": _pack,
    "_wrapped_quantized_linear_prepacked(Tensor X, Tensor X_scale, Tensor X_zero_point, Tensor W_prepack, "
    "Tensor output_scale, Tensor output_zero_point, int out_channel) -> Tensor Y": _product,
}  # fmt: skip
_SHARED = (
    "add", "linear", "linear_dynamic", "linear_prepack", "linear_prepack_fp16", "conv2d.new", "conv2d_relu.new",
    "conv3d.new", "conv3d_relu.new", "conv2d_prepack", "conv3d_prepack",
    "conv_transpose1d", "conv_transpose1d_prepack", "conv_transpose2d", "conv_transpose2d_prepack",
    "conv_transpose3d_prepack",
)  # fmt: skip


def declare_wrapped_ops() -> None:
    """Define the ops, at the first use of `torch.ops._quantized`. Some are those of `torch.ops.quantized`."""
    from .._library.library_op import define_op
    from .library_ops import OPS

    shared = {
        schema.replace(".new(", "("): function
        for schema, function in OPS.items()
        if schema.partition("(")[0] in _SHARED
    }
    for schema, function in (*WRAPPED_OPS.items(), *shared.items()):
        define_op("_quantized", schema).kernels["CompositeExplicitAutograd"] = function
