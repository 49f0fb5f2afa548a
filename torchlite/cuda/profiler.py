"""Start and stop of collection by NVIDIA's profilers, if they wait for it (`nsys profile
--capture-range=cudaProfilerApi`).
"""

from __future__ import annotations

import contextlib

from ._accelerator import runtime_of

__all__ = ["profile", "start", "stop"]


def start() -> None:
    """Starts the collection of a profiler that waits for it, such as ``nsys profile --capture-range=cudaProfilerApi``.

    Raises:
        RuntimeError: There is no device.

    Example:
        >>> if torch.cuda.is_available():
        ...     torch.cuda.profiler.start()
        ...     torch.cuda.profiler.stop()
    """
    runtime_of(None, "profiler", "profile").profile(True)


def stop() -> None:
    """Stops the collection that `start` started.

    Raises:
        RuntimeError: There is no device.

    Example:
        >>> if torch.cuda.is_available():
        ...     torch.cuda.profiler.start()
        ...     torch.cuda.profiler.stop()
    """
    runtime_of(None, "profiler", "profile").profile(False)


@contextlib.contextmanager
def profile():
    """Collects a block for a profiler that waits for it.

    Raises:
        RuntimeError: There is no device.

    Example:
        >>> if torch.cuda.is_available():
        ...     with torch.cuda.profiler.profile():
        ...         y = torch.ones(2, device="cuda") + 1
    """
    start()
    try:
        yield
    finally:
        stop()
