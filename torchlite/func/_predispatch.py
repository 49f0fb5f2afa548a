"""`vmap` primitives in graphs of exported programs: enter and exit levels, add and remove batch dimensions.

Levels of a program are numbered from 1.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from .._types.package_name import package_name

__all__: list[str] = []


class _VmapLevels(threading.local):
    def __init__(self) -> None:
        self.levels: list[Any] = []


_vmap_levels = _VmapLevels()


def _find_level(number: int) -> Any:
    if not 1 <= number <= len(_vmap_levels.levels):
        raise RuntimeError(f"the program has no level {number} of vmap here")
    return _vmap_levels.levels[number - 1]


def _vmap_increment_nesting(batch_size: int, randomness: str) -> int:
    """Enter a `vmap` level of this batch size; return its number."""
    from torchlite.func._vmap_interceptor import VmapLevel

    level = VmapLevel(int(batch_size), randomness)
    level.__enter__()
    _vmap_levels.levels = [*_vmap_levels.levels, level]
    return len(_vmap_levels.levels)


def _vmap_decrement_nesting() -> int:
    """Exit the innermost level and return its number. Raise RuntimeError if there is none."""
    _find_level(len(_vmap_levels.levels))
    *_vmap_levels.levels, level = _vmap_levels.levels
    level.__exit__(None, None, None)
    return len(_vmap_levels.levels) + 1


def _add_batch_dim(self: Any, batch_dim: int, level: int) -> Any:
    """Return the tensor with one dimension hidden as the level's batch dimension."""
    from torchlite.func._batched_tensor import hide_batch_dim

    return hide_batch_dim(self, _find_level(level), batch_dim)


def _remove_batch_dim(self: Any, level: int, batch_size: int, out_dim: int) -> Any:
    """Return the tensor with the level's batch dimension restored."""
    from torchlite.func._vmap import _maybe_remove_batch_dim

    return _maybe_remove_batch_dim("a program's function", self, _find_level(level), batch_size, out_dim)


def lazy_load_decompositions() -> None:
    """Do nothing: batching rules load on first use."""


@contextlib.contextmanager
def end_open_levels() -> Iterator[None]:
    """Exit all levels entered inside the block, also after an exception."""
    before = _vmap_levels.levels
    try:
        yield
    finally:
        while len(_vmap_levels.levels) > len(before):
            _vmap_decrement_nesting()
        _vmap_levels.levels = before


@contextlib.contextmanager
def restart_level_numbers() -> Iterator[None]:
    """Like `end_open_levels`, with levels numbered from 1 inside."""
    before, _vmap_levels.levels = _vmap_levels.levels, []
    try:
        with end_open_levels():
            yield
    finally:
        _vmap_levels.levels = before


def end_levels_after(forward: Callable, nodes: Iterable[Any], around: Callable = end_open_levels) -> Callable:
    """Return a graph's function; if the graph enters levels, they are exited after it."""
    if not any(node.target is _vmap_increment_nesting for node in nodes):
        return forward

    @functools.wraps(forward)
    def run_and_end_levels(*args: Any, **kwargs: Any) -> Any:
        with around():
            return forward(*args, **kwargs)

    return run_and_end_levels


# Graphs name these functions by PyTorch's module.
for _function in (
    _add_batch_dim, _remove_batch_dim, _vmap_decrement_nesting, _vmap_increment_nesting, lazy_load_decompositions
):  # fmt: skip
    _function.__module__ = f"{package_name()}._functorch.predispatch"
