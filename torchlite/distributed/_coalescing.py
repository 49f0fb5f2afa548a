"""Coalescing: several collectives with one wait."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any


class _OpenManagers(threading.local):
    manager: _CoalescingManager | None = None  # collects this thread's works


open_managers = _OpenManagers()


class _CoalescingManager:
    """Collects works; `wait()` waits for all."""

    def __init__(self) -> None:
        self.works: list[Any] = []

    def append(self, work: Any = None) -> None:
        """Add a work."""
        if work is not None:
            self.works.append(work)

    def wait(self) -> None:
        """Wait for all works."""
        for work in self.works:
            work.wait()


def collect_work(work: Any) -> bool:
    """Add a work to the open manager, if any; return True if there is one."""
    manager = open_managers.manager
    if manager is not None:
        manager.append(work)
    return manager is not None


@contextlib.contextmanager
def _coalescing_manager(group: Any = None, device: Any = None, async_ops: bool = False) -> Iterator[_CoalescingManager]:
    """Start the collectives inside, and wait for them at the end (with `async_ops` in the manager's `wait()`)."""
    before, manager = open_managers.manager, _CoalescingManager()
    open_managers.manager = manager
    try:
        yield manager
    finally:
        open_managers.manager = before
    if not async_ops:
        manager.wait()
