"""Sharding rules of elementwise ops: any dimension may be sharded, in all arguments."""

from __future__ import annotations

from collections.abc import Iterator

from torchlite._dispatch import REGISTRY
from torchlite._dispatch.op_record import POINTWISE

from .._dispatch import R
from .._op_strategy import SHARDING_RULES, OpCall, ShardingRule, Strategy, register_op_strategy
from .rule_helpers import broadcast_placements, partial_kinds, shard_kinds


def pointwise(found: OpCall, number: int) -> Iterator[Strategy]:
    """Shard each dimension."""
    shapes = [tuple(t.shape) for t in found.tensors]
    for cut in shard_kinds(found, number):
        yield from broadcast_placements(shapes, cut)


# For each the arguments that may be partial, jointly, since the op is linear in them.
_LINEAR = {
    "neg": ("input",), "add": ("input", "other"), "sub": ("input", "other"), "positive": ("input",),
    "conj": ("input",), "conj_physical": ("input",), "imag": ("input",), "real": ("input",),
    "_choose": ("input", "other"),
}  # fmt: skip


def _linear_pointwise(found: OpCall, number: int) -> Iterator[Strategy]:
    """Also partial."""
    yield from pointwise(found, number)
    names = _LINEAR[found.op.name]
    if not all(any(found[name] is t for t in found.tensors) for name in names):
        return  # a number added to a partial tensor would be added on every process
    ids = {id(found[name]) for name in names}
    for partial in partial_kinds(found, number):
        yield [partial if id(t) in ids else R for t in found.tensors], partial


def _product_pointwise(found: OpCall, number: int) -> Iterator[Strategy]:
    """A partial tensor times, or divided by, a replicated one."""
    yield from pointwise(found, number)
    either = found.op.name == "mul"
    for partial in partial_kinds(found, number):
        for i, tensor in enumerate(found.tensors):
            if (either or tensor is found["input"]) and not (either and found["input"] is found["other"]):
                yield [partial if j == i else R for j in range(len(found.tensors))], partial


for _name, _record in REGISTRY.items():
    if _record.tags & POINTWISE and not _record.is_implicit:
        SHARDING_RULES[_name] = ShardingRule(pointwise)
for _name in _LINEAR:
    if _name in REGISTRY:
        SHARDING_RULES[_name] = ShardingRule(_linear_pointwise)
SHARDING_RULES["mul"] = SHARDING_RULES["div"] = ShardingRule(_product_pointwise)


@register_op_strategy(
    "_bce", "_random_fill", "_masked_fill", "_masked_fill_tensor", "complex", "polar", "angle", "_ldexp", "frexp",
    "_prelu", "where",
)  # fmt: skip
def _nonlinear_pointwise(found: OpCall, number: int) -> Iterator[Strategy]:
    yield from pointwise(found, number)


@register_op_strategy("to", "clone", "contiguous", "alias", "_cow_clone", "detach")
def _copy_strategies(found: OpCall, number: int) -> Iterator[Strategy]:
    """Copies and casts: unchanged placements. A cast that rounds is not linear."""
    for cut in shard_kinds(found, number):
        yield from broadcast_placements([tuple(found.tensors[0].shape)], cut)
    if found.op.name != "to" or found["dtype"].category >= 2:
        for partial in partial_kinds(found, number):
            yield [partial], partial
