"""`torch.ops.onednn`: products and convolutions of plain tensors of levels, with what follows them as one op. Graphs
that are lowered for x86 processors call them.

Products are those of the levels, in float32, where sums below 2**24 are exact.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torchlite as torch
import torchlite.nn.functional as F

_LIMITS = {dtype: (torch.iinfo(dtype).min, torch.iinfo(dtype).max) for dtype in (torch.int8, torch.uint8, torch.int32)}
_UNARY: dict[str, Callable] = {
    "none": lambda x, args, algorithm: x,
    "relu": lambda x, args, algorithm: torch.relu(x),
    "gelu": lambda x, args, algorithm: F.gelu(x, approximate=algorithm),
    "hardtanh": lambda x, args, algorithm: torch.clamp(x, args[0], args[1]),
    "swish": lambda x, args, algorithm: F.silu(x),
    "hardswish": lambda x, args, algorithm: F.hardswish(x),
    "leaky_relu": lambda x, args, algorithm: F.leaky_relu(x, args[0]),
    "tanh": lambda x, args, algorithm: torch.tanh(x),
}
_OF_CONVOLUTIONS = ("none", "relu", "hardtanh", "swish", "hardswish")


def _less_zero(levels: Any, zero_point: Any) -> Any:
    return levels.to(torch.float32) - zero_point


def _post_op(out: Any, name: str | None, args: Any, algorithm: str | None, of: str) -> Any:
    """Return what follows a product."""
    name = name or "none"
    if name not in _UNARY or of != "linear" and name not in _OF_CONVOLUTIONS:
        if of == "linear":
            raise RuntimeError(f"onednn qlinear: unsupported unary post op {name}")
        raise RuntimeError(f"Unsupported post op {name} for quantized pointwise {of}.")
    return _UNARY[name](out, args, algorithm)


def _result(out: Any, scale: float, zero_point: int, dtype: Any, levels: Any) -> Any:
    """Return levels of a dtype, by default of that of the input's levels, or numbers."""
    dtype = levels if dtype is None else dtype
    if dtype not in _LIMITS:
        return out.to(dtype)
    low, high = _LIMITS[dtype]
    return torch.clamp(torch.round(out * (1.0 / scale)) + zero_point, low, high).to(dtype)


def _check_float_output(dtype: Any, scale: float, zero_point: int) -> None:
    if dtype in (torch.float32, torch.bfloat16) and (scale != 1.0 or zero_point != 0):
        raise RuntimeError("onednn qlinear: expect scale=1 and zero point=0 for fp32 output")


def _numbers(value: Any, scale: float, zero_point: int) -> Any:
    """Return the numbers of levels; numbers stay."""
    return value.to(torch.float32) if value.is_floating_point() else _less_zero(value, zero_point) * scale


def _with_other(out: Any, other: Any, alpha: Any, scale: float, zero_point: int) -> Any:
    return out + _numbers(other, scale, zero_point) * (1.0 if alpha is None else alpha)


# -- linear layers --------------------------------------------------------------------------------------------------


def _product(qx: Any, x_scale: Any, x_zero: Any, qw: Any, w_scale: Any, w_zero: Any, bias: Any) -> Any:
    """Return the product of an input's levels and those of a weight whose outputs are its columns."""
    out = torch.matmul(_less_zero(qx, x_zero), _less_zero(qw, w_zero)) * (x_scale * w_scale.to(torch.float32))
    return out if bias is None else out + bias.to(torch.float32)


def _linear(
    qx: Any, x_scale: Any, x_zero: Any, qw: Any, w_scale: Any, w_zero: Any, bias: Any, scale: float, zero_point: int,
    dtype: Any, name: str, args: Any, algorithm: str,
) -> Any:  # fmt: skip
    _check_float_output(dtype, scale, zero_point)
    out = _post_op(_product(qx, x_scale, x_zero, qw, w_scale, w_zero, bias), name, args, algorithm, "linear")
    return _result(out, scale, zero_point, dtype, qx.dtype)


