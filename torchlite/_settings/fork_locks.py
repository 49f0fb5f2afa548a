"""Protects locks and imports of other threads when a process forks.

A child has only the forking thread: a lock that another thread holds at the fork stays locked, and a module that it
imports stays partly initialised. So a fork waits, for `TIMEOUT` seconds at most, until no other thread is in a critical
section under an `acquire_before_fork` lock or imports one of this project's packages. Locks that threads hold for long,
such as that of a compiler's runs, are not waited for: the child recreates them (`reinit_after_fork`).
"""

from __future__ import annotations

import _imp
import importlib
import os
import threading
import time
import weakref
from typing import Any

TIMEOUT = 5.0  # seconds that a fork waits at most
_TURN = 0.01  # seconds that it waits for one lock before it gives way and begins again
_PACKAGES = "torchlite"  # what the names of all packages of this project begin with

_locks: dict[int, weakref.ref] = {}  # what forks wait for
_renewed: dict[int, weakref.ref] = {}  # what they do not wait for
_gate = threading.RLock()  # one fork at a time
_acquired: list[Any] = []  # what the fork in progress holds; guarded by the gate


def acquire_before_fork(lock: Any) -> Any:
    """Have forks wait until no thread has the lock, an RLock, whose sections are short. Returns the lock."""
    return _track_lock(_locks, lock)


def reinit_after_fork(lock: Any) -> Any:
    """Recreate the lock in forked children, unless the forking thread holds it. Returns the lock, an RLock."""
    return _track_lock(_renewed, lock)


def _track_lock(table: dict[int, weakref.ref], lock: Any) -> Any:
    key = id(lock)
    table[key] = weakref.ref(lock, lambda _: table.pop(key, None))
    return lock


def is_importing(here: bool = False) -> bool:
    """True if another thread imports a module of this project (`here`: if this thread does)."""
    ident = threading.get_ident()
    for name, reference in list(getattr(importlib._bootstrap, "_module_locks", {}).items()):  # type: ignore[attr-defined]
        lock = reference()
        if lock is None or lock.owner is None or not name.startswith(_PACKAGES):
            continue
        if (lock.owner == ident) is here:
            return True
    return False


def _acquire_all() -> bool:
    """Take all locks, and the import system's while no module of this project is imported; else none of them."""
    for reference in list(_locks.values()):
        lock = reference()
        if lock is None:
            continue
        if not lock.acquire(timeout=_TURN):
            return False
        _acquired.append(lock)
    _imp.acquire_lock()
    if is_importing():
        _imp.release_lock()
        return False
    return True


def _release_all() -> None:
    while _acquired:
        _acquired.pop().release()


_imports_held = False


def _lock_before_fork() -> None:
    global _imports_held
    _gate.acquire(timeout=TIMEOUT)
    until = time.monotonic() + TIMEOUT
    while not (held := _acquire_all()) and time.monotonic() < until:
        _release_all()  # who has what is missing may wait for what was taken
        time.sleep(_TURN / 10)
    _imports_held = held


def _release_in_parent() -> None:
    if _imports_held:
        _imp.release_lock()
    _release_all()
    _gate.release()


def _release_in_child() -> None:
    if _imports_held:
        _imp.release_lock()
    # Release the acquired locks once: the forking thread may have held one before (in a signal handler that forks). A
    # lock that could not be acquired belongs to a thread that does not exist in the child.
    taken = set(map(id, _acquired))
    _release_all()
    for reference in list(_locks.values()):
        lock = reference()
        if lock is not None and id(lock) not in taken:
            lock._at_fork_reinit()
    for reference in list(_renewed.values()):
        lock = reference()
        if lock is not None and not lock._is_owned():
            lock._at_fork_reinit()
    _gate._at_fork_reinit()  # type: ignore[attr-defined]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_lock_before_fork, after_in_parent=_release_in_parent, after_in_child=_release_in_child)
