"""Ops on nested tensors with the jagged layout: each runs on the tensor of values, or on the parts.

An op gets its *rule* by the name of its record. Elementwise ops have one rule, and ops whose dimensions are those of
the values another. An op without a rule that is written in other ops runs as these; any other raises
NotImplementedError with PyTorch's text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torchlite as torch
from torchlite._dispatch import function_for, in_place_calls
from torchlite._dispatch.op_record import Op

from .nested_tensor import NestedTensor

RULES: dict[str, Callable[[OpCall], Any]] = {}


class OpCall:
    """An op's call: the record, its bound arguments, and the first nested tensor among them."""

    def __init__(self, op: Op, values: Sequence[Any], writes: bool) -> None:
        self.op, self.values, self.writes = op, list(values), writes
        self.nested = next(v for v in flatten(self.values) if isinstance(v, NestedTensor))

    def argument(self, name: str) -> Any:
        """The argument of a name."""
        return self.values[[p.name for p in self.op.params].index(name)]

    def run(self, **changed: Any) -> Any:
        """The op with its nested tensors' values, and some other arguments changed."""
        values = [
            changed[p.name] if p.name in changed else map_nested(v, lambda nt: nt._values)
            for p, v in zip(self.op.params, self.values, strict=True)
        ]
        return call_op(self.op, values, self.writes)

    def like(self, result: Any, ragged_idx: int | None = None) -> Any:
        """The result's tensors as nested ones; the target itself for an op in place."""
        if self.writes or self.op.name[-1] == "_":
            return self.values[0]
        if isinstance(result, (tuple, list)):
            made = [self.nested._like(r, ragged_idx) if isinstance(r, torch.Tensor) else r for r in result]
            return type(result)(made)
        return self.nested._like(result, ragged_idx)

    def write(self, result: Any) -> Any:
        """The target of an op in place, with the elements of its result."""
        target = self.values[0]
        if not isinstance(target, NestedTensor) or not isinstance(result, NestedTensor):
            raise self.fail("the target in place must be nested, as the result is")
        target._values.copy_(result._values)
        return target

    def fail(self, text: str) -> RuntimeError:
        """An error that begins with the op's name."""
        return RuntimeError(f"{self.op.function_name}(): {text}")

    def dim(self, dim: int, more: int = 0) -> int:
        """A dimension as a number from 0. IndexError if there is none."""
        count = self.nested.ndim + more
        if not -count <= dim < count:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-count}, {count - 1}], but got {dim})"
            )
        return dim % count

    def inner_dim(self, dim: int, more: int = 0) -> int:
        """A dimension of the values. RuntimeError for that of the batch."""
        found = self.dim(dim, more)
        if not found:
            raise self.fail("not supported for NestedTensor on dim=0")
        return found - 1

    def dense_dim(self, dim: int) -> int:
        """A dimension of the values that is not the ragged one."""
        found = self.inner_dim(dim)
        if found == self.nested._ragged_idx - 1:
            raise self.fail("not supported for NestedTensor on ragged dim")
        return found


def rule(*names: str) -> Callable[[Any], Any]:
    """Register a function of an OpCall as the rule of ops."""

    def register(function: Any) -> Any:
        RULES.update(dict.fromkeys(names, function))
        return function

    return register


def flatten(values: Any) -> Any:
    """The values in nested lists and tuples."""
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from flatten(value)
        else:
            yield value


def map_nested(value: Any, change: Callable[[Any], Any]) -> Any:
    """A value with each nested tensor in it changed."""
    if isinstance(value, NestedTensor):
        return change(value)
    if type(value) in (list, tuple):
        return type(value)(map_nested(v, change) for v in value)
    return value


def call_op(op: Op, values: Sequence[Any], writes: bool = False) -> Any:
    """Call the op's function on bound arguments."""
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    by_name = False
    for p, value in zip(op.params, values, strict=True):
        if p.kind == "varargs":
            args.extend(value)
            by_name = True
        elif p.kwonly or by_name:
            kwargs[p.name] = value
        else:
            args.append(value)
    return in_place_calls.run_in_place(op, tuple(args), kwargs) if writes else function_for(op)(*args, **kwargs)


