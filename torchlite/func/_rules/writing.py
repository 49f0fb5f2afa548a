"""Writes into batches in place."""

from __future__ import annotations

from typing import Any

from ..._dispatch import REGISTRY, call, function_for
from ..._dispatch.outputs import check_fits
from ..._dispatch.shapes import broadcast
from ..._tensor import Tensor
from .._batched import in_front
from .common import resumed, rule
from .indexing import fitting, write_item

# What ops in place do that do not compute their result first: `(level, target, *the op's further arguments)`.
WRITES: dict[str, Any] = {"_setitem": write_item}


def _copied(level, target, source) -> None:
    part = in_front(target)
    if source.shape != target.shape:
        check_fits(target, broadcast(tuple(source.shape), tuple(target.shape)))
    call.in_place(REGISTRY["_copy"], (part, fitting(level, source, part)), {})


def _filled(level, target, value) -> None:
    if isinstance(value, Tensor):
        _copied(level, target, value)
    else:
        call.in_place(REGISTRY["_fill"], (in_front(target), value), {})


WRITES["_copy"], WRITES["_fill"] = _copied, _filled


@rule("copy_", kind="writing")
def _copy(level, op, values):
    target, source = values[:2]
    with resumed(level):
        return call.in_place(REGISTRY["_copy" if isinstance(source, Tensor) else "_fill"], (target, source), {})


@rule("fill_", "zero_", kind="writing")
def _fill(level, op, values):
    with resumed(level):
        return call.in_place(REGISTRY["_fill"], (values[0], values[1] if op.name == "fill_" else 0), {})


@rule("transpose_", "swapaxes_", "swapdims_", "squeeze_", "unsqueeze_", "t_", "as_strided_", kind="writing")
def _reshaped(level, op, values):
    """What changes how a tensor looks, and not its elements."""
    target = values[0]
    name = "transpose" if op.name.startswith("swap") else op.name[:-1]
    with resumed(level):
        made = function_for(REGISTRY[name])(*values)
    target._value, target._dim = made._value, made._dim
    return target
