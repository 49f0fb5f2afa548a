"""Start and stop of collection by NVIDIA's profilers, if they wait for it (`nsys profile
--capture-range=cudaProfilerApi`).
"""

from __future__ import annotations

import contextlib

from ._accelerator import runtime_of

__all__ = ["profile", "start", "stop"]


def start() -> None:
    """Start collection by the profiler. RuntimeError without a device."""
    runtime_of(None, "profiler", "profile").profile(True)


def stop() -> None:
    """Stop collection by the profiler."""
    runtime_of(None, "profiler", "profile").profile(False)


@contextlib.contextmanager
def profile():
    """Context manager: the profiler collects in the block.

    >>> import torchlite as torch
    >>> if torch.cuda.is_available():
    ...     with torch.cuda.profiler.profile():
    ...         y = torch.ones(2, device="cuda") + 1
    """
    start()
    try:
        yield
    finally:
        stop()
