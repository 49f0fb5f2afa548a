"""`register_sharding`: user-defined sharding strategies of ops."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from torchlite._aten.overload_impl import record_for_library_name

from .._op_strategy import SHARDING_RULES, OpCall, ShardingRule, Strategy, is_dtensor

__all__ = ["register_sharding"]


def register_sharding(op: Any) -> Callable:
    """Registers the decorated function as the sharding strategies of ops.

    The function gets the op's arguments, with specifications in place of DTensors. It returns pairs of lists:
    placements of
    the results, and of the arguments, with ``None`` for one that is not a tensor.

    Args:
        op: An ATen overload, or a list of them.

    Returns:
        A decorator.

    Raises:
        NotImplementedError: The library computes the op from others. Raised by the decorator.

    Example:
        >>> from torchlite.distributed.tensor import Replicate, Shard
        >>> from torchlite.distributed.tensor.experimental import register_sharding
        >>> @register_sharding(torch.ops.aten.erfinv.default)
        ... def rows(x):
        ...     return [([Replicate()], [Replicate()]), ([Shard(0)], [Shard(0)])]
    """
    overloads = op if isinstance(op, list) else [op]

    def declare(function: Callable) -> Callable:
        for overload in overloads:
            record = record_for_library_name(overload._opname)
            if record is None or record.is_implicit:
                raise NotImplementedError(f"register_sharding: {overload} is no op of its own in torchlite")
            before = SHARDING_RULES.get(record.name)
            SHARDING_RULES[record.name] = ShardingRule(
                _make_strategy_function(function), before.localized if before is not None else None
            )
        return function

    return declare


def _make_strategy_function(function: Callable) -> Callable[[OpCall, int], Iterator[Strategy]]:
    def list_strategies(found: OpCall, number: int) -> Iterator[Strategy]:
        values = list(found.values)
        while values and values[-1] is None:
            values.pop()
        given = [v._spec if is_dtensor(v) else v for v in values]
        for outs, ins in function(*given):
            wanted = [p for p in ins if p is not None][: len(found.tensors)]
            yield wanted, outs[0] if len(outs) == 1 else list(outs)

    return list_strategies
