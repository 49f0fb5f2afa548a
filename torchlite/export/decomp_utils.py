"""CustomDecompTable: the decomposition table for `run_decompositions`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchlite._decomp import core_aten_decompositions

__all__ = ["CustomDecompTable"]


class CustomDecompTable(dict):
    """Decompositions by overload, initially those to core ATen. Remove an op to keep it; assign a function to decompose
    it.

    >>> import torchlite as torch
    >>> table = torch.export.default_decompositions()
    >>> del table[torch.ops.aten.linear.default]
    >>> program = torch.export.export(torch.nn.Linear(3, 2), (torch.ones(4, 3),)).run_decompositions(table)
    >>> [str(node.target) for node in program.graph.nodes if node.op == "call_function"]
    ['aten.linear.default']
    """

    def __init__(self) -> None:
        super().__init__(core_aten_decompositions())

    def copy(self) -> CustomDecompTable:
        """Return a copy."""
        made = type(self)()
        made.clear()
        made.update(self)
        return made

    def materialize(self) -> dict[Any, Callable]:
        """Return a plain dictionary."""
        return dict(self)
