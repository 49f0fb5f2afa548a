"""Sharding rules of factory, random, copy and fill ops."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torchlite as torch
from torchlite._dispatch import REGISTRY

from .._dispatch import R, call_op, compute_local, run_record
from .._dtensor_factory import make_dtensor, take_local_shard
from .._dtensor_spec import DTensorSpec, TensorMeta
from .._op_strategy import OpCall, Strategy, map_values, register_op_handler, register_op_strategy
from .._random import draw_dtensor, use_mesh_generator
from .._utils import compute_local_shape
from ..placement_types import Placement
from .pointwise import pointwise
from .rule_helpers import shard_kinds


def _replicate_partials(tensor: Any) -> list[Placement]:
    """Return a tensor's placements with Replicate for Partial."""
    return [R if p.is_partial() else p for p in tensor.placements]


def _remaining_args(found: OpCall) -> dict[str, Any]:
    """Return a call's arguments by name, without the first."""
    return {p.name: v for p, v in list(zip(found.op.params, found.values, strict=True))[1:]}


@register_op_handler("zeros_like", "ones_like", "full_like", "empty_like")
def _like_strategies(found: OpCall) -> Any:
    """Like-ops: the input's placements; each process creates its shard."""
    tensor = found.values[0]
    given = _remaining_args(found)
    wants = given.pop("requires_grad", False)
    part = call_op(found.op, [tensor._local_tensor.detach(), *[given.get(p.name, False) for p in found.op.params[1:]]])
    places = _replicate_partials(tensor)
    if part.shape != compute_local_shape(tensor.shape, found.mesh, places):
        raise AssertionError("a part that is not as large as its placements say")
    meta = TensorMeta(tensor.shape, tensor._spec.stride, part.dtype)
    out = make_dtensor(part, DTensorSpec(found.mesh, places, meta))
    return out.requires_grad_() if wants else out


@register_op_handler("new_zeros", "new_ones", "new_full", "new_empty", "new_empty_strided", "new_tensor")
def _new_strategies(found: OpCall) -> Any:
    """New-ops: the input's placements for an equal size, replicated for another."""
    tensor = found.values[0]
    given = _remaining_args(found)
    wants = given.get("requires_grad", False)
    values = [tensor._local_tensor.detach(), *found.values[1:]]
    values = [False if p.name == "requires_grad" else v for p, v in zip(found.op.params, values, strict=True)]
    whole = call_op(found.op, [torch.empty(0, dtype=tensor.dtype, device=tensor.device), *values[1:]])
    places = _replicate_partials(tensor) if whole.shape == tensor.shape else [R] * found.mesh.ndim
    meta = TensorMeta(whole.shape, whole.stride(), whole.dtype)
    out = make_dtensor(take_local_shard(whole, found.mesh, places), DTensorSpec(found.mesh, places, meta))
    return out.requires_grad_() if wants else out


@register_op_handler("rand_like", "randn_like", "randint_like")
def _handle_random_like(found: OpCall) -> Any:
    """Random like-ops: numbers agree on all processes."""
    tensor = found.values[0]
    like = torch.empty(tensor.shape, dtype=tensor.dtype, device=tensor.device)
    values = [False if p.name == "requires_grad" else v for p, v in zip(found.op.params, found.values, strict=True)]
    out = draw_dtensor(lambda: call_op(found.op, [like, *values[1:]]), found.mesh, _replicate_partials(tensor))
    return out.requires_grad_() if _remaining_args(found).get("requires_grad", False) else out


@register_op_handler(
    "uniform_", "normal_", "random_", "bernoulli_", "exponential_", "cauchy_", "geometric_", "log_normal_"
)
def _handle_random_in_place(found: OpCall) -> Any:
    """As `rand_like`, written into the tensor."""
    tensor = found.values[0]
    if any(p.is_partial() for p in tensor.placements):
        raise RuntimeError(f"{found.op.name}: a sum over the processes cannot be drawn in place; redistribute it first")
    rest = map_values(lambda v: v.full_tensor() if hasattr(v, "full_tensor") else v, list(found.values[1:]))
    like = torch.empty(tensor.shape, dtype=tensor.dtype, device=tensor.device)
    out = draw_dtensor(lambda: call_op(found.op, [like, *rest]), found.mesh, tensor.placements)
    tensor._local_tensor.copy_(out._local_tensor)
    return tensor


