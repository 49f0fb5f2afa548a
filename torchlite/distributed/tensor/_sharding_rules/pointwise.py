"""Ops on elements: any dimension may be cut, in all arguments alike."""

from __future__ import annotations

from collections.abc import Iterator

from torchlite._dispatch import REGISTRY
from torchlite._dispatch.op_record import POINTWISE

from .._dispatch import SHARDING_RULES, OpCall, R, ShardingRule, Strategy, register_op_strategy
from .rule_helpers import broadcast_placements, partial_kinds, shard_kinds


def pointwise(found: OpCall, number: int) -> Iterator[Strategy]:
    """Each dimension cut."""
    shapes = [tuple(t.shape) for t in found.tensors]
    for cut in shard_kinds(found, number):
        yield from broadcast_placements(shapes, cut)


# Of each what may be a summand, where the op is linear in it: all of these together.
_LINEAR = {
    "neg": ("input",), "add": ("input", "other"), "sub": ("input", "other"), "positive": ("input",),
    "conj": ("input",), "conj_physical": ("input",), "imag": ("input",), "real": ("input",),
    "_choose": ("input", "other"),
}  # fmt: skip


def _linear(found: OpCall, number: int) -> Iterator[Strategy]:
    """Sums too."""
    yield from pointwise(found, number)
    names = _LINEAR[found.op.name]
    if not all(any(found[name] is t for t in found.tensors) for name in names):
        return  # a number beside a sum would be added on every process
    ids = {id(found[name]) for name in names}
    for partial in partial_kinds(found, number):
        yield [partial if id(t) in ids else R for t in found.tensors], partial


def _products(found: OpCall, number: int) -> Iterator[Strategy]:
    """A sum times, or through, what is the same on all processes."""
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
        SHARDING_RULES[_name] = ShardingRule(_linear)
SHARDING_RULES["mul"] = SHARDING_RULES["div"] = ShardingRule(_products)


@register_op_strategy("_bce", "_random_fill", "_masked_fill", "_masked_fill_tensor", "complex", "polar", "angle", "_ldexp", "frexp",
         "_prelu", "where")  # fmt: skip
def _on_elements(found: OpCall, number: int) -> Iterator[Strategy]:
    yield from pointwise(found, number)


@register_op_strategy("to", "clone", "contiguous", "alias", "_cow_clone", "detach")
def _copies(found: OpCall, number: int) -> Iterator[Strategy]:
    """Copies and casts: as it lies. Casting a sum that is rounded is not the sum of the casts."""
    for cut in shard_kinds(found, number):
        yield from broadcast_placements([tuple(found.tensors[0].shape)], cut)
    if found.op.name != "to" or found["dtype"].category >= 2:
        for partial in partial_kinds(found, number):
            yield [partial], partial
