"""Dispatch of ops on quantized tensors: one table by op name. A rule takes the values of the record's parameters, in
order. A composite op without a rule runs as its parts. A primitive op without a rule raises PyTorch's error.

Three kinds of rules serve most ops. Ops that only move elements run on the integers, and keep the quantizer. Ops with
the order of numbers alone (maximum, sorting) run on the integers too. The others run on the numbers, and their result
is quantized by the input's quantizer, or by one that fits the op's range.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torchlite as torch

from .._dispatch import REGISTRY
from .._dispatch.autograd_graph import bump_version
from .._dispatch.callbacks import CALLBACKS
from .._dispatch.error_translation import no_backend_kernel_error
from .._ops._gradient_helpers import to_named_tuple
from .._tensor.conversions import _parse_to
from .packed_levels import is_packed, run_on_bytes, wrap_packed
from .quantized_tensor import is_quantized, no_kernel_error, wrap_quantized
from .quantizers import INTEGERS, PerChannel, PerTensor

RULES: dict[str, Callable[..., Any]] = {}
_FIXED_STRIDES = "Setting strides is possible only on uniformly quantized tensor"


def register_rule(*names: str) -> Callable[[Any], Any]:
    """Register the rule of ops."""

    def declare(function: Any) -> Any:
        RULES.update(dict.fromkeys(names, function))
        return function

    return declare


def _call(name: str, first: Any, rest: Any) -> Any:
    """Call an op on a plain tensor and the values of its other parameters."""
    named = {
        param.name: value for param, value in zip(REGISTRY[name].params[1:], rest, strict=False) if param.kwonly
    }  # they are the last ones
    return getattr(CALLBACKS.F, name)(first, *rest[: len(rest) - len(named)], **named)


def requantize(numbers: Any, like: Any) -> Any:
    """Numbers, quantized as a tensor is."""
    quantizer = like._tl_array.quantizer
    return wrap_quantized(quantizer.quantize(numbers, like.dtype), quantizer)


def _need_per_tensor(tensor: Any, message: str) -> None:
    if not isinstance(tensor._tl_array.quantizer, PerTensor):
        raise RuntimeError(message)


# -- ops that move elements -----------------------------------------------------------------------------------------


def _wrap_like(result: Any, quantizer: Any) -> Any:
    if isinstance(result, torch.Tensor):
        return wrap_quantized(result, quantizer)
    return type(result)(_wrap_like(part, quantizer) for part in result)


def _move_elements(name: str) -> None:
    def on_integers(input: Any, *rest: Any) -> Any:
        _need_per_tensor(input, _FIXED_STRIDES)
        return _wrap_like(_call(name, input._values, rest), input._quantizer)

    RULES[name] = on_integers


for _name in (
    "permute", "transpose", "t", "expand", "unfold", "flip", "index_select", "repeat", "_as_strided", "diagonal",
    "movedim",
):  # fmt: skip
    _move_elements(_name)


@register_rule("alias", "detach", "resolve_conj", "resolve_neg", "positive")
def detach(input: Any) -> Any:
    """The same memory."""
    return input.detach()


@register_rule("clone")
def clone(input: Any, memory_format: Any = torch.preserve_format) -> Any:
    """A copy of the integers and the parameters."""
    return wrap_quantized(input._values.clone(memory_format=memory_format), input._quantizer.copied())


@register_rule("contiguous")
def contiguous(input: Any, memory_format: Any = torch.contiguous_format) -> Any:
    """The tensor in an order of elements."""
    values = input._values.contiguous(memory_format=memory_format)
    return input if values is input._values else wrap_quantized(values, input._quantizer)


@register_rule("reshape")
def reshape(input: Any, shape: Any) -> Any:
    """Another shape. The channels must stay along their axis."""
    return _with_shape(input, torch.reshape(input._values, shape))


@register_rule("_view")
def view(input: Any, shape: Any) -> Any:
    """Another shape of the same memory."""
    return _with_shape(input, input._values.view(shape))


def _with_shape(input: Any, out: Any) -> Any:
    values, quantizer = input._values, input._quantizer
    if isinstance(quantizer, PerChannel) and tuple(out.shape) != tuple(values.shape):
        axis = quantizer.axis % values.ndim
        kept = out.ndim > axis and tuple(out.shape[: axis + 1]) == tuple(values.shape[: axis + 1])
        if not kept:
            there = out.shape[axis] if axis < out.ndim else 1
            raise RuntimeError(
                f"length of scales must equal to channel, expected {there} got, {quantizer.scales.numel()}"
            )
    return wrap_quantized(out, quantizer)


@register_rule("_view_dtype")
def view_dtype(input: Any, dtype: Any) -> Any:
    """The integers as another dtype."""
    return input._values.view(dtype)


@register_rule("unsqueeze")
def unsqueeze(input: Any, dim: int) -> Any:
    """A dimension more; the axis of channels moves along."""
    values, quantizer = torch.unsqueeze(input._values, dim), input._quantizer
    if isinstance(quantizer, PerChannel):
        axis = quantizer.axis % input.ndim
        quantizer = quantizer.on_axis(axis + (dim % values.ndim <= axis))
    return wrap_quantized(values, quantizer)


@register_rule("squeeze")
def squeeze(input: Any, dim: Any) -> Any:
    """Fewer dimensions of size one; the axis of channels moves along."""
    values, quantizer = CALLBACKS.F.squeeze(input._values, dim), input._quantizer
    if isinstance(quantizer, PerChannel) and input.ndim:
        axis = quantizer.axis % input.ndim
        given = (
            range(input.ndim) if dim is None else [d % input.ndim for d in ((dim,) if isinstance(dim, int) else dim)]
        )
        gone = [d for d in given if input.shape[d] == 1]
        if axis in gone:
            raise RuntimeError("Squeeze is only possible on non-axis dimension for Per-Channel Quantized Tensors.")
        quantizer = quantizer.on_axis(axis - sum(d < axis for d in gone))
    return wrap_quantized(values, quantizer)


@register_rule("select")
def select(input: Any, dim: int, index: int) -> Any:
    """One entry of a dimension. Of the channels' one it is quantized per tensor."""
    values, quantizer = torch.select(input._values, dim, index), input._quantizer
    if isinstance(quantizer, PerChannel):
        axis, dim = quantizer.axis % input.ndim, dim % input.ndim
        quantizer = quantizer.of_channel(index) if dim == axis else quantizer.on_axis(axis - (dim < axis))
    return wrap_quantized(values, quantizer)


