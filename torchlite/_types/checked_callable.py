"""Callables of graphs that check their arguments, each in the place of a plain one."""

from __future__ import annotations

from typing import Any


class CheckedCallable:
    """A callable in a graph that stands for another one, `plain`: it checks its arguments, and does the same then. It
    compares like the plain one and has its name, so that tables by callables know it. Graphs out of files have such,
    and every way to run a graph calls them.
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
