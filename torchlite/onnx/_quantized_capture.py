"""Capture of eager-quantized networks: their quantized tensors are floats after QuantizeLinear and DequantizeLinear.

Each float tensor has its quantized one beside it. An op runs on both: the quantized result gives the scale and the zero
point to which the float result is rounded.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterator
from typing import Any

import torchlite as torch
import torchlite.nn.functional as F

from .._dispatch import call
from .._dispatch.interceptors import Interceptor, ReenabledInterceptor, show_only_within
from .._library.library_op import LibraryOp
from ..utils.weak import WeakIdKeyDictionary
from .errors import OnnxExporterError


def is_quantized_network(model: Any) -> bool:
    """True if a module has packed weights, or makes quantized tensors."""
    return isinstance(model, torch.nn.Module) and any(
        isinstance(module, torch.ao.nn.quantized.Quantize)
        or any(hasattr(type(value), "_schema_type") for value in vars(module).values())
        for module in model.modules()
    )


def with_float_tensors(model: Any) -> Any:
    """Return a copy of a quantized network for `torch.export`."""
    made = copy.deepcopy(model)
    for module in made.modules():
        if type(module).__module__.startswith("torchlite.ao.nn"):
            for name in ("scale", "zero_point"):  # the program reads them as numbers
                if isinstance(value := module._buffers.pop(name, None), torch.Tensor):
                    setattr(module, name, value.item())
    forward = made.forward

    @functools.wraps(forward)
    def run(*args: Any, **kwargs: Any) -> Any:
        with _FloatsBesideLevels():
            return forward(*args, **kwargs)

    made.forward = run
    return made


def _flatten(values: Any) -> Iterator[Any]:
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from _flatten(value)
        else:
            yield value


def _quantize_and_back(x: Any, like: Any) -> Any:
    """Return numbers, rounded as those of a quantized tensor."""
    ops = torch.ops.quantized_decomposed
    with show_only_within([]):
        integers = like.int_repr().dtype
        limits = torch.iinfo(integers)
        given = like.q_scale(), like.q_zero_point(), limits.min, limits.max, integers
    return ops.dequantize_per_tensor.default(ops.quantize_per_tensor.default(x, *given), *given)


def _weight_and_bias(packed: Any) -> tuple[Any, Any]:
    """Return the numbers of a packed weight, by DequantizeLinear, and the bias."""
    with show_only_within([]):
        weight, bias = packed.unpack()
        levels, per_channel = weight.int_repr(), weight.qscheme() is not torch.per_tensor_affine
        if per_channel:
            scales, zeros = weight.q_per_channel_scales().float(), weight.q_per_channel_zero_points()
            given: tuple = scales, zeros, weight.q_per_channel_axis(), -128, 127, torch.int8
        else:
            given = weight.q_scale(), weight.q_zero_point(), -128, 127, torch.int8
    name = "dequantize_per_channel" if per_channel else "dequantize_per_tensor"
    return getattr(torch.ops.quantized_decomposed, name).default(levels, *given), bias


def _linear(x: Any, packed: Any, *rest: Any) -> Any:
    return F.linear(x, *_weight_and_bias(packed))


def _linear_dynamic(x: Any, packed: Any, reduce_range: bool = False) -> Any:
    """The input is quantized by its range."""
    if not packed.unpack()[0].is_quantized:
        return _linear_half(x, packed)
    ops, most = torch.ops.quantized_decomposed, 127 if reduce_range else 255
    scale, zero = ops.choose_qparams.tensor(x, 0, most, torch.finfo(torch.float32).eps, torch.uint8)
    given = scale, zero, 0, 255, torch.uint8
    return _linear(ops.dequantize_per_tensor.tensor(ops.quantize_per_tensor.tensor(x, *given), *given), packed)


def _linear_half(x: Any, packed: Any, *rest: Any) -> Any:
    with show_only_within([]):
        weight, bias = packed.unpack()
    return F.linear(x, weight, bias)


def _embed(packed: Any, indices: Any, *rest: Any) -> Any:
    """Rows of bytes, less float zero points, times scales."""
    with show_only_within([]):
        weight = packed.unpack()
        levels, parts = weight.int_repr(), (weight.q_per_channel_scales(), weight.q_per_channel_zero_points())
        scales, zeros = (part.float().unsqueeze(1) for part in parts)
    flat = indices.reshape(-1)
    rows = torch.index_select(levels, 0, flat).to(torch.float32)
    rows = (rows - torch.index_select(zeros, 0, flat)) * torch.index_select(scales, 0, flat)
    return rows.reshape(*indices.shape, levels.shape[1])


def _convolve(rank: int, transposed: bool) -> Callable[..., Any]:
    def compute(x: Any, packed: Any, *rest: Any) -> Any:
        weight, bias = _weight_and_bias(packed)
        if len(rest) > 2:
            raise OnnxExporterError("a convolution whose geometry is not that of its packed weight is not written")
        x = torch.unsqueeze(x, 2) if rank == 1 else x
        out_padding = packed.output_padding() if transposed else [0] * (2 if rank == 1 else rank)
        out = torch.convolution(
            x, weight, bias, packed.stride(), packed.padding(), packed.dilation(), transposed, out_padding,
            packed.groups(),
        )  # fmt: skip
        return torch.squeeze(out, 2) if rank == 1 else out

    return compute


def _batch_norm(x: Any, weight: Any, bias: Any, mean: Any, var: Any, eps: float, *rest: Any) -> Any:
    return F.batch_norm(x, mean, var, weight, bias, False, 0.0, eps)


# The float ops of `torch.ops.quantized`. Most take the scale and zero point of the result as last arguments, and have a
# form with the positive part.
_FLOATS: dict[str, Callable[..., Any]] = {
    "linear": _linear, "linear_dynamic": _linear_dynamic, "linear_dynamic_fp16": _linear_half, "embedding_byte": _embed,
    **{f"conv{rank}d": _convolve(rank, False) for rank in (1, 2, 3)},
    **{f"conv_transpose{rank}d": _convolve(rank, True) for rank in (1, 2, 3)},
    "add": lambda a, b, *rest: a + b,
    "mul": lambda a, b, *rest: a * b,
    "add_scalar": lambda a, b: a + b,
    "mul_scalar": lambda a, b: a * b,
    "matmul": lambda a, b, *rest: torch.matmul(a, b),
    "cat": lambda parts, dim, *rest: torch.cat(parts, dim),
    "batch_norm": _batch_norm, "batch_norm2d": _batch_norm, "batch_norm3d": _batch_norm,
    "layer_norm": lambda x, shape, weight, bias, eps, *rest: F.layer_norm(x, shape, weight, bias, eps),
    "group_norm": lambda x, groups, weight, bias, eps, *rest: F.group_norm(x, groups, weight, bias, eps),
    "instance_norm": lambda x, weight, bias, eps, *rest: F.instance_norm(x, None, None, weight, bias, True, 0.0, eps),
    "hardswish": lambda x, *rest: F.hardswish(x),
    "sigmoid": lambda x, *rest: torch.sigmoid(x),
    "softmax": lambda x, dim, *rest: torch.softmax(x, dim),
    "elu": lambda x, scale, zero_point, alpha=1.0, *rest: F.elu(x, alpha),
    "leaky_relu": lambda x, slope, *rest: F.leaky_relu(x, slope),
    "relu6": lambda x, *rest: F.relu6(x),
    "linear_leaky_relu": lambda x, packed, scale, zero_point, slope: F.leaky_relu(_linear(x, packed), slope),
    "linear_tanh": lambda x, packed, *rest: torch.tanh(_linear(x, packed)),
}  # fmt: skip


class _FloatsBesideLevels(Interceptor):
    """Runs ops of quantized tensors on floats, and on the quantized tensors below all interceptors."""

    is_scoped = True

    def __init__(self) -> None:
        self._levels = WeakIdKeyDictionary()  # quantized tensors by float ones

    def _to_levels(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return self._levels.get(value, value)
        return type(value)(map(self._to_levels, value)) if value.__class__ in (list, tuple) else value

    def _rounded(self, floats: Any, levels: Any) -> Any:
        """Return the float results, rounded as the quantized ones."""
        if isinstance(levels, torch.Tensor):
            if not levels.is_quantized:
                return floats
            made = _quantize_and_back(floats, levels)
            self._levels[made] = levels
            return made
        if isinstance(levels, (list, tuple)):
            return [self._rounded(one, other) for one, other in zip(floats, levels, strict=True)]
        return floats

    def intercept(self, op: Any, function: Any, args: Any, kwargs: Any) -> Any:
        values = [*_flatten(args), *_flatten(kwargs.values())]
        of_library = isinstance(op, LibraryOp) and op.name.startswith("quantized::")
        known = any(isinstance(value, torch.Tensor) and value in self._levels for value in values)
        if op.name == "aten::quantize_per_tensor":
            with show_only_within([]):
                levels = function(*args, **kwargs)
            return self._rounded(args[0], levels)
        if not known and not of_library:
            return function(*args, **kwargs)
        if op.name == "aten::dequantize":
            return args[0]
        if not of_library and not isinstance(op, LibraryOp) and op.is_implicit and function is op.function:
            with ReenabledInterceptor(self):
                return call.without_interceptors(op, function, args, kwargs)
        with show_only_within([]):
            levels = function(*self._to_levels(tuple(args)), **{n: self._to_levels(v) for n, v in kwargs.items()})
        if of_library:
            floats = self._run_library_op(op, op.schema.bind(args, kwargs))
        elif isinstance(op, LibraryOp):
            return levels  # the scale, the zero point and others that the program reads as numbers
        else:
            floats = function(*args, **kwargs)
        return self._rounded(floats, levels)

    @staticmethod
    def _run_library_op(op: Any, values: list) -> Any:
        name = op.name.partition("::")[2]
        compute, positive = _FLOATS.get(name), False
        if compute is None and "_relu" in name:
            compute, positive = _FLOATS.get(name.replace("_relu", "")), True
        if compute is None:
            raise OnnxExporterError(f"{op.name} is not written to ONNX")
        out = compute(*values)
        return torch.relu(out) if positive else out