@register_rule("_slice")
def slice_(input: Any, dim: int, start: int, end: int, step: int) -> Any:
    """Entries of a dimension. Of the channels' one their parameters are sliced; one channel is quantized per tensor."""
    values, quantizer = CALLBACKS.F._slice(input._values, dim, start, end, step), input._quantizer
    if isinstance(quantizer, PerChannel) and dim % input.ndim == quantizer.axis % input.ndim:
        quantizer = quantizer.of_channels(slice(start, end, step))
    return wrap_quantized(values, quantizer)


@register_rule("unbind")
def unbind(input: Any, dim: int = 0) -> Any:
    """All entries of a dimension."""
    return tuple(select(input, dim, index) for index in range(input.shape[dim]))


@register_rule("split_with_sizes")
def split_with_sizes(input: Any, split_sizes: Any, dim: int = 0) -> Any:
    """Parts of a dimension."""
    parts, quantizer = torch.split_with_sizes(input._values, split_sizes, dim), input._quantizer
    if not isinstance(quantizer, PerChannel) or dim % input.ndim != quantizer.axis % input.ndim:
        return _wrap_like(parts, quantizer)
    ends = [sum(split_sizes[: number + 1]) for number in range(len(parts))]
    return tuple(slice_(input, dim, end - size, end, 1) for size, end in zip(split_sizes, ends, strict=True))


