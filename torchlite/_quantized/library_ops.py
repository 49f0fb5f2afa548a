"""`torch.ops.quantized`: ops on quantized tensors with a scale and a zero point for the result, which quantized modules
and programs that PyTorch exported call.

Most compute on the numbers and quantize the result. Products and convolutions compute on the integers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torchlite as torch
import torchlite.nn.functional as F

from .embedding_ops import EMBEDDING_OPS
from .half_parameters import HalfLinearPackedParams, saturate
from .packed_parameters import Conv3dPackedParams, ConvPackedParams, LinearPackedParams
from .quantized_tensor import is_quantized, wrap_quantized
from .quantizers import INTEGERS, PerTensor
from .recurrent_ops import CELL_OPS, LAYER_OPS

_LINEAR = LinearPackedParams._schema_type
# The functions that compute the ops, by schema.
OPS: dict[str, Callable[..., Any]] = {}


def _as(numbers: Any, like: Any, scale: float, zero_point: int) -> Any:
    return torch.quantize_per_tensor(numbers, scale, zero_point, like.dtype)


def _relu(x: Any) -> Any:
    return torch.relu(x)


def _op(schema: str) -> Callable[[Any], Any]:
    def declare(function: Any) -> Any:
        OPS[schema] = function
        return function

    return declare


# -- elementwise ----------------------------------------------------------------------------------------------------


def _check_operands(name: str, qa: Any, qb: Any, word: str = "per tensor") -> None:
    """Raise PyTorch's errors of two operands that do not have a scale each."""
    if not isinstance(qa._quantizer, PerTensor):
        raise RuntimeError(f"Only {word} quantization is supported in {name}.")
    if qa.qscheme() is not qb.qscheme():
        raise RuntimeError(f"Both inputs to {name} must have the same quantization scheme.")


def _check_dtypes(name: str, qa: Any, qb: Any) -> None:
    if qa.dtype is not qb.dtype:
        raise RuntimeError(f"{name} operands should have same data type.")


def _binary(name: str, function: Any) -> None:
    def compute(qa: Any, qb: Any, scale: float, zero_point: int) -> Any:
        _check_operands(name.capitalize(), qa, qb)
        _check_dtypes(name.capitalize(), qa, qb)
        return _as(function(qa.dequantize(), qb.dequantize()), qa, scale, zero_point)

    def into(qa: Any, qb: Any, out: Any) -> Any:
        return out.copy_(compute(qa, qb, out.q_scale(), out.q_zero_point()))

    scalar = _add_number if name == "add" else _multiply_number
    for end, after in (("", lambda x: x), ("_relu", _relu)):
        OPS[f"{name}{end}(Tensor qa, Tensor qb, float scale, int zero_point) -> Tensor qc"] = (
            lambda qa, qb, scale, zero_point, after=after: after(compute(qa, qb, scale, zero_point))
        )
        OPS[f"{name}{end}.out(Tensor qa, Tensor qb, Tensor(a!) out) -> Tensor(a!) out"] = (
            lambda qa, qb, out, after=after: out.copy_(after(into(qa, qb, out)))
        )
        OPS[f"{name}{end}_out(Tensor qa, Tensor qb, Tensor(a!) out) -> Tensor(a!) out"] = (
            lambda qa, qb, out, after=after: out.copy_(after(into(qa, qb, out)))
        )
        for form in (f"{name}{end}.Scalar_out", f"{name}_scalar{end}_out"):
            OPS[f"{form}(Tensor qa, Scalar b, Tensor(a!) out) -> Tensor(a!) out"] = lambda qa, b, out, after=after: (
                out.copy_(after(scalar(qa, b)))
            )
        OPS[f"{name}_scalar{end}_out.Tensor(Tensor qa, Tensor b, Tensor(a!) out) -> Tensor(a!) out"] = (
            lambda qa, b, out, after=after: out.copy_(after(scalar(qa, b.item())))
        )
        OPS[f"{name}{end}.Scalar(Tensor qa, Scalar b) -> Tensor qc"] = lambda qa, b, after=after: after(scalar(qa, b))
        OPS[f"{name}{end}.Scalar2(Scalar b, Tensor qa) -> Tensor qc"] = lambda b, qa, after=after: after(scalar(qa, b))
        OPS[f"{name}_scalar{end}(Tensor qa, Scalar b) -> Tensor qc"] = lambda qa, b, after=after: after(scalar(qa, b))
        OPS[f"{name}_scalar{end}.Tensor(Tensor qa, Tensor b) -> Tensor qc"] = lambda qa, b, after=after: after(
            scalar(qa, b.item())
        )


