"""Numbers ("slots") for the arrays of a call that is recorded, which are known by their identity while they live."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from torchlite._dispatch.backend import owner_of

from .program_ir import Layouts


class ArrayIds:
    """The slots of arrays, and what is known of every array that ever had one: its layout, the number of its memory,
    and whether it has no dimensions (`scalars`). No array is kept alive.
    """

    def __init__(self) -> None:
        self.layouts: Layouts = {}
        self.memory: dict[int, int] = {}
        self.scalars: set[int] = set()
        self.slots: dict[int, int] = {}  # by the identities of arrays
        self._numbers: dict[int, list[int]] = {}  # all that an array has had
        self._owners: dict[int, int] = {}  # numbers of memories, by the identities of arrays that own one
        self._watched: dict[int, Any] = {}
        self._memories = 0

    def give(self, raw: Any, number: int) -> None:
        """An array's slot from here on."""
        self.slots[id(raw)] = number
        self._numbers.setdefault(id(raw), []).append(number)
        self._watch(raw)
        if not getattr(raw, "ndim", 1):
            self.scalars.add(number)
        if hasattr(raw, "base"):
            owner = owner_of(raw)
            if id(owner) not in self._owners:
                self._watch(owner)
                self._owners[id(owner)] = self._memories
                self._memories += 1
            self.memory[number] = self._owners[id(owner)]
        if type(raw) is np.ndarray:
            self.layouts[number] = raw.shape, raw.dtype, raw.flags.c_contiguous
        elif hasattr(raw, "contiguous"):
            self.layouts[number] = raw.shape, raw.dtype, raw.contiguous

    def memory_of(self, raw: Any) -> int | None:
        """The number of an array's memory; None where no array with a slot lies in it."""
        return self._owners.get(id(owner_of(raw)))

    def restore(self, slots: dict[int, int]) -> None:
        """Have the arrays that still live be known by slots of theirs from before."""
        self.slots = {key: number for key, number in slots.items() if number in self._numbers.get(key, ())}

    def _watch(self, raw: Any) -> None:
        key = id(raw)
        if key not in self._watched:
            try:
                self._watched[key] = weakref.ref(raw, lambda _: self._forget(key))
            except TypeError:
                self._watched[key] = raw

    def _forget(self, key: int) -> None:
        for known in (self.slots, self._numbers, self._owners, self._watched):
            known.pop(key, None)


__all__ = ["ArrayIds"]
