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
from .._quantized.recurrent_ops import CellParams
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


def _levels_of_range(x: Any, reduce_range: bool) -> tuple[Any, Any, Any]:
    """Return the levels of numbers by their least and greatest one, their scale and their zero point."""
    ops, most = torch.ops.quantized_decomposed, 127 if reduce_range else 255
    scale, zero = ops.choose_qparams.tensor(x, 0, most, torch.finfo(torch.float32).eps, torch.uint8)
    return ops.quantize_per_tensor.tensor(x, scale, zero, 0, 255, torch.uint8), scale, zero


def _round_to_range(x: Any, reduce_range: bool) -> Any:
    levels, scale, zero = _levels_of_range(x, reduce_range)
    return torch.ops.quantized_decomposed.dequantize_per_tensor.tensor(levels, scale, zero, 0, 255, torch.uint8)


def _linear_dynamic(x: Any, packed: Any, reduce_range: bool = False) -> Any:
    """The input is quantized by its range. The product is one of integers: of a product with DequantizeLinear, ONNX
    Runtime makes one that rounds its input to 8 bits again.
    """
    with show_only_within([]):
        weight, bias = packed.unpack()
    if not weight.is_quantized:
        return _linear_half(x, packed)
    scales: Any
    zeros: Any
    with show_only_within([]):
        if weight.qscheme() is torch.per_tensor_affine:
            scales, zeros = torch.tensor(weight.q_scale()), torch.tensor(weight.q_zero_point())
        else:
            scales, zeros = weight.q_per_channel_scales().float(), weight.q_per_channel_zero_points()
        columns, zeros = weight.int_repr().t().contiguous(), zeros.to(torch.int8) if zeros.any() else None
    levels, scale, zero = _levels_of_range(x, reduce_range)
    out = torch.ops.torchlite._quantized_matmul(
        levels, columns, zero.reshape(()).to(torch.uint8), zeros, None, scale.reshape(()).to(torch.float32) * scales
    )
    return out if bias is None else out + bias


def _linear_half(x: Any, packed: Any, *rest: Any) -> Any:
    with show_only_within([]):
        weight, bias = packed.unpack()
    return F.linear(x, weight, bias)


def _rows(packed: Any, indices: Any) -> Any:
    """Return rows of levels as numbers. With four bits, steps and the numbers of level 0 have half precision."""
    with show_only_within([]):
        weight = packed.unpack()
        scales = weight.q_per_channel_scales().float().unsqueeze(1)
        zeros = weight.q_per_channel_zero_points().float().unsqueeze(1)
        levels, low = weight._tl_array.values, (-zeros * scales).half().float()
        is_packed = packed.bit_rate() < 8
        steps = scales.half().float() if is_packed else scales
    rows = torch.index_select(levels, 0, indices).to(torch.float32)
    steps = torch.index_select(steps, 0, indices)
    if is_packed:
        return rows * steps + torch.index_select(low, 0, indices)
    return (rows - torch.index_select(zeros, 0, indices)) * steps


def _embed(packed: Any, indices: Any, *rest: Any) -> Any:
    return _rows(packed, indices.reshape(-1)).reshape(*indices.shape, -1)


def _embed_bags(
    packed: Any, indices: Any, offsets: Any, scale_grad_by_freq: bool, mode: int, pruned: bool, weights: Any,
    mapping: Any, include_last_offset: bool,
) -> Any:  # fmt: skip
    if mapping is not None:
        raise OnnxExporterError("a quantized embedding with pruned rows is not written")
    places = torch.arange(indices.numel()).reshape(indices.shape)
    return F.embedding_bag(
        places, _rows(packed, indices.reshape(-1)), offsets, mode="sum", per_sample_weights=weights,
        include_last_offset=include_last_offset,
    )  # fmt: skip


