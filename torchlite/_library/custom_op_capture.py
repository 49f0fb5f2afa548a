"""Kernels of custom ops in calls that `torch.compile` captures: each is one step, whatever it does inside."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .._dispatch import call
from .._dispatch.kernel_recorder import call_recorded, current_recorder


def as_a_step(name: str, kernel: Callable, args: tuple, kwargs: dict) -> Any:
    """A kernel's call, which a recorder of this thread takes for one step: a replay calls the kernel."""
    recorder = current_recorder()
    if recorder is None:
        return kernel(*args, **kwargs)
    table = recorder.table
    raws = _tree_map(lambda tensor: tensor._tl_array, call.Tensor, [*args, *kwargs.values()])
    result = call_recorded(name, _array_kernel(kernel, table, len(args), tuple(kwargs)), *raws)
    return _tree_map(lambda raw: call.wrap(table, raw), table.array, result)


@functools.lru_cache(1024)
def _array_kernel(kernel: Callable, table: Any, count: int, names: tuple[str, ...]) -> Callable:
    """A kernel called with arrays in the places of tensors; one object for a kernel, so that steps can be compared."""

    def run(*raws: Any) -> Any:
        given = _tree_map(lambda raw: call.wrap(table, raw), table.array, list(raws))
        result = kernel(*given[:count], **dict(zip(names, given[count:], strict=True)))
        return _tree_map(lambda tensor: tensor._tl_array, call.Tensor, result)

    return run


def _tree_map(function: Callable, kind: type, value: Any) -> Any:
    """A value, or lists and tuples of them, with those of a class changed."""
    if isinstance(value, kind):
        return function(value)
    if value.__class__ in (list, tuple):
        return value.__class__([_tree_map(function, kind, item) for item in value])
    return value
