"""Copy-on-write memory, shared by several storages until a write: lazy clones.

An array owns the memory. The storage of each lazy clone is another owner over the same bytes, whose `base` is the
`SharedBuffer` that all of them have in common. A storage gets new memory before it is written
(`torchlite._tensor.copy_on_write`), unless it is the last one.
"""

from __future__ import annotations

import sys
import threading
import weakref
from typing import Any

import numpy as np

from .._settings import fork_locks
from .dispatch_state import change_counters

_buffers: weakref.WeakValueDictionary[int, SharedBuffer] = weakref.WeakValueDictionary()  # by id of the array that owns
# Held to share memory and to find that one storage has it alone. Reentrant, since a finalizer may do either.
_lock = fork_locks.acquire_before_fork(threading.RLock())


class SharedBuffer:
    """An array, its memory, and the storages that share it."""

    def __init__(self, owner: np.ndarray, memory: np.ndarray):
        self.owner = owner
        self.memory = memory
        self.leases: list[weakref.ref] = []
        self.settled = False  # one storage has the memory alone
        # Writes look at tensors while memory is leased: from before another thread can find this buffer.
        change_counters(WRITE_CHECKS=1)
        weakref.finalize(self, change_counters, WRITE_CHECKS=-1).atexit = False
        _buffers[id(owner)] = self

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return self.memory.__array_interface__

    def share_with_owner(self) -> np.ndarray:
        """Another owner of the same bytes."""
        made = np.asarray(self)
        self.leases.append(weakref.ref(made))
        self.settled = False
        return made

    def settle(self, owner: Any) -> bool:
        """True if `owner` is the only storage of the memory, which it may then write."""
        with _lock:
            if any(lease() is not None and lease() is not owner for lease in self.leases):
                return False
            # Two references to the array are our own: the attribute, and the memory's base. The third is the call's.
            self.settled = owner is self.owner or sys.getrefcount(self.owner) <= 3
            return self.settled


def shared_buffer_of(owner: Any) -> SharedBuffer | None:
    """The SharedBuffer of the owner of a tensor's memory, if it has one."""
    found = owner.base if owner.base.__class__ is SharedBuffer else _buffers.get(id(owner))
    return None if found is None or found.settled else found


def new_cow_reference(owner: np.ndarray, memory: np.ndarray) -> np.ndarray:
    """New owner of a storage's flat bytes `memory`, for a lazy clone."""
    with _lock:
        found = owner.base if owner.base.__class__ is SharedBuffer else _buffers.get(id(owner))
        return (SharedBuffer(owner, memory) if found is None else found).share_with_owner()
