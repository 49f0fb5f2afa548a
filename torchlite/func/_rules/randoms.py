"""Random ops: what they draw for a batch is the user's choice."""

from __future__ import annotations

from typing import Any

from ..._dispatch import F
from .common import batch, by_elements, resumed, run

_ERROR = (
    "vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' "
    "randomness flags on vmap or perform the randomness operation out of vmap"
)
_SAME = (
    "Vmap does not currently support same randomness with a batched tensor input. Please file an issue with your "
    "workload, or use randomness 'different'."
)


def check_allowed(level) -> None:
    """RuntimeError where random ops are not allowed."""
    if level.randomness == "error":
        raise RuntimeError(_ERROR)


def drawn(level, op, values: list, batching: Any):
    """A random op under `vmap`: once for all examples, or for each."""
    if op.name in ("_drawn_by", "_drawn_over"):
        return by_elements(level, op, values) if any(map(level.has, values)) else run(op, values)
    check_allowed(level)
    tensors = [v for p, v in zip(op.params, values, strict=True) if p.is_tensor]
    if not tensors:
        if level.randomness == "same":
            return run(op, values)
        return level.wrap(run(op, [(level.size, *values[0]), *values[1:]]))
    if level.randomness == "different":
        return level.wrap(run(op, [batch(level, v) for v in values]))
    if not any(level.has(v) for v in values):
        return run(op, values)
    if op.name == "_dropout":
        x, p, engine = values
        kept = F.random_keep(tuple(x.shape), x.dtype, p, engine)
        with resumed(level):
            return F.mul(x, kept)
    raise RuntimeError(_SAME)