@register_rule("getitem")
def getitem(input: Any, index: Any) -> Any:
    """`tensor[index]`. A tensor quantized per channel takes integers, slices, an ellipsis and ``None``."""
    if is_packed(input):
        return run_on_bytes(getitem, "getitem", [input, index])
    if isinstance(input._quantizer, PerChannel):
        return _channels_at(input, index if isinstance(index, tuple) else (index,))
    return wrap_quantized(input._values[index], input._quantizer)


def _channels_at(input: Any, index: tuple[Any, ...]) -> Any:
    """The part of a tensor quantized per channel that integers and slices choose."""
    if any(key is not None and key is not ... and type(key) not in (int, slice) for key in index):
        raise RuntimeError(_FIXED_STRIDES)
    taken = sum(key is not None and key is not ... for key in index)
    if taken > input.ndim:
        raise IndexError(f"too many indices for tensor of dimension {input.ndim}")
    dim = 0
    for place, key in enumerate(index):
        if key is ...:
            if ... in index[place + 1 :]:
                raise IndexError("an index can only have a single ellipsis ('...')")
            dim += input.ndim - dim - sum(each is not None for each in index[place + 1 :])
        elif key is None:
            input, dim = unsqueeze(input, dim), dim + 1
        elif isinstance(key, int):
            input = select(input, dim, key)
        else:
            input, dim = slice_(input, dim, *key.indices(input.shape[dim])), dim + 1
    return input


RULES["_index"] = getitem


@register_rule("cat")
def cat(tensors: Any, dim: int = 0) -> Any:
    """All tensors, quantized as the first."""
    first = tensors[0]
    for tensor in tensors:
        if not is_quantized(tensor) or tensor.dtype is not first.dtype:
            raise RuntimeError("All inputs must be quantized, with the dtype of the first")
        _need_per_tensor(tensor, "Only per-tensor quantization is supported in 'cat'!")
    parts = [t if t._quantizer.equals(first._quantizer) else requantize(t.dequantize(), first) for t in tensors]
    return wrap_quantized(torch.cat([part._values for part in parts], dim), first._quantizer)


@register_rule("stack")
def stack(tensors: Any, dim: int = 0) -> Any:
    """All tensors along a new dimension."""
    return cat([torch.unsqueeze(tensor, dim) for tensor in tensors], dim % (tensors[0].ndim + 1))


@register_rule("_move")
def move(input: Any, where: Any) -> Any:
    """Another device."""
    if is_packed(input):
        data = input._tl_array
        return wrap_packed(CALLBACKS.move(data.packed, where), data.dims, data.quantizer.moved(where), input.dtype)
    if torch.device(where).type == "meta":
        raise no_backend_kernel_error("empty_quantized", "Quantized", torch.empty(0, device="meta"))
    values = CALLBACKS.move(input._values, where)
    return input if values is input._values else wrap_quantized(values, input._quantizer.moved(where))


@register_rule("to")
def to(input: Any, dtype: Any) -> Any:
    """Raise PyTorch's error: a quantized tensor keeps its dtype."""
    raise RuntimeError("Creation of quantized tensor requires quantized dtype like torch.quint8")


# -- ops on the order of numbers ------------------------------------------------------------------------------------


def _order_elements(name: str) -> None:
    def on_integers(input: Any, *rest: Any) -> Any:
        _need_per_tensor(input, _NOT_PER_TENSOR)
        result = _call(name, input._values, rest)
        if isinstance(result, torch.Tensor):
            return wrap_quantized(result, input._quantizer)
        return to_named_tuple(name, (wrap_quantized(result[0], input._quantizer), *result[1:]))

    RULES[name] = on_integers


_NOT_PER_TENSOR = (
    "Expected quantizer->qscheme() == kPerTensorAffine to be true, but got false.  (Could this error message be "
    "improved?  If so, please report an enhancement request to PyTorch.)"
)
for _name in ("max", "min", "sort"):
    _order_elements(_name)