def _add_number(qa: Any, b: float) -> Any:
    """Add a number: the zero point moves, and where it leaves the range the scale grows."""
    _, low, high = _limits(qa)
    scale, zero_point = qa.q_scale(), qa.q_zero_point()
    shift = round(b / scale)
    moved = zero_point - shift
    if low <= moved <= high:
        return wrap_quantized(qa._values.clone(), PerTensor(scale, moved))
    bound = low if moved < low else high
    # The range of the result, of which one end is the moved zero point's.
    wider = (high - moved if moved < low else moved - low) / (high - low) * scale
    return _as(qa.dequantize() + b, qa, wider, bound)


def _multiply_number(qa: Any, b: float) -> Any:
    """Multiply by a number: the scale changes, and of a negative number the integers are mirrored."""
    _, low, high = _limits(qa)
    scale, zero_point = qa.q_scale(), qa.q_zero_point()
    if b > 0:
        return wrap_quantized(qa._values.clone(), PerTensor(scale * b, zero_point))
    if b == 0:
        return wrap_quantized(torch.zeros_like(qa._values), PerTensor(1.0, 0))
    mirrored = (high + low - qa._values.to(torch.int32)).to(qa._values.dtype)
    return wrap_quantized(mirrored, PerTensor(scale * -b, high + low - zero_point))


def _limits(qa: Any) -> tuple[Any, int, int]:
    return INTEGERS[qa.dtype]


_binary("add", torch.add)
_binary("mul", torch.mul)


@_op("matmul(Tensor qa, Tensor qb, float scale, int zero_point) -> Tensor qc")
def _matmul(qa: Any, qb: Any, scale: float, zero_point: int) -> Any:
    _check_dtypes("MatMul", qa, qb)
    _check_operands("Matmul", qa, qb, "per-tensor")
    return _as(torch.matmul(qa.dequantize(), qb.dequantize()), qa, scale, zero_point)


def _unary(schema: str, function: Any) -> None:
    """An op of one quantized tensor, whose last parameters are the scale and the zero point of the result."""
    OPS[f"{schema}, float output_scale, int output_zero_point) -> Tensor"] = lambda x, *rest: _as(
        function(x.dequantize(), *rest[:-2]), x, *rest[-2:]
    )


_unary("hardswish(Tensor input", F.hardswish)
_unary("sigmoid(Tensor qx", torch.sigmoid)
_unary("softmax(Tensor qx, int dim", torch.softmax)
_unary("leaky_relu(Tensor qx, Scalar negative_slope, bool inplace", lambda x, slope, inplace: F.leaky_relu(x, slope))
_unary("prelu(Tensor qx, Tensor weight", lambda x, weight: F.prelu(x, _numbers(weight)))
_unary("layer_norm(Tensor input, int[] normalized_shape, Tensor? weight, Tensor? bias, float eps", F.layer_norm)
_unary("group_norm(Tensor input, int num_groups, Tensor? weight, Tensor? bias, float eps", F.group_norm)
_unary(
    "instance_norm(Tensor input, Tensor? weight, Tensor? bias, float eps",
    lambda x, weight, bias, eps: F.instance_norm(x, weight=weight, bias=bias, eps=eps),
)
for _rank in ("", "1d", "2d", "3d"):
    for _end in ("", "_relu"):

        def _batch_norm(x: Any, weight: Any, bias: Any, mean: Any, var: Any, eps: float, end: str = _end) -> Any:
            out = F.batch_norm(x, mean, var, weight, bias, eps=eps)
            return torch.relu(out) if end else out

        _unary(
            f"batch_norm{_rank}{_end}(Tensor qx, Tensor? weight, Tensor? bias, Tensor mean, Tensor var, float eps",
            _batch_norm,
        )


