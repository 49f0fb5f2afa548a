"""Several processes: not yet. `is_available()` is False, as of a PyTorch that was built without them; names that
programs import are there, and say so when they are called.
"""

from __future__ import annotations

from typing import Any

from . import distributed_c10d
from .device_mesh import DeviceMesh, init_device_mesh
from .distributed_c10d import (
    Backend,
    GroupMember,
    P2POp,
    ProcessGroup,
    ReduceOp,
    Work,
    group,
    is_backend_available,
    is_initialized,
    is_torchelastic_launched,
)  # fmt: skip

__all__ = [
    "Backend", "DeviceMesh", "GroupMember", "P2POp", "ProcessGroup", "ReduceOp", "Work", "group",
    "init_device_mesh", "is_available", "is_backend_available", "is_initialized", "is_torchelastic_launched",
]  # fmt: skip


def is_available() -> bool:
    """Whether processes can work together: not yet."""
    return False


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return getattr(distributed_c10d, name)
