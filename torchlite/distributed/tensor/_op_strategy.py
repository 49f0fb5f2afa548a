"""Sharding rules of ops: their registration, and the call that they query."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torchlite as torch
from torchlite._dispatch.op_record import Op

from .placement_types import Placement

# A strategy along one mesh dimension: a placement for each DTensor argument, and one for all results or a list with one
# for each.
Strategy = tuple[Sequence[Placement], Any]


class OpCall:
    """An op's bound arguments, as rules query them. ways: strategies chosen so far, for the mesh's first dimensions."""

    def __init__(self, op: Op, values: list, mesh: Any, writes: bool):
        self.op, self.values, self.mesh, self.writes = op, values, mesh, writes
        self.ways: list[Strategy] = []
        self.tensors: list[Any] = [v for v in flatten_values(values) if is_dtensor(v)]

    def __getitem__(self, name: str) -> Any:
        """Return the value of a parameter."""
        for p, value in zip(self.op.params, self.values, strict=True):
            if p.name == name:
                return value
        raise KeyError(name)

    def with_values(self, **changes: Any) -> list:
        """Return the arguments with some replaced."""
        return [changes.get(p.name, v) for p, v in zip(self.op.params, self.values, strict=True)]

    @property
    def wants_gradient(self) -> bool:
        """True if the op is recorded by autograd."""
        return torch.is_grad_enabled() and any(t.requires_grad for t in self.tensors)


class ShardingRule:
    """Sharding rule of an op.

    ways: returns, for an OpCall and a mesh dimension, the strategies along it. localized: returns, for an OpCall, the
    results' specs and the arguments' placements, the arguments of the local op, in which global sizes are replaced.
    """

    def __init__(self, ways: Callable[[OpCall, int], Iterator[Strategy]], localized: Callable | None = None):
        self.ways, self.localized = ways, localized


# By record name: its rule; or a handler of the op, which may defer to the rule by NotImplemented.
SHARDING_RULES: dict[str, ShardingRule] = {}


CUSTOM_OP_HANDLERS: dict[str, Callable[[OpCall], Any]] = {}


def register_op_strategy(*names: str, localized: Callable | None = None) -> Callable:
    """Register the decorated function as the strategies of ops."""

    def declare(function: Callable) -> Callable:
        for name in names:
            SHARDING_RULES[name] = ShardingRule(function, localized)
        return function

    return declare


def register_op_handler(*names: str) -> Callable:
    """Register the decorated function, which gets an OpCall, as the handler of ops."""

    def declare(function: Callable) -> Callable:
        for name in names:
            CUSTOM_OP_HANDLERS[name] = function
        return function

    return declare


def flatten_values(values: Any) -> Iterator[Any]:
    """Yield values, and those in lists among them."""
    for value in values:
        if value.__class__ in (list, tuple):
            yield from flatten_values(value)
        else:
            yield value


def map_values(function: Callable[[Any], Any], value: Any) -> Any:
    """Apply a function to a value, or to each of a list."""
    if value.__class__ in (list, tuple):
        return value.__class__([map_values(function, item) for item in value])
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)([map_values(function, item) for item in value])
    return function(value)


def is_dtensor(value: Any) -> bool:
    """True for a DTensor."""
    return getattr(value.__class__, "_takes_records", False)
