"""Ops that make a tensor like another, that draw, and that write."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torchlite as torch
from torchlite._dispatch import REGISTRY

from .._dispatch import Call, R, Way, called, computed, mapped, run_record, runs, ways_of
from .._dtensor_spec import DTensorSpec, TensorMeta
from .._parts import made, part_of
from .._random import drawing, drawn
from .._utils import compute_local_shape
from ..placement_types import Placement
from .common import cutters
from .pointwise import pointwise


def _lying(tensor: Any) -> list[Placement]:
    """How something like a tensor lies: whole where that is a sum."""
    return [R if p.is_partial() else p for p in tensor.placements]


def _given(found: Call) -> dict[str, Any]:
    """A call's values by name, without its first."""
    return {p.name: v for p, v in list(zip(found.op.params, found.values, strict=True))[1:]}


@runs("_zeros_like", "_ones_like", "_full_like", "_empty_like")
def _like(found: Call) -> Any:
    """As the other lies: each process makes its part."""
    tensor = found.values[0]
    given = _given(found)
    wants = given.pop("requires_grad", False)
    part = called(found.op, [tensor._local_tensor.detach(), *[given.get(p.name, False) for p in found.op.params[1:]]])
    places = _lying(tensor)
    if part.shape != compute_local_shape(tensor.shape, found.mesh, places):
        raise AssertionError("a part that is not as large as its placements say")
    meta = TensorMeta(tensor.shape, tensor._spec.stride, part.dtype)
    out = made(part, DTensorSpec(found.mesh, places, meta))
    return out.requires_grad_() if wants else out


@runs("_new_zeros", "_new_ones", "_new_full", "_new_empty", "_new_empty_strided", "_new_tensor")
def _new(found: Call) -> Any:
    """Of the same size as the other lies, of another one whole."""
    tensor = found.values[0]
    given = _given(found)
    wants = given.get("requires_grad", False)
    values = [tensor._local_tensor.detach(), *found.values[1:]]
    values = [False if p.name == "requires_grad" else v for p, v in zip(found.op.params, values, strict=True)]
    whole = called(found.op, [torch.empty(0, dtype=tensor.dtype, device=tensor.device), *values[1:]])
    places = _lying(tensor) if whole.shape == tensor.shape else [R] * found.mesh.ndim
    meta = TensorMeta(whole.shape, whole.stride(), whole.dtype)
    out = made(part_of(whole, found.mesh, places), DTensorSpec(found.mesh, places, meta))
    return out.requires_grad_() if wants else out


@runs("rand_like", "randn_like", "randint_like")
def _drawn_like(found: Call) -> Any:
    """Numbers that all processes agree on."""
    tensor = found.values[0]
    like = torch.empty(tensor.shape, dtype=tensor.dtype, device=tensor.device)
    values = [False if p.name == "requires_grad" else v for p, v in zip(found.op.params, found.values, strict=True)]
    out = drawn(lambda: called(found.op, [like, *values[1:]]), found.mesh, _lying(tensor))
    return out.requires_grad_() if _given(found).get("requires_grad", False) else out


@runs("uniform_", "normal_", "random_", "bernoulli_", "exponential_", "cauchy_", "geometric_", "log_normal_")
def _drawn_into(found: Call) -> Any:
    """As `rand_like`, written into the tensor."""
    tensor = found.values[0]
    if any(p.is_partial() for p in tensor.placements):
        raise RuntimeError(f"{found.op.name}: a sum over the processes cannot be drawn in place; redistribute it first")
    rest = mapped(lambda v: v.full_tensor() if hasattr(v, "full_tensor") else v, list(found.values[1:]))
    like = torch.empty(tensor.shape, dtype=tensor.dtype, device=tensor.device)
    out = drawn(lambda: called(found.op, [like, *rest]), found.mesh, tensor.placements)
    tensor._local_tensor.copy_(out._local_tensor)
    return tensor


