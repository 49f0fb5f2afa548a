"""Lazy clones: storages that share memory until a write, before which the written one gets new memory."""

from __future__ import annotations

import itertools
import weakref
from typing import Any

from .._dispatch import autograd_graph
from .._dispatch.backend import owner_of
from .._dispatch.copy_on_write import shared_buffer_of
from .storage import move_storage, storage_of

_storage_ids: dict[int, int] = {}  # of storages, by id of the owner
_next = itertools.count(1)


def materialize(tensor: Any) -> None:
    """Before a write: memory that other storages have too is copied, and all tensors of this one move there."""
    owner = owner_of(tensor._tl_array)
    found = shared_buffer_of(owner)
    if found is None or found.settle(owner):
        return
    number = storage_id(tensor)
    storage = storage_of(tensor)
    move_storage(storage, storage.nbytes())
    if owner_of(tensor._tl_array) is owner:  # the handle's own tensor, in whose place the handle has another now
        tensor._tl_array = storage._tensor._tl_array
    _storage_ids.pop(id(owner), None)
    _set_storage_id(owner_of(tensor._tl_array), number)


def is_lazy_clone(tensor: Any) -> bool:
    """True if the tensor's storage may share copy-on-write memory with others."""
    return shared_buffer_of(owner_of(tensor._tl_array)) is not None


def storage_id(tensor: Any) -> int:
    """A number that the tensor's storage keeps when its memory moves, and no other living one has."""
    owner = owner_of(tensor._tl_array)
    return _storage_ids.get(id(owner)) or _set_storage_id(owner, next(_next))


def _set_storage_id(owner: Any, number: int) -> int:
    kept = _storage_ids.setdefault(id(owner), number)  # another thread may have been quicker
    if kept == number:
        weakref.finalize(owner, _storage_ids.pop, id(owner), None).atexit = False
    return kept


autograd_graph.PRE_WRITE_HOOKS.append(materialize)
