"""Dispatch of ops on DTensors: choose the cheapest sharding strategy, redistribute arguments, run on local tensors.

An op's *rule* lists the strategies by which each process can compute independently. The local tensors are ordinary
tensors with autograd history, so gradients need no rules; `_redistribute` defines the gradient of each placement. A
replicated tensor that each process uses differently gets the sum of their gradients (`sum_gradients`). An op without a
rule runs on replicated tensors, on every process.
"""

from __future__ import annotations

import functools
import threading
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torchlite as torch
from torchlite._dispatch import call, function_for, in_place_calls, table_of
from torchlite._dispatch.callbacks import CALLBACKS
from torchlite._dispatch.dispatch_state import recording
from torchlite._dispatch.op_record import RANDOM, VIEW, Op

from ._dtensor_factory import make_dtensor, replicate_tensor
from ._dtensor_spec import DTensorSpec, TensorMeta
from ._op_strategy import CUSTOM_OP_HANDLERS, SHARDING_RULES, OpCall, Strategy, flatten_values, is_dtensor, map_values
from ._random import use_mesh_generator
from ._redistribute import redistribute_local_tensor, sum_gradients
from .placement_types import Partial, Placement, Replicate, Shard

R = Replicate()


class _Mode(threading.local):
    replicates = 0  # > 0: plain tensors mixed with DTensors are replicated
    replicating_ops: frozenset[str] = frozenset()  # ops for which they always are


DISPATCH_MODE = _Mode()


class ImplicitReplication:
    """Context manager: plain tensors mixed with DTensors count as replicated."""

    def __enter__(self) -> None:
        DISPATCH_MODE.replicates += 1

    def __exit__(self, *error: object) -> None:
        DISPATCH_MODE.replicates -= 1


def run_record(op: Op, values: Sequence[Any], writes: bool = False) -> Any:
    """Return the result of an op with DTensors among its bound arguments."""
    mesh = next(v for v in flatten_values(values) if is_dtensor(v))._spec.mesh
    found = OpCall(
        op, [map_values(lambda v: _to_op_argument(op, v, mesh, writes), value) for value in values], mesh, writes
    )
    if mesh.get_coordinate() is None:
        raise RuntimeError(f"{op.name}: this process is not in the mesh of the DTensors, {mesh}")
    if (writes or op.name[-1] == "_") and not is_dtensor(values[0]):
        raise RuntimeError(_MIXED_MESSAGE.format(f"{op.function_name}_"))
    if (writes or op.name[-1] == "_") and values[0]._is_copy:
        raise RuntimeError(_PLACEMENT_CHANGE_MESSAGE.format(f"{op.function_name}_"))
    special = CUSTOM_OP_HANDLERS.get(op.name)
    if special is not None:
        result = special(found)
        if result is not NotImplemented:
            return result
    if writes:
        return _run_in_place(found)
    if op.name[-1] == "_":
        return _run_in_place_replicated(found, functools.partial(call_op, op))
    if op.is_implicit and op.name not in SHARDING_RULES:
        with ImplicitReplication():
            return op.composite(CALLBACKS.F, *found.values)  # type: ignore[misc]
    return compute_local(found)


_MIXED_MESSAGE = (
    "{}: got mixed torch.Tensor and DTensor, need to convert all torch.Tensor to DTensor before calling distributed "
    "operators!"
)
_PLACEMENT_CHANGE_MESSAGE = (
    "{}: in-place operations that require placement changes are not supported: this DTensor would be a view of "
    "another, but had to be gathered and is a copy. Please redistribute the other one before the view is taken."
)


def _to_op_argument(op: Op, value: Any, mesh: Any, writes: bool) -> Any:
    """Return an argument of the op: a plain tensor as a replicated one, if allowed."""
    if is_dtensor(value):
        if value._spec.mesh != mesh:
            raise RuntimeError(
                f"{op.name}: got DTensors on different meshes, {mesh} and {value._spec.mesh}; redistributing between "
                "meshes is not supported"
            )
        return value
    if not isinstance(value, torch.Tensor):
        return value
    if value.numel() == 1 and value.ndim == 1 and not DISPATCH_MODE.replicates:
        warnings.warn(
            "Found a non-scalar tensor with numel=1 and ndim!=0, we are implicitly creating a replicated DTensor for "
            "it. However, please consider changing it to a scalar tensor or explicitly create a DTensor under "
            "distributed enviroment.",
            stacklevel=2,
        )
    if value.numel() == 1 or DISPATCH_MODE.replicates or op.name in DISPATCH_MODE.replicating_ops:
        return replicate_tensor(value, mesh)
    raise RuntimeError(_MIXED_MESSAGE.format(op.name))