@register_rule("topk")
def topk(input: Any, *rest: Any) -> Any:
    """The greatest or least elements. Of equal ones it has those that the function of the numbers has."""
    _need_per_tensor(input, _NOT_PER_TENSOR)
    integers = input._values
    exact = torch.float64 if integers.dtype is torch.int32 else torch.float32
    levels, indices = _call("topk", integers.to(exact), rest)
    return to_named_tuple("topk", (wrap_quantized(levels.to(integers.dtype), input._quantizer), indices))


def _pool(name: str) -> None:
    def on_levels(input: Any, *rest: Any) -> Any:
        _need_per_tensor(input, _NOT_PER_TENSOR)
        levels = _call(name, input._values.to(torch.float32), rest)  # float32 holds eight bits exactly
        return wrap_quantized(levels.to(input._values.dtype), input._quantizer)

    RULES[name] = on_levels


for _name in ("max_pool1d", "max_pool2d", "max_pool3d"):
    _pool(_name)


@register_rule("relu")
def relu(input: Any) -> Any:
    """Numbers of at least zero, whose integer is the zero point."""
    _need_per_tensor(input, _NOT_PER_TENSOR)
    return wrap_quantized(input._values.clamp_min(input.q_zero_point()), input._quantizer)


# -- ops on the numbers ---------------------------------------------------------------------------------------------


def _compute(name: str) -> None:
    def on_numbers(input: Any, *rest: Any) -> Any:
        if not is_quantized(input):
            raise no_kernel_error(name, next(value for value in rest if is_quantized(value)))
        _need_per_tensor(input, _NOT_PER_TENSOR)
        return requantize(_call(name, input.dequantize(), rest), input)

    RULES[name] = on_numbers


for _name in (
    "clamp", "_clamp_scalars", "hardtanh", "relu6", "leaky_relu", "gelu", "threshold", "std", "masked_fill",
    "index_put",
):  # fmt: skip
    _compute(_name)


def _average(name: str) -> None:
    """An op whose results are weighted means: it runs on the differences to the zero point."""

    def on_levels(input: Any, *rest: Any) -> Any:
        _need_per_tensor(input, _NOT_PER_TENSOR)
        zero_point = input._quantizer.zero_point
        means = _call(name, input._values.to(torch.float32) - zero_point, rest)
        return wrap_quantized(PerTensor(1.0, zero_point).quantize(means, input.dtype), input._quantizer)

    RULES[name] = on_levels


for _name in (
    "mean", "avg_pool1d", "avg_pool2d", "avg_pool3d", "adaptive_avg_pool1d", "adaptive_avg_pool2d",
    "adaptive_avg_pool3d", "interpolate", "grid_sample",
):  # fmt: skip
    _average(_name)


def _compute_in_range(name: str, scale: float, zero_points: tuple[int, int], wide: float) -> None:
    """An op with results of a known range: the scale, the zero points of quint8 and qint8, and the scale of qint32."""

    def on_numbers(input: Any, *rest: Any) -> Any:
        _need_per_tensor(input, _NOT_PER_TENSOR)
        quantizer = {
            torch.quint8: PerTensor(scale, zero_points[0]), torch.qint8: PerTensor(scale, zero_points[1]),
            torch.qint32: PerTensor(wide, 0),
        }[input.dtype]  # fmt: skip
        return wrap_quantized(quantizer.quantize(_call(name, input.dequantize(), rest), input.dtype), quantizer)

    RULES[name] = on_numbers


_compute_in_range("sigmoid", 2.0**-8, (0, -128), 2.0**-32)
_compute_in_range("hardsigmoid", 2.0**-8, (0, -128), 2.0**-32)
_compute_in_range("tanh", 2.0**-7, (128, 0), 2.0**-31)


def _compare(name: str) -> None:
    def on_numbers(*operands: Any) -> Any:
        return getattr(CALLBACKS.F, name)(*(v.dequantize() if is_quantized(v) else v for v in operands))

    RULES[name] = on_numbers


