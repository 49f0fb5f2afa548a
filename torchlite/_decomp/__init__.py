"""`torch._decomp`: registry of decompositions of ATen overloads."""

from __future__ import annotations

import collections
from collections.abc import Callable, Sequence
from typing import Any

from .._aten import OpOverload, OpOverloadPacket

__all__ = [
    "core_aten_decompositions", "decomposition_table", "get_decompositions", "global_decomposition_table",
    "meta_table", "pre_autograd_decomposition_table", "register_decomposition", "remove_decompositions",
]  # fmt: skip

# User decompositions by kind; "post_autograd" takes precedence over built-in ones.
global_decomposition_table: dict[str, dict[Any, Callable]] = collections.defaultdict(dict)
decomposition_table: dict[Any, Callable] = global_decomposition_table["post_autograd"]
pre_autograd_decomposition_table: dict[Any, Callable] = global_decomposition_table["pre_autograd"]
meta_table: dict[Any, Callable] = global_decomposition_table["meta"]


def _collect_overloads(op: Any) -> list[Any]:
    """Return the overloads of an op or packet. Raise TypeError for another object."""
    if isinstance(op, OpOverload):
        return [op]
    if isinstance(op, OpOverloadPacket):
        return [getattr(op, name) for name in op.overloads()]
    raise TypeError(f"Expected an OpOverload or an OpOverloadPacket, but got {type(op)}")


def register_decomposition(
    aten_op: Any, registry: dict[Any, Callable] | None = None, *, type: str = "post_autograd", unsafe: bool = False
) -> Callable[[Callable], Callable]:
    """Return a decorator that registers a function as decomposition of an overload, of all overloads of a packet, or of
    a list.

    Raise RuntimeError if one is registered, ValueError for a `type` other than "post_autograd", "pre_autograd" and
    "meta".

    >>> import torchlite as torch
    >>> from torchlite._decomp import get_decompositions, register_decomposition
    >>> table = {}
    >>> @register_decomposition(torch.ops.aten.exp2.default, table)
    ... def exp2(x):
    ...     return torch.exp(x * 0.6931471805599453)
    >>> table[torch.ops.aten.exp2.default](torch.tensor([1., 3.]))
    tensor([2., 8.])
    """
    if type not in ("post_autograd", "pre_autograd", "meta"):
        raise ValueError(f"unsupported type: {type}")
    target = global_decomposition_table[type] if registry is None else registry

    def register(function: Callable) -> Callable:
        for op in aten_op if isinstance(aten_op, (list, tuple)) else (aten_op,):
            for overload in _collect_overloads(op):
                if overload in target:
                    raise RuntimeError(f"duplicate registrations for {overload}")
                target[overload] = function
        return function

    return register


def get_decompositions(aten_ops: Sequence[Any], type: str = "post_autograd") -> dict[Any, Callable]:
    """Return the decompositions of ops that have one: registered ones, else built-in ones.

    >>> import torchlite as torch
    >>> from torchlite._decomp import get_decompositions
    >>> sorted(map(str, get_decompositions([torch.ops.aten.addcmul.default, torch.ops.aten.mm.default])))
    ['aten.addcmul.default']
    """
    from .._aten.decompositions import find_decomposition

    registered = global_decomposition_table[type]
    found = {}
    for op in aten_ops:
        for overload in _collect_overloads(op):
            own = find_decomposition(overload) if hasattr(overload, "entry") and not overload.entry.is_script else None
            function = registered.get(overload) or own
            if function is not None:
                found[overload] = function
    return found


def remove_decompositions(decompositions: dict[Any, Callable], aten_ops: Sequence[Any]) -> None:
    """Remove ops from a decomposition table."""
    for op in aten_ops:
        for overload in _collect_overloads(op):
            decompositions.pop(overload, None)


def core_aten_decompositions() -> dict[Any, Callable]:
    """Return the decompositions of all ops that are not core ATen."""
    from .._aten.decompositions import all_decompositions

    return {**all_decompositions(), **decomposition_table}