def _numbers(value: Any) -> Any:
    return value.dequantize() if is_quantized(value) else value


@_op(
    "elu(Tensor self, float output_scale, int output_zero_point, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) "
    "-> Tensor"
)
def _elu(
    x: Any, output_scale: float, output_zero_point: int, alpha: float = 1, scale: float = 1, inner: float = 1
) -> Any:
    numbers = x.dequantize()
    out = torch.where(numbers > 0, numbers, alpha * torch.expm1(numbers * inner)) * scale
    return _as(out, x, output_scale, output_zero_point)


@_op("celu(Tensor self, float output_scale, int output_zero_point, Scalar alpha=1) -> Tensor")
def _celu(x: Any, output_scale: float, output_zero_point: int, alpha: float = 1) -> Any:
    return _as(F.celu(x.dequantize(), alpha), x, output_scale, output_zero_point)


@_op("dropout(Tensor self, float output_scale, int output_zero_point, Scalar p=0.5, bool training=False) -> Tensor")
def _dropout(x: Any, output_scale: float, output_zero_point: int, p: float = 0.5, training: bool = False) -> Any:
    return _as(F.dropout(x.dequantize(), p, training), x, output_scale, output_zero_point)


@_op("relu6(Tensor qx, bool inplace=False) -> Tensor")
def _relu6(qx: Any, inplace: bool = False) -> Any:
    out = F.relu6(qx)
    return qx.copy_(out) if inplace else out


OPS["threshold(Tensor qx, Scalar threshold, Scalar value) -> Tensor qy"] = lambda qx, threshold, value: F.threshold(
    qx, threshold, value
)
OPS["clamp(Tensor qx, Scalar? min=None, Scalar? max=None) -> Tensor qy"] = lambda qx, min=None, max=None: torch.clamp(
    qx, min, max
)
for _rank in ("1d", "2d"):
    OPS[
        f"max_pool{_rank}(Tensor qx, int[] kernel_size, int[] stride, int[] padding, int[] dilation, bool ceil_mode) "
        "-> Tensor"
    ] = getattr(F, f"max_pool{_rank}")


def _concatenate(after: Any) -> Any:
    def compute(qx: Any, dim: int, scale: float | None, zero_point: int | None) -> Any:
        for part in qx:
            if part.dtype is not qx[0].dtype:
                raise RuntimeError("All dtypes must be the same.")
            if part.qscheme() not in (torch.per_tensor_affine, torch.per_tensor_symmetric):
                raise RuntimeError("Only per-tensor quantization is supported in 'cat'!")
        scale = qx[0].q_scale() if scale is None else scale
        zero_point = qx[0].q_zero_point() if zero_point is None else zero_point
        return after(_as(torch.cat([part.dequantize() for part in qx], dim), qx[0], scale, zero_point))

    return compute


OPS["cat(Tensor[] qx, int dim, float? scale, int? zero_point) -> Tensor"] = _concatenate(lambda x: x)
for _end, _after in (("", lambda x: x), ("_relu", _relu)):
    OPS[f"cat{_end}_out(Tensor[] qx, int dim, Tensor(a!) out) -> Tensor(a!)"] = lambda qx, dim, out, after=_after: (
        out.copy_(_concatenate(after)(qx, dim, out.q_scale(), out.q_zero_point()))
    )
OPS["cat_relu(Tensor[] qx, int dim, float? scale, int? zero_point) -> Tensor"] = _concatenate(_relu)

# -- linear layers --------------------------------------------------------------------------------------------------

OPS[f"linear_prepack(Tensor W, Tensor? B=None) -> {_LINEAR} W_prepack"] = LinearPackedParams
OPS[f"linear_prepack_fp16(Tensor W, Tensor? B=None) -> {_LINEAR} W_prepack"] = HalfLinearPackedParams
for _end in ("", "_fp16"):
    OPS[f"linear_unpack{_end}({_LINEAR} W_prepack) -> (Tensor W_origin, Tensor? B_origin)"] = lambda packed: (
        packed.unpack()
    )