# -- elementwise ----------------------------------------------------------------------------------


def same_parts(a: NestedTensor, b: NestedTensor) -> bool:
    """Whether two nested tensors have the same ragged dimension."""
    return a._ragged.size == b._ragged.size and a._ragged_idx == b._ragged_idx and a.ndim == b.ndim


def run_pointwise(found: OpCall) -> Any:
    """An elementwise op, on the values. Dense operands broadcast to the nested shape."""
    nested = found.nested
    tensors = [v for v in flatten(found.values) if isinstance(v, torch.Tensor)]
    values = []
    for value in found.values:
        if isinstance(value, NestedTensor):
            if not same_parts(nested, value):
                raise mismatch(found, tensors)
            value = value._values
        elif isinstance(value, torch.Tensor) and value.ndim:
            value = _as_values(found, value, tensors)
        values.append(value)
    result = call_op(found.op, values, found.writes)
    return found.like(result)


def mismatch(found: OpCall, tensors: Sequence[Any]) -> RuntimeError:
    """The error of shapes that an elementwise op does not combine."""
    both = all(isinstance(t, NestedTensor) for t in tensors)
    shapes = [tuple(t.shape) if both else t.shape for t in tensors]
    return RuntimeError(
        f"cannot call binary pointwise function {found.op.function_name}.Tensor with inputs of shapes {shapes[0]} and "
        f"{shapes[-1]}"
    )


def _as_values(found: OpCall, dense: torch.Tensor, tensors: Sequence[Any]) -> torch.Tensor:
    """A dense operand in the form of the values: its batch's rows repeated for the rows of their parts."""
    nested = found.nested
    place = nested._ragged_idx
    before = nested.ndim - dense.ndim  # dimensions that it lacks
    if before < 0:
        raise mismatch(found, tensors)
    if before > place:
        return dense
    if dense.shape[place - before] != 1:
        raise mismatch(found, tensors)
    if before > 0:
        return dense  # its size at the ragged dimension is 1
    if dense.shape[0] == 1:
        return dense[0]
    if dense.shape[0] != len(nested):
        raise mismatch(found, tensors)
    rows = dense.squeeze(place).index_select(0, _part_numbers(nested))
    return rows.movedim(0, place - 1)


def _part_numbers(nested: NestedTensor) -> torch.Tensor:
    """For each row of the values the number of its part; 0 for rows in holes."""
    if nested._lengths is None:
        return nested._rows()[0]
    numbers = torch.zeros(nested._values.shape[nested._ragged_idx - 1], dtype=torch.int64, device=nested.device)
    for i, (start, length) in enumerate(nested._bounds()):
        numbers[start : start + length] = i
    return numbers


_ELEMENTWISE = (
    "where _where where_method masked_fill _masked_fill _masked_fill_tensor nan_to_num clamp lerp clip isclose"
)
_ON_VALUES = """clone _cow_clone _lazy_clone detach to _to _device_copy _dropout torch_dropout dropout alpha_dropout
torch_alpha_dropout native_dropout empty_like zeros_like ones_like full_like _zeros_like _ones_like _full_like rand_like
randn_like randint_like zero_ fill_ _fill fill _random_fill normal_ _copy"""


@rule(*_ELEMENTWISE.split())
def _where(found: OpCall) -> Any:
    return run_pointwise(found)


# -- ops on the values --------------------------------------------------------------------------------


@rule(*_ON_VALUES.split())
def _on_values(found: OpCall) -> Any:
    return found.like(found.run())


@rule("_setitem")
def _setitem(found: OpCall) -> Any:
    target, index, value = found.values
    target._set_items(index, value)
    return target