@runs(
    "dropout", "alpha_dropout", "feature_alpha_dropout", "dropout1d", "dropout2d", "dropout3d", "_torch_dropout",
    "_torch_alpha_dropout", "_torch_feature_dropout", "_torch_feature_alpha_dropout", "_torch_dropout_",
    "_torch_alpha_dropout_", "_torch_feature_dropout_", "_torch_feature_alpha_dropout_", "native_dropout", "rrelu",
)  # fmt: skip
def _dropped(found: Call) -> Any:
    """What is drawn for an element is the same however the tensor lies: `a * x + b` for the op's own a and b."""
    tensor = found.values[0]
    names = [p.name for p in found.op.params]
    flag = next((found[n] for n in ("training", "train") if n in names), True)
    if not flag and found.op.name not in ("rrelu",):
        return tensor
    if found.op.name in ("native_dropout", "rrelu"):
        with drawing(found.mesh):
            return computed(found, [([R] * len(found.tensors), R)] * found.mesh.ndim)
    values = list(found.values[1:])
    in_place = found.op.name[-1] == "_" or ("inplace" in names and found["inplace"])
    if "inplace" in names:
        values[names.index("inplace") - 1] = False
    like = torch.ones(tensor.shape, dtype=tensor.dtype, device=tensor.device)
    op = found.op
    if op.name[-1] == "_":
        op = REGISTRY[op.name[:-1]]
    places = _lying(tensor)
    if "alpha" in op.name:  # a * 1 + b and a * 0 + b

        def both() -> torch.Tensor:
            state = torch.get_rng_state()
            one = called(op, [like, *values])
            torch.set_rng_state(state)
            return torch.stack([one, called(op, [torch.zeros_like(like), *values])], -1)

        pair = drawn(both, found.mesh, places)
        shift = pair[..., 1]
        out = tensor * (pair[..., 0] - shift) + shift
    else:
        out = tensor * drawn(lambda: called(op, [like, *values]), found.mesh, places)
    return tensor.copy_(out) if in_place else out


@runs(
    "bernoulli",
    "multinomial",
    "poisson",
    "binomial",
    "normal",
    "_standard_gamma",
    "_sample_dirichlet",
    "gumbel_softmax",
)
def _whole(found: Call) -> Any:
    """Drawn by whole tensors."""
    with drawing(found.mesh):
        ways = [([R] * len(found.tensors), R)] * found.mesh.ndim
        return computed(found, ways)


@ways_of("_fill")
def _fill(found: Call, number: int) -> Iterator[Way]:
    """A number everywhere."""
    tensor = found.tensors[0]
    rest: list[Placement] = [R] * (len(found.tensors) - 1)
    for cut in cutters(found, number):
        for dim in range(tensor.ndim):
            yield [cut(dim), *rest], cut(dim)


@ways_of("_copy")
def _copy(found: Call, number: int) -> Iterator[Way]:
    """As the target lies."""
    yield from pointwise(found, number)
    placement = found.tensors[0]._spec.placements[number]
    if placement.is_partial() and all(t.shape == found.tensors[0].shape for t in found.tensors):
        yield [placement] * len(found.tensors), placement


def _op(name: str) -> Any:
    return REGISTRY[name]


@runs("copy_")
def _copied(found: Call) -> Any:
    """`x.copy_(y)`."""
    target, source = found.values[0], found.values[1]
    if not isinstance(source, torch.Tensor):
        return run_record(_op("_fill"), [target, source], True)
    return run_record(_op("_copy"), [target, source], True)


@runs("fill_", "zero_")
def _filled(found: Call) -> Any:
    """`x.fill_(1)`, `x.zero_()`."""
    value = found["value"] if found.op.name == "fill_" else 0
    target = found.values[0]
    if isinstance(value, torch.Tensor):
        if value.ndim:
            raise RuntimeError(
                f"fill_ only supports 0-dimension value tensor but got tensor with {value.ndim} dimensions."
            )
        return run_record(_op("_copy"), [target, value], True)
    if not value and any(p.is_partial() for p in target.placements):
        target._local_tensor.zero_()  # summands of nothing
        return target
    return run_record(_op("_fill"), [target, value], True)


@runs("_setitem")
def _setitem(found: Call) -> Any:
    """`x[index] = value`: of a part, where the index leaves the dimensions that are cut as they are."""
    target, index, value = found.values
    if any(i is not None and i is not Ellipsis and not isinstance(i, (int, slice)) for i in index):
        return NotImplemented
    place = target if index == (...,) else target[index]
    if place._is_copy or any(p.is_partial() for p in place.placements):
        return NotImplemented
    place.copy_(value) if isinstance(value, torch.Tensor) else place.fill_(value)
    return target


def _becoming(name: str) -> Callable[[Call], Any]:
    def run(found: Call) -> Any:
        target = found.values[0]
        out = run_record(_op(name), found.values)
        if out._is_copy and not target._is_copy:
            raise RuntimeError(f"{name}_: in-place operations that require placement changes are not supported")
        return target._become(out)

    return run


for _name in ("transpose", "squeeze", "unsqueeze", "t"):
    runs(f"{_name}_")(_becoming(_name))
