"""What PyTorch's compiler knows while it traces: nothing is traced."""

from __future__ import annotations

from typing import Any

__all__ = ["active_fake_mode", "detect_fake_mode"]


def active_fake_mode() -> Any:
    """The mode in which tensors have no data, for a trace: None, as there is no trace. (`device="meta"` has such.)"""
    return None


def detect_fake_mode(inputs: Any = None) -> Any:
    """The mode that the inputs were made in: None, as `active_fake_mode`."""
    return None