for _end, _after in (("", lambda x: x), ("_relu", _relu)):
    OPS[f"linear{_end}(Tensor X, {_LINEAR} W_prepack, float Y_scale_i, int Y_zero_point_i) -> Tensor Y"] = (
        lambda x, packed, scale, zero_point, after=_after: after(packed(x, scale, zero_point))
    )
    OPS[f"linear{_end}_dynamic(Tensor X, {_LINEAR} W_prepack, bool reduce_range=False) -> Tensor Y"] = (
        lambda x, packed, reduce_range=False, rectify=bool(_end): packed.dynamic(x, reduce_range, rectify)
    )
    OPS[f"linear{_end}_dynamic_fp16(Tensor X, {_LINEAR} W_prepack) -> Tensor Y"] = (
        lambda x, packed, rectify=bool(_end): packed.dynamic(x, False, rectify)
    )


def _linear_then(function: Any) -> Any:
    def compute(x: Any, packed: Any, scale: float, zero_point: int, *rest: Any) -> Any:
        weight, bias = packed.unpack()
        numbers = F.linear(x.dequantize(), weight.dequantize(), bias)
        return _as(function(numbers, *rest), x, scale, zero_point)

    return compute


@_op("linear_dynamic_fp16_unpacked_weight(Tensor X, Tensor weight, Tensor? bias) -> Tensor Y")
def _linear_of_float_weight(x: Any, weight: Any, bias: Any) -> Any:
    return HalfLinearPackedParams(weight, bias).dynamic(x)


for _end, _after in (("", lambda x: x), ("_relu", torch.relu)):
    OPS[
        f"linear_with_input_q_dq_qweight_dq{_end}_output_fp32(Tensor X, float X_scale, int X_zero_point, "
        f"{_LINEAR} W_prepack) -> Tensor Y"
    ] = lambda x, scale, zero_point, packed, after=_after: after(packed.on_levels(x, scale, zero_point))


_AND = f"(Tensor X, {_LINEAR} W_prepack, float Y_scale_i, int Y_zero_point_i"
OPS[f"linear_leaky_relu{_AND}, float negative_slope) -> Tensor Y"] = _linear_then(F.leaky_relu)
OPS[f"linear_tanh{_AND}) -> Tensor Y"] = _linear_then(torch.tanh)

# -- convolutions ---------------------------------------------------------------------------------------------------


def _on_parts(x: Any, reshape: Any) -> Any:
    """Add or remove the height of images."""
    return wrap_quantized(reshape(x._values, 2), x._quantizer) if is_quantized(x) else reshape(x, 2)