def _linear_binary(
    qx: Any, x_scale: Any, x_zero: Any, qw: Any, w_scale: Any, w_zero: Any, other: Any, bias: Any, scale: float,
    zero_point: int, dtype: Any, other_scale: float, other_zero: int, binary: str, alpha: float, name: str, args: Any,
    algorithm: str,
) -> Any:  # fmt: skip
    _check_float_output(dtype, scale, zero_point)
    if binary not in ("sum", "add"):
        raise RuntimeError(f"onednn qlinear: unsupported binary post op {binary}")
    out = _with_other(
        _product(qx, x_scale, x_zero, qw, w_scale, w_zero, bias), other, alpha, other_scale, other_zero
    )  # fmt: skip
    out = _result(_post_op(out, name, args, algorithm, "linear"), scale, zero_point, dtype, qx.dtype)
    return other.copy_(out) if binary == "sum" and other.dtype is out.dtype else out


def _half_linear(x: Any, w: Any, bias: Any) -> Any:
    out = torch.matmul(x, w.to(x.dtype))
    return out if bias is None else out + bias


# -- convolutions ---------------------------------------------------------------------------------------------------


def _convolution(
    qx: Any, x_scale: Any, x_zero: Any, qw: Any, w_scale: Any, w_zero: Any, bias: Any, stride: Any, padding: Any,
    dilation: Any, groups: int,
) -> Any:  # fmt: skip
    def along(values: Any, dim: int) -> Any:
        """Scales or zero points of outputs, which are the dimension `dim`."""
        count = qw.dim() - dim
        return values.to(torch.float32).reshape(-1, *[1] * (count - 1))

    out = torch.convolution(
        _less_zero(qx, x_zero), _less_zero(qw, along(w_zero, 0)), None, stride, padding, dilation, False,
        (0,) * len(stride), groups,
    )  # fmt: skip
    out = out * (x_scale * along(w_scale, 1))
    return out if bias is None else out + along(bias, 1)


def _conv(*given: Any) -> Any:
    qx, (scale, zero_point, dtype, name, args, algorithm) = given[0], given[11:]
    out = _post_op(_convolution(*given[:11]), name, args, algorithm, f"conv{qx.dim() - 2}d")
    return _result(out, scale, zero_point, dtype, qx.dtype)


def _conv_binary(
    qx: Any, x_scale: Any, x_zero: Any, qw: Any, w_scale: Any, w_zero: Any, accumulated: Any, bias: Any, *rest: Any
) -> Any:
    geometry, (scale, zero_point, dtype), rest = rest[:4], rest[4:7], rest[7:]
    accumulated_scale, accumulated_zero, binary, alpha, name, args, algorithm = rest
    if binary not in ("sum", "add"):
        raise RuntimeError(f"Unsupported binary post op {binary} for quantized pointwise conv2d.")
    out = _convolution(qx, x_scale, x_zero, qw, w_scale, w_zero, bias, *geometry)
    out = _with_other(out, accumulated, alpha, accumulated_scale, accumulated_zero)
    out = _post_op(out, name, args, algorithm, f"conv{qx.dim() - 2}d")
    out = _result(out, scale, zero_point, dtype, qx.dtype)
    return accumulated.copy_(out) if binary == "sum" else out


# -- sums, products and norms ---------------------------------------------------------------------------------------


def _pointwise(function: Callable) -> Callable:
    def compute(
        a: Any, a_scale: float, a_zero: int, b: Any, b_scale: float, b_zero: int, scale: float, zero_point: int,
        dtype: Any,
    ) -> Any:  # fmt: skip
        out = function(_numbers(a, a_scale, a_zero), _numbers(b, b_scale, b_zero))
        return _result(out, scale, zero_point, dtype, a.dtype)

    return compute


def _batch_norm(
    qx: Any, x_scale: float, x_zero: int, weight: Any, bias: Any, mean: Any, var: Any, eps: float, scale: float,
    zero_point: int, dtype: Any,
) -> Any:  # fmt: skip
    out = F.batch_norm(_numbers(qx, x_scale, x_zero), mean, var, weight, bias, eps=eps)
    return _result(out, scale, zero_point, dtype, qx.dtype)


