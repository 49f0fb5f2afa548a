"""The size of a ragged dimension: a number without a value, equal to itself alone."""

from __future__ import annotations

import itertools
from typing import Any

from torchlite._symbolic_shapes import Expr, SymInt, SymNode
from torchlite.utils.weak import WeakIdKeyDictionary

__all__ = ["NestedInt", "RaggedSizes", "ragged_sizes_of"]

_NUMBERS = itertools.count(1)
# The int below the object: so large that no tensor of such a size can be made.
_LARGEST = (1 << 61) - 1


class NestedInt(SymInt):
    """The size of a ragged dimension, printed as ``j1``. Two are equal if their tensors share offsets."""

    __slots__ = ()

    @classmethod
    def new(cls) -> Any:
        """A size that is equal to no other."""
        number = next(_NUMBERS)
        made: Any = int.__new__(cls, _LARGEST - number)
        made.node = SymNode(Expr.symbol(f"j{number}"), None)
        return made

    __hash__ = int.__hash__

    def __int__(self) -> int:
        raise RuntimeError(f"{self!r} is the size of a ragged dimension, which differs from part to part: it is no int")

    __index__ = __int__

    def __bool__(self) -> bool:
        return True

    def __ge__(self, other: Any) -> bool:
        if isinstance(other, NestedInt) and self == other or not isinstance(other, SymInt) and other <= 2:
            return True
        raise ValueError("ge: relation is indeterminate")

    def __gt__(self, other: Any) -> bool:
        return False if isinstance(other, NestedInt) and self == other else self >= other + 1

    def __lt__(self, other: Any) -> bool:
        return not self >= other

    def __le__(self, other: Any) -> bool:
        return not self > other

    def __reduce__(self) -> Any:
        return NestedInt.new, ()


class RaggedSizes:
    """What tensors with the same offsets (and lengths) share: the ragged size and facts that are computed once."""

    def __init__(self) -> None:
        self.size = NestedInt.new()
        self.parts: list[tuple[int, int]] | None = None  # start and length of each
        self.rows: Any = None  # for each row of the values its part and its place in it


_KNOWN: Any = WeakIdKeyDictionary()  # by the tensor of lengths, or of offsets


def ragged_sizes_of(offsets: Any, lengths: Any) -> RaggedSizes:
    """The shared facts of a tensor of offsets, and of lengths if there are holes."""
    key = offsets if lengths is None else lengths
    found = _KNOWN.get(key)
    return _KNOWN.setdefault(key, RaggedSizes()) if found is None else found