for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    _compare(_name)


@register_rule("constant_pad_nd")
def constant_pad_nd(input: Any, pad: Any, value: Any = 0) -> Any:
    """A border of one number, which the input's quantizer rounds."""
    _need_per_tensor(input, "Only per-tensor padding is supported.")
    level = input._quantizer.quantize(torch.tensor(float(value)), input.dtype)
    return wrap_quantized(CALLBACKS.F.constant_pad_nd(input._values, pad, level.item()), input._quantizer)


@register_rule("_pad_border")
def pad_border(input: Any, pad: Any, mode: Any) -> Any:
    """A border of the tensor's own numbers."""
    _need_per_tensor(input, _NOT_PER_TENSOR)
    return wrap_quantized(CALLBACKS.F._pad_border(input._values, pad, mode), input._quantizer)


@register_rule("equal")
def equal(input: Any, other: Any) -> bool:
    """True if both are quantized with one scheme, equal parameters and equal integers."""
    if not is_quantized(input) or not is_quantized(other):
        return False
    same = input.dtype is other.dtype and input._quantizer.equals(other._quantizer)
    return same and torch.equal(input._values, other._values)


# -- new tensors, and writes ----------------------------------------------------------------------------------------


@register_rule("empty_like")
def empty_like(input: Any, dtype: Any = None, *rest: Any) -> Any:
    """A tensor with the input's shape and quantizer, and any integers."""
    if dtype not in (None, input.dtype):
        raise RuntimeError(
            "It is currently not supported to specify a dtype that doesn't match the input tensor's dtype"
        )
    return wrap_quantized(torch.empty_like(input._values), input._quantizer)


@register_rule("full_like")
def full_like(input: Any, value: Any, dtype: Any = None, *rest: Any) -> Any:
    """A tensor with the input's shape and quantizer, and one number."""
    return fill_(empty_like(input, dtype), value)


@register_rule("ones_like")
def ones_like(input: Any, dtype: Any = None, *rest: Any) -> Any:
    """A tensor of ones."""
    return full_like(input, 1, dtype)


@register_rule("rand_like", "randn_like", "randint_like")
def rand_like(input: Any, *rest: Any) -> Any:
    """Raise PyTorch's error."""
    raise no_kernel_error("uniform_", input)


@register_rule("zeros_like", "zero_")
def zero_(input: Any, *rest: Any) -> Any:
    """Raise PyTorch's error."""
    raise no_kernel_error("zero_", input)


@register_rule("fill_")
def fill_(input: Any, value: Any) -> Any:
    """Write one number to all places."""
    return copy_(input, torch.full(input.shape, float(value), device=input.device))


@register_rule("copy_", "_copy")
def copy_(input: Any, src: Any, non_blocking: bool = False) -> Any:
    """Write numbers, or the integers and the quantizer of another quantized tensor."""
    if not is_quantized(input):
        raise RuntimeError(
            "Copying from quantized Tensor to non-quantized Tensor is not allowed, please use dequantize to get a "
            "float Tensor from a quantized Tensor"
        )
    if is_packed(input):
        return _write_packed(input, src)
    if not is_quantized(src):
        if src.dtype is not torch.float32:
            raise RuntimeError("Quantized copy only works with kFloat as source Tensor")
        numbers = src.detach().to(input.device).expand(input.shape)
        input._values.copy_(input._quantizer.quantize(numbers, input.dtype))
    else:
        if src.dtype is not input.dtype:
            raise RuntimeError("Quantized Copy only works with same dtype")
        input._values.copy_(src._values)
        input._tl_array.quantizer = src._quantizer.copied()
    bump_version(input)
    return input


