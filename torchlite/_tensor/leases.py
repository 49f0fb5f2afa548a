"""Lazy clones: storages with one memory until a write, before which who is written gets memory of its own."""

from __future__ import annotations

import itertools
import weakref
from typing import Any

from .._dispatch import call
from .._dispatch.backend import owner_of
from .._dispatch.leases import leased
from .storage import move, storage_of

_numbers: dict[int, int] = {}  # of storages, by id of the owner
_next = itertools.count(1)


def settle(tensor: Any) -> None:
    """Before a write: memory that other storages have too is copied, and all tensors of this one move there."""
    owner = owner_of(tensor._data)
    found = leased(owner)
    if found is None:
        return
    if found.is_alone(owner):
        found.settled = True
        return
    number = number_of(tensor)
    storage = storage_of(tensor)
    move(storage, storage.nbytes())
    if owner_of(tensor._data) is owner:  # the handle's own tensor, in whose place the handle has another now
        tensor._data = storage._tensor._data
    _numbers.pop(id(owner), None)
    _name(owner_of(tensor._data), number)


def is_lazy(tensor: Any) -> bool:
    """Whether the tensor's storage may have its memory together with others."""
    return leased(owner_of(tensor._data)) is not None


def number_of(tensor: Any) -> int:
    """A number that the tensor's storage keeps when its memory moves, and no other living one has."""
    owner = owner_of(tensor._data)
    return _numbers.get(id(owner)) or _name(owner, next(_next))


def _name(owner: Any, number: int) -> int:
    kept = _numbers.setdefault(id(owner), number)  # another thread may have been quicker
    if kept == number:
        weakref.finalize(owner, _numbers.pop, id(owner), None).atexit = False
    return kept


call.BEFORE_WRITES.append(settle)
