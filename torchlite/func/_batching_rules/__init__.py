"""Batching rules of `vmap`: lookup by op name or record class (`find_rule`)."""

from __future__ import annotations

from typing import Any

from ..._dispatch import POINTWISE, RANDOM, Op

# The modules register their rules in RULES.
from . import dim_ops, gather_scatter, in_place, indexing, linalg, matmul, nn_layers, random_ops, views
from .random_ops import ALWAYS as ALWAYS
from .rule_helpers import RULES, decomposed_rule, elementwise_rule, loop_fallback
from .views import LOOPS as LOOPS

_found: dict[Op, Any] = {}


def find_rule(op: Op):
    """Return the batching rule of an op, None for an op that decomposes."""
    try:
        return _found[op]
    except KeyError:
        found = _found[op] = _find_rule(op)
        return found


def rule_kind(op: Op) -> str:
    """Return the class of an op's rule as a short name."""
    rule = _find_rule(op)
    if rule is None:
        return "composite"
    if op.tags & RANDOM:
        return "random"
    if rule is loop_fallback and not op.tensor_params:
        return "creation"
    return getattr(rule, "kind", None) or rule.__name__


def _find_rule(op: Op):
    if op.name in RULES:
        return RULES[op.name]
    if op.is_implicit:
        return None
    if op.tags & POINTWISE:
        return elementwise_rule
    return loop_fallback if op.composite is None else decomposed_rule
