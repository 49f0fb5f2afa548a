"""The processor in the form of `torch.cuda`: one device, which has done everything as soon as it is asked to."""
from __future__ import annotations

from typing import Any

from . import amp

__all__ = ["amp", "current_device", "device_count", "is_available", "is_initialized", "set_device", "synchronize"]


def is_available() -> bool:
    """True."""
    return True


def is_initialized() -> bool:
    """True."""
    return True


def device_count() -> int:
    """1."""
    return 1


def current_device() -> str:
    """ "cpu"."""
    return "cpu"


def set_device(device: Any) -> None:
    """Accepted: there is one."""


def synchronize(device: Any = None) -> None:
    """Nothing to wait for."""
