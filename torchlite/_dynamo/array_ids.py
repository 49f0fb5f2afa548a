"""ArrayIds: numbers arrays by identity while a call is recorded."""

from __future__ import annotations

import functools
import weakref
from typing import Any

import numpy as np

from torchlite._dispatch.backend import owner_of
from torchlite._dispatch.memory_layout import is_contiguous

from .program_ir import Layouts


class ArrayIds:
    """Slots of live arrays, with the layout and memory number of each. `scalars` has slots of zero-dimensional arrays.
    No array is kept alive.
    """

    def __init__(self) -> None:
        self.layouts: Layouts = {}
        self.memory: dict[int, int] = {}
        self.scalars: set[int] = set()
        self.slots: dict[int, int] = {}  # by the array's id
        self._numbers: dict[int, list[int]] = {}  # all slots that an array has had
        self._owners: dict[int, int] = {}  # memory numbers, by the id of the array that owns the memory
        self._watched: dict[int, Any] = {}
        self._memories = 0

    def assign_slot(self, raw: Any, number: int) -> None:
        """Assign a slot to an array."""
        self.slots[id(raw)] = number
        self._numbers.setdefault(id(raw), []).append(number)
        self._watch_lifetime(raw)
        if not getattr(raw, "ndim", 1):
            self.scalars.add(number)
        if hasattr(raw, "base"):
            owner = owner_of(raw)
            if id(owner) not in self._owners:
                self._watch_lifetime(owner)
                self._owners[id(owner)] = self._memories
                self._memories += 1
            self.memory[number] = self._owners[id(owner)]
        if type(raw) is np.ndarray:
            self.layouts[number] = raw.shape, raw.dtype, raw.flags.c_contiguous
        elif isinstance(getattr(raw, "dtype", None), np.dtype):
            steps = tuple([s // raw.itemsize for s in raw.strides])
            self.layouts[number] = raw.shape, raw.dtype, is_contiguous(raw.shape, steps)

    def memory_of(self, raw: Any) -> int | None:
        """Return the number of an array's memory, None if no array with a slot lies in it."""
        return self._owners.get(id(owner_of(raw)))

    def restore(self, slots: dict[int, int]) -> None:
        """Restore earlier slots for the arrays that are still alive."""
        self.slots = {key: number for key, number in slots.items() if number in self._numbers.get(key, ())}

    def _watch_lifetime(self, raw: Any) -> None:
        key = id(raw)
        if key not in self._watched:
            try:
                self._watched[key] = weakref.ref(raw, functools.partial(self._forget_array, key))
            except TypeError:
                self._watched[key] = raw

    def _forget_array(self, key: int, _: Any) -> None:
        for known in (self.slots, self._numbers, self._owners, self._watched):
            if key in known:  # the watcher of a recording sees each call of a function in C
                del known[key]
