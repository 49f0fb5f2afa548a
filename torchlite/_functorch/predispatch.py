"""The calls that `vmap` leaves in graphs of exported programs: its levels begin and end, and tensors enter and leave
them. Levels are counted from 1 within a program.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

__all__: list[str] = []


class _Begun(threading.local):
    def __init__(self) -> None:
        self.levels: list[Any] = []


_begun = _Begun()


def _level(number: int) -> Any:
    if not 1 <= number <= len(_begun.levels):
        raise RuntimeError(f"the program has no level {number} of vmap here")
    return _begun.levels[number - 1]


def _vmap_increment_nesting(batch_size: int, randomness: str) -> int:
    """Begin a level: what follows is for each of so many examples. Its number."""
    from torchlite.func._levels import Level

    level = Level(int(batch_size), randomness)
    level.__enter__()
    _begun.levels = [*_begun.levels, level]
    return len(_begun.levels)


def _vmap_decrement_nesting() -> int:
    """End the level that began last. Its number; RuntimeError where there is none."""
    _level(len(_begun.levels))
    *_begun.levels, level = _begun.levels
    level.__exit__(None, None, None)
    return len(_begun.levels) + 1


def _add_batch_dim(self: Any, batch_dim: int, level: int) -> Any:
    """A batch as one example of it."""
    from torchlite.func._batched import hidden

    return hidden(self, _level(level), batch_dim)


def _remove_batch_dim(self: Any, level: int, batch_size: int, out_dim: int) -> Any:
    """An example as the batch that it stands for."""
    from torchlite.func._vmap import _maybe_remove_batch_dim

    return _maybe_remove_batch_dim("a program's function", self, _level(level), batch_size, out_dim)


def lazy_load_decompositions() -> None:
    """Nothing is loaded: rules are found when they are first used."""


@contextlib.contextmanager
def ended() -> Iterator[None]:
    """Levels that begin within it have ended after it, also where something is raised."""
    before = _begun.levels
    try:
        yield
    finally:
        while len(_begun.levels) > len(before):
            _vmap_decrement_nesting()
        _begun.levels = before


@contextlib.contextmanager
def of_program() -> Iterator[None]:
    """As `ended`; levels within it are counted from 1."""
    before, _begun.levels = _begun.levels, []
    try:
        with ended():
            yield
    finally:
        _begun.levels = before


def ending(forward: Callable, nodes: Iterable[Any], around: Callable = ended) -> Callable:
    """A graph's function; where the graph begins levels, one after which these have ended."""
    if not any(node.target is _vmap_increment_nesting for node in nodes):
        return forward

    @functools.wraps(forward)
    def run(*args: Any, **kwargs: Any) -> Any:
        with around():
            return forward(*args, **kwargs)

    return run
