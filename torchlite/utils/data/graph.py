"""The graph of a chain of DataPipes: which pipe reads which."""

from __future__ import annotations

import types
from collections.abc import Iterable
from typing import Any

import torchlite as torch

from .datapipes.datapipe import IterDataPipe, MapDataPipe

__all__ = ["traverse", "traverse_dps"]

_PIPES = (IterDataPipe, MapDataPipe)


def _pipes_of(pipe: Any, only_datapipe: bool) -> list[Any]:
    """The pipes in a pipe's state, without those that they read."""
    state = pipe.__getstate__()
    found: dict[int, Any] = {}
    seen: set[int] = {id(pipe)}

    def search(value: Any, depth: int) -> None:
        if isinstance(value, _PIPES):
            found.setdefault(id(value), value)
        elif id(value) not in seen and depth < 10:
            seen.add(id(value))
            for part in _parts(value):
                search(part, depth + 1)

    for value in state.values() if isinstance(state, dict) else (state,):
        if isinstance(value, _PIPES) or not only_datapipe:
            search(value, 0)
    return list(found.values())


def _parts(value: Any) -> Iterable[Any]:
    """What an object consists of: the items of a container, the attributes of an object."""
    if isinstance(value, dict):
        return [*value, *value.values()]
    if isinstance(value, (list, tuple, set, frozenset)):
        return value
    if isinstance(value, (type, types.ModuleType, types.FunctionType, torch.Tensor)):
        return ()
    return getattr(value, "__dict__", {}).values()


def traverse_dps(datapipe: Any) -> dict[int, tuple[Any, dict]]:
    """Returns the graph of a pipe and of those that it reads.

    Args:
        datapipe: The pipe.

    Returns:
        A dictionary from a pipe's ``id`` to the pipe and the dictionary of the pipes that it reads.

    Raises:
        RuntimeError: The object is no pipe.

    Example:
        >>> from torchlite.utils.data.datapipes.iter import IterableWrapper
        >>> from torchlite.utils.data.graph import traverse_dps
        >>> pipe = IterableWrapper([1, 2]).batch(2)
        >>> traverse_dps(pipe)[id(pipe)][0] is pipe
        True
    """
    return _traverse(datapipe, False, ())


def traverse(datapipe: Any, only_datapipe: bool | None = None) -> dict[int, tuple[Any, dict]]:
    """Returns the graph of a pipe and of those that it reads: `traverse_dps`.

    Args:
        datapipe: The pipe.
        only_datapipe: Whether only attributes that are pipes are searched, and no lists and dictionaries of them.
            Default: ``False``.

    Returns:
        A dictionary from a pipe's ``id`` to the pipe and the dictionary of the pipes that it reads.

    Example:
        >>> from torchlite.utils.data.datapipes.iter import IterableWrapper
        >>> from torchlite.utils.data.graph import traverse
        >>> pipe = IterableWrapper([1, 2])
        >>> traverse(pipe, only_datapipe=True) == {id(pipe): (pipe, {})}
        True
    """
    return _traverse(datapipe, bool(only_datapipe), ())


def _traverse(datapipe: Any, only_datapipe: bool, above: tuple[int, ...]) -> dict[int, tuple[Any, dict]]:
    if not isinstance(datapipe, _PIPES):
        raise RuntimeError(f"Expected `IterDataPipe` or `MapDataPipe`, but {type(datapipe)} is found")
    if id(datapipe) in above:
        return {}
    inner: dict[int, tuple[Any, dict]] = {}
    for pipe in _pipes_of(datapipe, only_datapipe):
        inner |= _traverse(pipe, only_datapipe, (*above, id(datapipe)))
    return {id(datapipe): (datapipe, inner)}
