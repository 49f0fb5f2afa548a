"""Kernel registration: functions named like an op, and the entries of a module's `KERNELS`; see
`backend.kernels_of`.
"""

from __future__ import annotations

from collections.abc import Callable

from torchlite._dispatch import REGISTRY


def mark_device_first(function: Callable) -> Callable:
    """Mark a kernel of an op without array arguments: it takes the Device first."""
    function.on_device = True  # type: ignore[attr-defined]
    return function


def is_op(name: str) -> bool:
    """True for the name of an op or, with a trailing underscore, of its in-place kernel."""
    return name in REGISTRY or name.endswith("_") and name[:-1] in REGISTRY
