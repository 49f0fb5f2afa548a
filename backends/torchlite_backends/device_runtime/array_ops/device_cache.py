"""Values cached per device: tables, and 0-d arrays of numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.array import Array
from ..core.device import Device
from .creation import full


def get_device_cached(device: Device, family: str, key: Any, make: Callable[[], Any]) -> Any:
    """Return the device's cached `make()` for a key."""
    entries = device.kept(family, 512)
    found = entries.get(key)
    if found is None:
        found = entries[key] = make()
    return found


def get_cached_scalar(device: Device, value: Any, kind: str) -> Array:
    """Return a cached 0-d array of a number, which must not be written."""
    return get_device_cached(device, "constants", (kind, repr(value)), lambda: full(device, (), value, kind))