def _convolve(rank: int, transposed: bool, is_dynamic: bool = False) -> Callable[..., Any]:
    def compute(x: Any, packed: Any, *rest: Any) -> Any:
        weight, bias = _weight_and_bias(packed)
        if len(rest) > 2:
            raise OnnxExporterError("a convolution whose geometry is not that of its packed weight is not written")
        x = _round_to_range(x, *rest) if is_dynamic else x
        x = torch.unsqueeze(x, 2) if rank == 1 else x
        out_padding = packed.output_padding() if transposed else [0] * (2 if rank == 1 else rank)
        out = torch.convolution(
            x, weight, bias, packed.stride(), packed.padding(), packed.dilation(), transposed, out_padding,
            packed.groups(),
        )  # fmt: skip
        return torch.squeeze(out, 2) if rank == 1 else out

    return compute


class _FloatWeight:
    """A packed weight whose products are float ops."""

    def __init__(self, packed: Any) -> None:
        self.packed = packed

    def dynamic(self, x: Any, reduce_range: bool = False) -> Any:
        return _linear_dynamic(x, self.packed, reduce_range)


def _with_float_products(value: Any) -> Any:
    if isinstance(value, CellParams):
        return CellParams(value.kind, _FloatWeight(value.input), _FloatWeight(value.state), (), value.reduce_range)
    if isinstance(value, (list, tuple)):
        return [_with_float_products(item) for item in value]
    return _FloatWeight(value) if hasattr(type(value), "_schema_type") else value


def _batch_norm(x: Any, weight: Any, bias: Any, mean: Any, var: Any, eps: float, *rest: Any) -> Any:
    return F.batch_norm(x, mean, var, weight, bias, False, 0.0, eps)


# The float ops of `torch.ops.quantized`. Most take the scale and zero point of the result as last arguments, and have a
# form with the positive part.
_FLOATS: dict[str, Callable[..., Any]] = {
    "linear": _linear, "linear_dynamic": _linear_dynamic, "linear_dynamic_fp16": _linear_half, "embedding_byte": _embed,
    "embedding_4bit": _embed, "embedding_bag_byte": _embed_bags, "embedding_bag_4bit": _embed_bags,
    **{f"conv{rank}d": _convolve(rank, False) for rank in (1, 2, 3)},
    **{f"conv_transpose{rank}d": _convolve(rank, True) for rank in (1, 2, 3)},
    **{f"conv{rank}d_dynamic": _convolve(rank, False, True) for rank in (1, 2, 3)},
    **{f"conv_transpose{rank}d_dynamic": _convolve(rank, True, True) for rank in (1, 2, 3)},
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


_RECURRENT = ("quantized_lstm", "quantized_gru", "quantized_rnn")  # beginnings of names of ops


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

    def _unpacked_rows(self, function: Any, args: Any) -> Any:
        with show_only_within([]):
            weight = function(*args)
            levels, zeros = weight._tl_array.values, weight.q_per_channel_zero_points().float().unsqueeze(1)
            scales = weight.q_per_channel_scales().float().unsqueeze(1)
        made = (levels.to(torch.float32) - zeros) * scales
        self._levels[made] = weight
        return made

    def intercept(self, op: Any, function: Any, args: Any, kwargs: Any) -> Any:
        values = [*_flatten(args), *_flatten(kwargs.values())]
        of_library = isinstance(op, LibraryOp) and op.name.startswith("quantized::")
        known = any(isinstance(value, torch.Tensor) and value in self._levels for value in values)
        if op.name.partition("::")[2].startswith(_RECURRENT):  # each step by itself
            return op.kernels["CompositeExplicitAutograd"](*map(_with_float_products, args), **kwargs)
        if op.name == "aten::quantize_per_tensor":
            with show_only_within([]):
                levels = function(*args, **kwargs)
            return self._rounded(args[0], levels)
        if op.name == "quantized::embedding_bag_unpack":
            return self._unpacked_rows(function, args)
        if not known and not of_library:
            return function(*args, **kwargs)
        if op.name == "aten::dequantize":
            return torch.ops.aten.alias.default(args[0])  # another tensor, of which nothing rounds the results
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