def _schemas() -> dict[str, Callable]:
    """Return the functions that compute the ops, by schema."""
    number = "float x_scale, int x_zero_point"
    tensors = "Tensor x_scale, Tensor x_zero_point"
    weight = "Tensor qw, Tensor w_scale, Tensor w_zero_point"
    output = "float output_scale, int output_zero_point, ScalarType? output_dtype"
    place = "int[] stride, int[] padding, int[] dilation, int groups"
    unary = "str unary_post_op, Scalar?[] unary_post_op_args, str unary_post_op_algorithm"
    binary = f"float other_scale, int other_zp, str binary_post_op, float binary_alpha, {unary}"
    accumulated = (
        "float accum_scale, int accum_zero_point, str binary_attr, Scalar? alpha, str? unary_attr, "
        "Scalar?[] unary_scalars, str? unary_algorithm"
    )
    found: dict[str, Callable] = {
        "qlinear_prepack(Tensor weight, int[]? x_shape) -> Tensor": lambda w, x_shape: w.t().contiguous(),
        "linear_prepack_fp16(Tensor weight, int[]? x_shape) -> Tensor":
            lambda w, x_shape: w.t().to(torch.float16).contiguous(),
        "linear_dynamic_fp16(Tensor x, Tensor w, Tensor? bias) -> Tensor": _half_linear,
        "linear_relu_dynamic_fp16(Tensor x, Tensor w, Tensor? bias) -> Tensor":
            lambda x, w, bias: torch.relu(_half_linear(x, w, bias)),
        "qconv_prepack(Tensor weight, Tensor w_scales, float x_scale, int x_zp, int[] stride, int[] padding, "
        "int[] dilation, int groups, int[]? x_shape=None) -> Tensor": lambda w, *rest: w.clone(),
        "qbatch_norm2d(Tensor qx, float qx_scale, int qx_zero_point, Tensor weight, Tensor bias, Tensor mean, "
        "Tensor var, float eps, float output_scale, int output_zero_point, ScalarType output_dtype) -> Tensor":
            _batch_norm,
    }  # fmt: skip
    for end, x in (("", number), (".tensor", tensors)):
        found[
            f"qlinear_pointwise{end}(Tensor qx, {x}, {weight}, Tensor? bias, {output}, str post_op_name, "
            "Scalar?[] post_op_args, str post_op_algorithm) -> Tensor"
        ] = _linear
        second = ".binary_tensor" if end else ".binary"
        found[
            f"qlinear_pointwise{second}(Tensor qx, {x}, {weight}, Tensor? other, Tensor? bias, {output}, {binary}) "
            "-> Tensor"
        ] = _linear_binary
        found[
            f"qconv2d_pointwise{second}(Tensor qx, {x}, {weight}, Tensor(a!) qaccum, Tensor? bias, {place}, {output}, "
            f"{accumulated}) -> Tensor"
        ] = _conv_binary
        for kind in ("", "2d") if end else ("", "1d", "2d", "3d"):
            found[
                f"qconv{kind}_pointwise{end}(Tensor qx, {x}, {weight}, Tensor? bias, {place}, {output}, str attr, "
                "Scalar?[] scalars, str? algorithm) -> Tensor"
            ] = _conv
    for name, function in (("qadd", torch.add), ("qmul", torch.mul), ("qadd_relu", lambda a, b: torch.relu(a + b))):
        found[
            f"{name}.tensor(Tensor self, float self_scale, int self_zero_point, Tensor other, float other_scale, "
            "int other_zero_point, float output_scale, int output_zero_point, ScalarType output_dtype) -> Tensor"
        ] = _pointwise(function)
    return found


def declare_onednn_ops() -> None:
    """Define the ops, at the first use of `torch.ops.onednn`."""
    from .._library.library_op import define_op

    for schema, function in _schemas().items():
        define_op("onednn", schema).kernels["CompositeExplicitAutograd"] = function


def declare_mkldnn_ops() -> None:
    """Define what packages ask before they use oneDNN's ops, at the first use of `torch.ops.mkldnn`."""
    from .._library.library_op import define_op

    for name in ("_is_mkldnn_bf16_supported", "_is_mkldnn_fp16_supported", "_is_mkldnn_acl_supported"):
        define_op("mkldnn", f"{name}() -> bool").kernels["CompositeExplicitAutograd"] = lambda: False
