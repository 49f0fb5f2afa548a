"""Python's `multiprocessing` with tensors in shared memory: writes in one process are visible in the others. Tensors on
devices, and of user-defined classes, are copied.

>>> import torchlite as torch
>>> queue = torch.multiprocessing.SimpleQueue()
>>> x = torch.zeros(2)
>>> queue.put(x)
>>> queue.get().fill_(1)
tensor([1., 1.])
>>> x
tensor([1., 1.])
"""

from __future__ import annotations

import multiprocessing
import threading
from multiprocessing import *
from typing import Any

from torchlite._settings.module_dir import make_module_dir
from torchlite._settings.temporary_folders import use_for_multiprocessing

from . import reductions
from .reductions import get_all_sharing_strategies, get_sharing_strategy, set_sharing_strategy
from .spawn import (
    ENV_VAR_PARALLEL_START,
    ProcessContext,
    ProcessException,
    ProcessExitedException,
    ProcessRaisedException,
    SpawnContext,
    spawn,
    start_processes,
)

__all__ = [
    "set_sharing_strategy", "get_sharing_strategy", "get_all_sharing_strategies", "ProcessContext", "ProcessException",
    "ProcessExitedException", "ProcessRaisedException", "SpawnContext", "spawn", "start_processes",
]  # fmt: skip
__all__ += multiprocessing.__all__  # type: ignore[attr-defined]


def get_context(method: str | None = None) -> Any:  # type: ignore[no-redef]
    """Returns the context of a start method, as `multiprocessing.get_context` does.

    Args:
        method: ``"fork"``, ``"spawn"`` or ``"forkserver"``. Default: the current one.

    Raises:
        ValueError: The start method does not exist on this system.

    Example:
        >>> torch.multiprocessing.get_context("spawn").get_start_method()
        'spawn'
    """
    if method == "forkserver":
        use_for_multiprocessing()
    return multiprocessing.get_context(method)


def _set_thread_name(name: str) -> None:
    """Set the system name of this thread (15 characters at most; on Linux)."""
    with open(f"/proc/self/task/{threading.get_native_id()}/comm", "w") as file:
        file.write(name[:15])


def _get_thread_name() -> str:
    """Return the system name of this thread."""
    with open(f"/proc/self/task/{threading.get_native_id()}/comm") as file:
        return file.read().rstrip("\n")


reductions.init_reductions()


__dir__ = make_module_dir(globals(), "ENV_VAR_PARALLEL_START")
