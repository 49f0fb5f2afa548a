"""A graph's nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, Union

from ._later import later

__all__ = ["Node", "Target"]

Target: TypeAlias = Union[Callable[..., Any], str]
Argument: TypeAlias = Any
BaseArgumentTypes: TypeAlias = Any


class Node:
    """A node of a graph: there are no graphs yet."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise later("Node")


def has_side_effect(fn: Any) -> Any:
    """Mark a function that a graph keeps though nothing uses its result: it is returned."""
    return fn