def setitem(input: Any, index: Any, value: Any) -> None:
    """`tensor[index] = value`: numbers, or a quantized tensor, whose numbers are written."""
    if is_packed(input):
        raise NotImplementedError(f"\"Copy\" not implemented for '{input.dtype.scalar_name}'")
    numbers = value.dequantize() if is_quantized(value) else torch.as_tensor(value, dtype=torch.float32)
    numbers = numbers.to(input.device)
    if isinstance(input._quantizer, PerChannel):
        part = getitem(input, index)
        part._values.copy_(part._quantizer.quantize(numbers.expand(part.shape), input.dtype))
    else:
        input._values[index] = input._quantizer.quantize(numbers, input.dtype)
    bump_version(input)


RULES["_setitem"] = setitem
# The ops that PyTorch names otherwise in its errors.
_ATEN = {
    "add_alpha": "add.out",
    "add": "add.out",
    "sub": "sub.out",
    "mul": "mul.out",
    "div": "div.out",
    "sum": "sum.IntList_out",
}


def run_op(op: Any, values: list) -> Any:
    """Run an op with a quantized operand. NotImplemented for a composite op, which runs as its parts."""
    found = RULES.get(op.name)
    if found is not None:
        if found is not copy_ and any(is_packed(value) for value in _flatten(values)):
            return run_on_bytes(found, op.name, values)
        return found(*values)
    if op.is_implicit:
        return NotImplemented
    raise no_kernel_error(_ATEN.get(op.name, op.name), next(v for v in _flatten(values) if is_quantized(v)))


def _flatten(values: Any) -> Any:
    for value in values:
        if value.__class__ in (list, tuple):
            yield from _flatten(value)
        else:
            yield value


def run_in_place(op: Any, values: list) -> Any:
    """`self.op_(...)` with a quantized tensor among the values."""
    target = values[0]
    if op.name in ("copy_", "_copy", "fill_", "zero_"):
        return RULES[op.name](*values)
    if not is_quantized(target):
        raise no_kernel_error(f"{op.name}_", next(v for v in _flatten(values) if is_quantized(v)))
    result = run_op(op, values)
    if result is NotImplemented or not is_quantized(result):
        raise no_kernel_error(f"{op.name}_", target)
    if tuple(result.shape) == tuple(target.shape) and result._quantizer == target._quantizer:
        target._values.copy_(result._values)
    else:  # views such as `unsqueeze_`, and ops with a quantizer of their own
        target._tl_array = result._tl_array
    bump_version(target)
    return target


def _write_packed(target: Any, source: Any) -> Any:
    """Raise PyTorch's error: nothing but the tensor itself is written to a packed tensor."""
    if source is target:
        return target
    kernel = "copy_kernel" if is_quantized(source) else "Copy"
    raise NotImplementedError(f"\"{kernel}\" not implemented for '{target.dtype.scalar_name}'")


def _reshape_in_place(name: str) -> None:
    def replace_data(input: Any, *rest: Any) -> Any:
        input._tl_array = RULES[name](input, *rest)._tl_array
        bump_version(input)
        return input

    RULES[f"{name}_"] = replace_data


for _name in ("unsqueeze", "squeeze", "t", "transpose"):
    _reshape_in_place(_name)


def write_out(result: Any, out: Any) -> Any:
    """Write the result to `out=`."""
    if not is_quantized(result) or not is_quantized(out):
        raise RuntimeError("out= is quantized, and the result is not, or the reverse")
    out._tl_array = result._tl_array
    bump_version(out)
    return out


def convert(tensor: Any, *args: Any, **kwargs: Any) -> Any:
    """`Tensor.to` of a quantized tensor."""
    dtype, where, copy, form = _parse_to(*args, **kwargs)
    if dtype is not None and dtype is not tensor.dtype:
        to(tensor, dtype)
    out = tensor if where is None else move(tensor, where)
    if form is not None:  # strides of dimensions of size one change, unlike those of `contiguous`
        values = out._values.to(memory_format=form)
        out = out if values is out._values else wrap_quantized(values, out._quantizer)
    return clone(out) if copy and out is tensor else out


__all__ = ["INTEGERS", "RULES", "clone", "convert", "getitem", "run_in_place", "run_op", "setitem", "write_out"]
