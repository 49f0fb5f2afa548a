"""`OrderedSet`: a set that keeps the order in which elements were added."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableSet, Reversible
from typing import Any, TypeVar

T = TypeVar("T")


class OrderedSet(MutableSet[T], Reversible[T]):
    """A set whose elements come in the order in which they were added.

    >>> from torchlite.utils._ordered_set import OrderedSet
    >>> found = OrderedSet("hello") | {"a"}
    >>> list(found), OrderedSet("ab") == {"b", "a"}
    (['h', 'e', 'l', 'o', 'a'], True)
    """

    __slots__ = ("_dict",)

    def __init__(self, iterable: Iterable[T] | None = None) -> None:
        self._dict: dict[T, None] = dict.fromkeys(iterable or ())

    def __contains__(self, elem: object) -> bool:
        return elem in self._dict

    def __iter__(self) -> Iterator[T]:
        return iter(self._dict)

    def __reversed__(self) -> Iterator[T]:
        return reversed(self._dict)

    def __len__(self) -> int:
        return len(self._dict)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({list(self)})"

    def add(self, elem: T) -> None:
        """Add an element at the end, unless it is there."""
        self._dict[elem] = None

    def discard(self, elem: T) -> None:
        """Remove an element if it is there."""
        self._dict.pop(elem, None)

    def pop(self) -> T:
        """Remove the last element and return it. KeyError if there is none."""
        if not self._dict:
            raise KeyError("pop from an empty set")
        return self._dict.popitem()[0]

    def copy(self) -> OrderedSet[T]:
        """Return another set of the same elements."""
        return OrderedSet(self)

    def update(self, *others: Iterable[T]) -> None:
        """Add the elements of others."""
        for other in others:
            self._dict.update(dict.fromkeys(other))

    def difference_update(self, *others: Iterable[T]) -> None:
        """Remove the elements of others."""
        for other in others:
            for elem in list(other):
                self.discard(elem)

    def union(self, *others: Iterable[T]) -> OrderedSet[T]:
        """Return a set of these elements and those of others."""
        found = self.copy()
        found.update(*others)
        return found

    def intersection(self, *others: Iterable[T]) -> OrderedSet[T]:
        """Return a set of the elements that all others have too."""
        rest = [set(other) for other in others]
        return OrderedSet(elem for elem in self if all(elem in other for other in rest))

    def difference(self, *others: Iterable[T]) -> OrderedSet[T]:
        """Return a set of the elements that no other has."""
        found = self.copy()
        found.difference_update(*others)
        return found

    def symmetric_difference(self, other: Iterable[T]) -> OrderedSet[T]:
        """Return a set of the elements that are in one of both alone."""
        theirs = OrderedSet(other)
        return OrderedSet([*self.difference(theirs), *theirs.difference(self)])

    def issubset(self, other: Iterable[T]) -> bool:
        """Return whether another one has all elements."""
        return all(elem in set(other) for elem in self)

    def issuperset(self, other: Iterable[T]) -> bool:
        """Return whether all elements of another one are here."""
        return all(elem in self for elem in other)

    def __getstate__(self) -> list[T]:
        return list(self)

    def __setstate__(self, state: Any) -> None:
        self._dict = dict.fromkeys(state)
