"""Graphs of calls."""

from __future__ import annotations

from typing import Any

from ._later import later

__all__ = ["CodeGen", "Graph"]


class CodeGen:
    """Writes a graph as Python."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise later("CodeGen")


class Graph:
    """A graph of calls: there is none yet."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise later("Graph")
