"""Callables in graphs that check their arguments before they call the original."""

from __future__ import annotations

from typing import Any


class CheckedCallable:
    """A callable in a graph that checks its arguments and then calls `plain`. It compares equal to it and has its name,
    so that lookups by callable find it. Graphs loaded from files contain these, and every executor calls them.
    """

    plain: Any

    def check(self, args: tuple, kwargs: dict[str, Any]) -> None:
        """Raise an error for arguments that the graph of a file may not give."""
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        return other is self.plain or isinstance(other, CheckedCallable) and other.plain is self.plain

    def __hash__(self) -> int:
        return hash(self.plain)

    def __deepcopy__(self, memo: Any) -> Any:
        return self