@register_op_handler(
    "dropout", "alpha_dropout", "feature_alpha_dropout", "dropout1d", "dropout2d", "dropout3d", "torch_dropout",
    "torch_alpha_dropout", "torch_feature_dropout", "torch_feature_alpha_dropout", "torch_dropout_",
    "torch_alpha_dropout_", "torch_feature_dropout_", "torch_feature_alpha_dropout_", "native_dropout", "rrelu",
)  # fmt: skip
def _handle_dropout(found: OpCall) -> Any:
    """Dropout: an element's draw does not depend on placements: `a * x + b` for the op's a and b."""
    tensor = found.values[0]
    names = [p.name for p in found.op.params]
    flag = next((found[n] for n in ("training", "train") if n in names), True)
    if not flag and found.op.name not in ("rrelu",):
        return tensor
    if found.op.name in ("native_dropout", "rrelu"):
        with use_mesh_generator(found.mesh):
            return compute_local(found, [([R] * len(found.tensors), R)] * found.mesh.ndim)
    values = list(found.values[1:])
    in_place = found.op.name[-1] == "_" or ("inplace" in names and found["inplace"])
    if "inplace" in names:
        values[names.index("inplace") - 1] = False
    like = torch.ones(tensor.shape, dtype=tensor.dtype, device=tensor.device)
    op = found.op
    if op.name[-1] == "_":
        op = REGISTRY[op.name[:-1]]
    places = _replicate_partials(tensor)
    if "alpha" in op.name:  # a * 1 + b and a * 0 + b

        def dropout_of_input_and_zeros() -> torch.Tensor:
            state = torch.get_rng_state()
            one = call_op(op, [like, *values])
            torch.set_rng_state(state)
            return torch.stack([one, call_op(op, [torch.zeros_like(like), *values])], -1)

        pair = draw_dtensor(dropout_of_input_and_zeros, found.mesh, places)
        shift = pair[..., 1]
        out = tensor * (pair[..., 0] - shift) + shift
    else:
        out = tensor * draw_dtensor(lambda: call_op(op, [like, *values]), found.mesh, places)
    return tensor.copy_(out) if in_place else out


@register_op_handler(
    "bernoulli",
    "multinomial",
    "poisson",
    "binomial",
    "normal",
    "_standard_gamma",
    "_sample_dirichlet",
    "gumbel_softmax",
)
def _draw_replicated(found: OpCall) -> Any:
    """Draw on replicated tensors."""
    with use_mesh_generator(found.mesh):
        ways = [([R] * len(found.tensors), R)] * found.mesh.ndim
        return compute_local(found, ways)


@register_op_strategy("_fill")
def _fill_strategies(found: OpCall, number: int) -> Iterator[Strategy]:
    """Fill: any placement."""
    tensor = found.tensors[0]
    rest: list[Placement] = [R] * (len(found.tensors) - 1)
    for cut in shard_kinds(found, number):
        for dim in range(tensor.ndim):
            yield [cut(dim), *rest], cut(dim)


@register_op_strategy("_copy")
def _copy_strategies(found: OpCall, number: int) -> Iterator[Strategy]:
    """Copy: the target's placements."""
    yield from pointwise(found, number)
    placement = found.tensors[0]._spec.placements[number]
    if placement.is_partial() and all(t.shape == found.tensors[0].shape for t in found.tensors):
        yield [placement] * len(found.tensors), placement


def _find_record(name: str) -> Any:
    return REGISTRY[name]


@register_op_handler("copy_")
def _copy_in_place(found: OpCall) -> Any:
    """Handler of `x.copy_(y)`."""
    target, source = found.values[0], found.values[1]
    if not isinstance(source, torch.Tensor):
        return run_record(_find_record("_fill"), [target, source], True)
    return run_record(_find_record("_copy"), [target, source], True)


@register_op_handler("fill_", "zero_")
def _fill_in_place(found: OpCall) -> Any:
    """Handler of `x.fill_(1)`, `x.zero_()`."""
    value = found["value"] if found.op.name == "fill_" else 0
    target = found.values[0]
    if isinstance(value, torch.Tensor):
        if value.ndim:
            raise RuntimeError(
                f"fill_ only supports 0-dimension value tensor but got tensor with {value.ndim} dimensions."
            )
        return run_record(_find_record("_copy"), [target, value], True)
    if not value and any(p.is_partial() for p in target.placements):
        target._local_tensor.zero_()  # zero is the sum of zeros
        return target
    return run_record(_find_record("_fill"), [target, value], True)


@register_op_handler("_setitem")
def _handle_setitem(found: OpCall) -> Any:
    """Handler of `x[index] = value`: local if the index covers no sharded dimension."""
    target, index, value = found.values
    if any(i is not None and i is not Ellipsis and not isinstance(i, (int, slice)) for i in index):
        return NotImplemented
    place = target if index == (...,) else target[index]
    if place._is_copy or any(p.is_partial() for p in place.placements):
        return NotImplemented
    place.copy_(value) if isinstance(value, torch.Tensor) else place.fill_(value)
    return target


def _make_in_place_view_handler(name: str) -> Callable[[OpCall], Any]:
    def run(found: OpCall) -> Any:
        target = found.values[0]
        out = run_record(_find_record(name), found.values)
        if out._is_copy and not target._is_copy:
            raise RuntimeError(f"{name}_: in-place operations that require placement changes are not supported")
        return target._replace_local_tensor(out)

    return run


for _name in ("transpose", "squeeze", "unsqueeze", "t"):
    register_op_handler(f"{_name}_")(_make_in_place_view_handler(_name))
