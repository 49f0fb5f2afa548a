"""Captures kernels of custom ops under `torch.compile` as single program steps."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .._dispatch import call
from .._dispatch.kernel_recorder import call_recorded, current_recorder


def as_a_step(name: str, kernel: Callable, args: tuple, kwargs: dict) -> Any:
    """Call a kernel as one step of the current recorder; replays call the kernel."""
    recorder = current_recorder()
    if recorder is None:
        return kernel(*args, **kwargs)
    table = recorder.table
    raws = _tree_map(lambda tensor: tensor._tl_array, call.Tensor, [*args, *kwargs.values()])
    result = call_recorded(name, _make_array_kernel(kernel, table, len(args), tuple(kwargs)), *raws)
    return _tree_map(lambda raw: call.wrap_array(table, raw), table.array, result)


@functools.lru_cache(1024)
def _make_array_kernel(kernel: Callable, table: Any, count: int, names: tuple[str, ...]) -> Callable:
    """Return a kernel that takes arrays for tensors. It is one object per kernel, so steps can be compared."""

    def run(*raws: Any) -> Any:
        given = _tree_map(lambda raw: call.wrap_array(table, raw), table.array, list(raws))
        result = kernel(*given[:count], **dict(zip(names, given[count:], strict=True)))
        return _tree_map(lambda tensor: tensor._tl_array, call.Tensor, result)

    return run


def _tree_map(function: Callable, kind: type, value: Any) -> Any:
    """Apply a function to the values of a class in nested lists and tuples."""
    if isinstance(value, kind):
        return function(value)
    if value.__class__ in (list, tuple):
        return value.__class__([_tree_map(function, kind, item) for item in value])
    return value