def _convolutions(rank: int) -> None:
    made = Conv3dPackedParams if rank == 3 else ConvPackedParams
    packed_class = made._schema_type

    def prepack(weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> Any:
        return _pack(weight, bias, groups, stride, padding, dilation)

    def prepack_transposed(
        weight: Any, bias: Any, stride: Any, padding: Any, output_padding: Any, dilation: Any, groups: int
    ) -> Any:
        return _pack(weight, bias, groups, stride, padding, dilation, output_padding)

    def _pack(weight: Any, bias: Any, groups: int, *geometry: Any) -> Any:
        if rank == 1:  # as PyTorch packs them
            weight = torch.unsqueeze(weight, 2)
            geometry = tuple((usual, *part) for usual, part in zip((1, 0, 1, 0), geometry, strict=False))
        stride, padding, dilation, *rest = geometry
        return made(weight, bias, stride, padding, dilation, groups, *rest)

    def compute(x: Any, function: Any) -> Any:
        return function(x) if rank > 1 else _on_parts(function(_on_parts(x, torch.unsqueeze)), torch.squeeze)

    def unpack(packed: Any) -> Any:
        weight, bias = packed.unpack()
        return torch.squeeze(weight, 2) if rank == 1 else weight, bias

    geometry = "int[] stride, int[] padding, int[] dilation, int groups"
    OPS[f"conv{rank}d_prepack(Tensor weight, Tensor? bias, {geometry}) -> {packed_class}"] = prepack
    OPS[
        f"conv_transpose{rank}d_prepack(Tensor weight, Tensor? bias, int[] stride, int[] padding, "
        f"int[] output_padding, int[] dilation, int groups) -> {packed_class}"
    ] = prepack_transposed
    tail = "float output_scale, int output_zero_point) -> Tensor"
    for end, after in (("", lambda x: x), ("_relu", _relu)):
        name = f"conv{rank}d{end}" + ".new" * (rank > 1)
        OPS[f"{name}(Tensor qx, {packed_class} packed_weight, {tail}"] = (
            lambda x, packed, scale, zero_point, after=after: after(compute(x, lambda x: packed(x, scale, zero_point)))
        )
        if rank > 1:
            OPS[f"conv{rank}d{end}(Tensor qx, {packed_class} weight, {geometry}, {tail}"] = (
                lambda x, packed, stride, padding, dilation, groups, scale, zero_point, after=after: after(
                    prepack(packed._weight, packed._bias, stride, padding, dilation, groups)(x, scale, zero_point)
                )
            )
    for name in (f"conv{rank}d", f"conv_transpose{rank}d"):
        OPS[f"{name}_dynamic(Tensor qx, {packed_class} packed_weight, bool reduce_range=False) -> Tensor"] = (
            lambda x, packed, reduce_range=False: compute(x, lambda x: packed.dynamic(x, reduce_range))
        )
    OPS[f"conv_transpose{rank}d(Tensor qx, {packed_class} packed_weight, {tail}"] = (
        lambda x, packed, scale, zero_point: compute(x, lambda x: packed(x, scale, zero_point))
    )
    for name in (f"conv{rank}d", f"conv_transpose{rank}d"):
        results = "(Tensor unpacked_weights, Tensor? B_origin)"
        OPS[f"{name}_unpack({packed_class} packed_weights) -> {results}"] = unpack
        if rank > 1:
            for part, kind in (
                ("stride", "int[]"), ("padding", "int[]"), ("dilation", "int[]"), ("output_padding", "int[]"),
                ("groups", "int"), ("transpose", "int"),
            ):  # fmt: skip
                OPS[f"{name}_{part}({packed_class} packed_weights) -> {kind}"] = lambda packed, part=part: (
                    int(found) if isinstance(found := getattr(packed, part)(), bool) else found
                )


for _dims in (1, 2, 3):
    _convolutions(_dims)
_CONV = ConvPackedParams._schema_type
OPS[
    "conv_prepack(Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] dilation, int groups) -> " + _CONV
] = ConvPackedParams
OPS[f"conv_unpack({_CONV} packed_weights) -> (Tensor unpacked_weights, Tensor? B_origin)"] = lambda packed: (
    packed.unpack()
)


@_op("conv2d_unpack_sizes(Any packed_weights) -> Any")
def _conv2d_sizes(packed: Any) -> Any:
    weight, bias = packed.unpack()
    geometry = packed.stride(), packed.padding(), packed.dilation(), packed.groups()
    return list(weight.shape), None if bias is None else list(bias.shape), *geometry


def _conv2d_add(after: Any) -> Any:
    def compute(qx: Any, qaccum: Any, packed: Any, output_scale: float, output_zero_point: int) -> Any:
        numbers = packed._on_numbers(qx.dequantize()) + qaccum.dequantize()
        return after(_as(numbers, qx, output_scale, output_zero_point))

    return compute


for _end, _after in (("", lambda x: x), ("_relu", _relu)):
    OPS[
        f"conv2d_add{_end}(Tensor qx, Tensor qaccum, {ConvPackedParams._schema_type} packed_weight, "
        "float output_scale, int output_zero_point) -> Tensor"
    ] = _conv2d_add(_after)


def declare_ops() -> None:
    """Define the ops, at the first use of `torch.ops.quantized`."""
    from .._library.library_op import define_op

    for schema, function in (*OPS.items(), *EMBEDDING_OPS.items(), *CELL_OPS.items()):
        define_op("quantized", schema).kernels["CompositeExplicitAutograd"] = function
    for schema, function in (*LAYER_OPS.items(), ("_saturate_weight_to_fp16(Tensor weight) -> Tensor", saturate)):
        define_op("aten", schema).kernels["CompositeExplicitAutograd"] = function