# -- strategy selection --------------------------------------------------------------------------------------


def _redistribute_cost(now: Placement, wanted: Placement, elements: int, count: int) -> float:
    """Return the cost of redistributing an argument, in moved elements."""
    if now == wanted:
        return 0
    if isinstance(now, Shard):
        if isinstance(wanted, Partial):
            return float("inf")
        return elements / count if isinstance(wanted, Shard) and wanted.dim != now.dim else elements
    if isinstance(now, Partial):
        if isinstance(wanted, Partial):
            return float("inf")
        return elements if isinstance(wanted, Shard) and now.reduce_op == "sum" else 2 * elements
    if isinstance(wanted, Partial):
        return 0.002 if wanted.reduce_op == "sum" else float("inf")
    return 0.001


def select_strategies(found: OpCall, target: Any = None) -> list[Strategy]:
    """Return the cheapest strategy along each mesh dimension; with `target`, among those with its result placement."""
    rule = SHARDING_RULES.get(found.op.name)
    ways = found.ways = []
    for number in range(found.mesh.ndim):
        count = found.mesh.size(number)
        now = [t._spec.placements[number] for t in found.tensors]
        best: Any = ([R] * len(now), R)
        least = _total_cost(now, best[0], found.tensors, count)
        if target is not None and target[number] != R:
            least = float("inf")
        if least:
            for ins, outs in rule.ways(found, number) if rule is not None else ():
                if target is not None and (outs != target[number] or ins[0] != target[number]):
                    continue
                price = _total_cost(now, ins, found.tensors, count)
                if price < least:
                    best, least = (ins, outs), price
        if least == float("inf"):
            return []
        ways.append(best)
    return ways


def _total_cost(now: Sequence[Placement], wanted: Sequence[Placement], tensors: Sequence[Any], count: int) -> float:
    return sum(
        _redistribute_cost(a, b, t.numel() * t.itemsize, count) for a, b, t in zip(now, wanted, tensors, strict=True)
    )


# -- running ----------------------------------------------------------------------------------------


def _to_args_kwargs(op: Op, values: Sequence[Any]) -> tuple[tuple, dict[str, Any]]:
    """Return bound arguments as positional ones and keywords."""
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    by_name = False
    for p, value in zip(op.params, values, strict=True):
        if p.name == "index" and not p.is_tensor and value.__class__ is tuple:  # of arrays
            value = tuple(getattr(v, "_tl_array") if isinstance(v, torch.Tensor) else v for v in value)  # noqa: B009
        if p.kind == "varargs":
            args.extend(value)
            by_name = True
        elif p.kwonly or by_name:
            kwargs[p.name] = value
        else:
            args.append(value)
    return tuple(args), kwargs


def call_op(op: Op, values: Sequence[Any]) -> Any:
    """Call the op's function on bound arguments."""
    args, kwargs = _to_args_kwargs(op, values)
    return function_for(op)(*args, **kwargs)


def redistribute_to_local(tensor: Any, placements: Sequence[Placement]) -> torch.Tensor:
    """Redistribute a DTensor, and return the local tensor."""
    spec = tensor._spec
    return redistribute_local_tensor(tensor._local_tensor, spec.shape, spec.mesh, spec.placements, placements)


def to_local_args(found: OpCall, ways: Sequence[Strategy]) -> list[torch.Tensor]:
    """Return the arguments' local tensors in the strategies' placements."""
    parts = []
    varying = [
        any(not p.is_replicate() for p in ins) or any(not p.is_replicate() for p in flatten_values([outs]))
        for ins, outs in ways
    ]
    for i, tensor in enumerate(found.tensors):
        wanted = [ins[i] for ins, _ in ways]
        part = redistribute_to_local(tensor, wanted)
        for number, placement in enumerate(wanted):
            if varying[number] and placement.is_replicate() and torch.is_grad_enabled():
                part = sum_gradients(part, found.mesh.get_group(number))
        parts.append(part)
    return parts