@rule("copy_")
def _copy_in_place(found: OpCall) -> Any:
    target, source = found.values[0], found.values[1]
    if not isinstance(target, NestedTensor) or not isinstance(source, NestedTensor):
        raise RuntimeError("copy_ only supports Nested <-> Nested copies")
    for mine, other in zip(target.unbind(), source.unbind(), strict=True):
        if mine.shape != other.shape:
            raise RuntimeError("copy_ only supports Nested tensors that have same sizes")
    target._values.copy_(source._values)
    return target


@rule("contiguous")
def _contiguous(found: OpCall) -> Any:
    nested = found.nested
    if nested.is_contiguous():
        return nested
    if nested._lengths is None:
        return nested._like(nested._values.contiguous())
    from .nested_tensor import jagged_from_list

    return jagged_from_list(list(nested.unbind()), None)[0]


@rule("linear")
def _linear(found: OpCall) -> Any:
    input, weight, bias = (found.argument(name) for name in ("input", "weight", "bias"))
    if not isinstance(input, NestedTensor) or isinstance(weight, NestedTensor) or isinstance(bias, NestedTensor):
        raise found.fail("the weight and the bias cannot be nested")
    if input._ragged_idx == input.ndim - 1:
        raise found.fail("not supported for NestedTensor on ragged dim")
    return input._like(torch.nn.functional.linear(input._values, weight, bias))


@rule("embedding")
def _embedding(found: OpCall) -> Any:
    if isinstance(found.argument("weight"), NestedTensor):
        raise found.fail("the weight cannot be nested")
    return found.like(found.run())


@rule("layer_norm", "_layer_norm", "rms_norm", "_rms_norm")
def _norm_of_last_dims(found: OpCall) -> Any:
    nested = found.nested
    count = len(found.argument("normalized_shape"))
    if count >= nested.ndim - nested._ragged_idx and count < nested.ndim - 1:
        raise found.fail("not supported when normalizing over the ragged dimension for NestedTensor")
    return found.like(found.run())


@rule("softmax", "_softmax", "log_softmax", "_log_softmax")
def _softmax(found: OpCall) -> Any:
    nested, name = found.nested, found.op.function_name
    dim = found.dim(found.argument("dim"))
    if not dim:
        raise RuntimeError(f"{name}(): not supported when reducing across the batch dimension for NestedTensor")
    if dim != nested._ragged_idx:
        return found.like(found.run(dim=dim - 1))
    if "log" in name:
        raise RuntimeError(f"{name}(): not supported when reducing along the ragged dimension for NestedTensor")
    if nested._lengths is not None:
        raise RuntimeError(
            f"{name}(): not supported where lengths is not None if reducing across the ragged dimension for "
            "NestedTensor"
        )
    padded = nested._padded(float("-inf"))
    changed = {"dim": dim}
    pairs = zip(found.op.params, found.values, strict=True)
    values = [padded if v is nested else changed.get(p.name, v) for p, v in pairs]
    return nested._from_padded(call_op(found.op, values))


@rule("cat")
def _cat(found: OpCall) -> Any:
    tensors = found.argument("tensors")
    dim = found.inner_dim(found.argument("dim"))
    return found.like(torch.cat(_values_of_all(found, tensors, dim), dim))


@rule("stack")
def _stack(found: OpCall) -> Any:
    dim = found.inner_dim(found.argument("dim"), 1)
    parts = _values_of_all(found, found.argument("tensors"), None)
    return found.like(torch.stack(parts, dim), found.nested._ragged_idx + (dim < found.nested._ragged_idx))


def _values_of_all(found: OpCall, tensors: Sequence[Any], dim: int | None) -> list[torch.Tensor]:
    nested = found.nested
    if dim == nested._ragged_idx - 1:
        raise found.fail("not supported for NestedTensor on ragged dim")
    if not all(isinstance(t, NestedTensor) and same_parts(nested, t) for t in tensors):
        raise found.fail("all tensors must be nested tensors with the same ragged dimension")
    return [t._values for t in tensors]