def make_output_specs(found: OpCall, result: Any, ways: Sequence[Strategy]) -> Any:
    """Return the results' specs, in the result's structure; None for a non-tensor."""
    several = result.__class__ in (list, tuple) or isinstance(result, tuple)
    locals_ = list(result) if several else [result]
    sharded = any(isinstance(p, Shard) for _, outs in ways for p in flatten_values([outs]))
    wholes = _propagate_shapes(found) if sharded else locals_
    specs: list[Any] = []
    for i, (own, whole) in enumerate(zip(locals_, wholes, strict=True)):
        if not isinstance(own, torch.Tensor):
            specs.append(None)
            continue
        placements = [outs[i] if isinstance(outs, (list, tuple)) else outs for _, outs in ways]
        specs.append(DTensorSpec(found.mesh, placements, TensorMeta(whole.shape, whole.stride(), own.dtype)))
    return specs


def _propagate_shapes(found: OpCall) -> list[Any]:
    """Run the op on full tensors without elements, for shapes and strides."""
    with recording(False):
        result = call_op(found.op, [map_values(_to_meta, value) for value in found.values])
    return list(result) if isinstance(result, (list, tuple)) else [result]


def _to_meta(value: Any) -> Any:
    if not is_dtensor(value):
        return value
    meta: Any = torch.device("meta")
    return call.wrap_array(table_of(meta), value._tl_array, value.dtype)


def compute_local(found: OpCall, ways: Sequence[Strategy] | None = None) -> Any:
    """Run the op with the cheapest strategy."""
    ways = select_strategies(found) if ways is None else ways
    parts = to_local_args(found, ways)
    rule = SHARDING_RULES.get(found.op.name)
    rest = iter(parts)
    values = [map_values(lambda v: next(rest) if is_dtensor(v) else v, value) for value in found.values]
    if rule is not None and rule.localized is not None:
        values = rule.localized(found, ways, values)
    if found.op.tags & RANDOM:
        with use_mesh_generator(found.mesh):
            result = call_op(found.op, values)
    else:
        result = call_op(found.op, values)
    specs = make_output_specs(found, result, ways)
    moved = bool(found.op.tags & VIEW) and (
        found.tensors[0]._is_copy
        or any(ins[0] != p for (ins, _), p in zip(ways, found.tensors[0].placements, strict=True))
    )
    return wrap_results(result, specs, moved)


def wrap_results(result: Any, specs: list[Any], is_copy: bool = False) -> Any:
    """Wrap local results in DTensors."""
    each = iter(specs)

    def wrap(part: Any) -> Any:
        spec = next(each)
        if spec is None:
            return part
        out = make_dtensor(part, spec)
        if is_copy:
            out._is_copy = True
        return out

    return map_values(wrap, result)


def _run_in_place(found: OpCall) -> Any:
    """Run an op in place: on the local tensor if a strategy preserves the target's placement, else via its result."""
    target = found.values[0]
    ways = select_strategies(found, target._spec.placements)
    if ways:
        parts = to_local_args(found, ways)
        rest = iter(parts)
        values = [map_values(lambda v: next(rest) if is_dtensor(v) else v, value) for value in found.values]
        values[0] = target._local_tensor
        rule = SHARDING_RULES.get(found.op.name)
        if rule is not None and rule.localized is not None:
            values = rule.localized(found, ways, values)
        _call_in_place(found.op, values)
        return target
    return _run_in_place_replicated(found, functools.partial(_call_in_place, found.op))


def _call_in_place(op: Op, values: Sequence[Any]) -> Any:
    return in_place_calls.run_in_place(op, *_to_args_kwargs(op, values))


def _run_in_place_replicated(found: OpCall, run: Callable[[Sequence[Any]], Any]) -> Any:
    """Run an op in place on a replicated copy of the target, whose shard is written back."""
    target, ways = found.values[0], [([R] * len(found.tensors), R)] * found.mesh.ndim
    rest = iter(to_local_args(found, ways))
    values = [map_values(lambda v: next(rest) if is_dtensor(v) else v, value) for value in found.values]
    whole = values[0].clone()
    if whole.shape != run([whole, *values[1:]]).shape or whole.shape != target.shape:
        raise RuntimeError(f"{found.op.name}: in-place operations that change a DTensor's shape are not supported")
    spec = target._spec
    target._local_tensor.copy_(
        redistribute_local_tensor(whole, spec.shape, spec.mesh, output_placements(ways), spec.placements)
    )
    return target


def output_placements(ways: Sequence[Strategy]) -> list[Placement]:
    """Return a result's placements for strategies."""
    return [outs for _, outs in ways]


def local_shape(shape: Sequence[int], mesh: Any, ways: Sequence[Strategy]) -> tuple[int, ...]:
    """Return the local shape of a result."""
    from ._utils import compute_local_shape

    return compute_local_shape(shape, mesh, [outs for _, outs in ways])
