"""What a thread traces or scripts."""

from __future__ import annotations

from typing import Any, NamedTuple

from .._jit_internal import STATE

__all__ = ["STATE", "Attribute", "TracerWarning"]


class TracerWarning(Warning):
    """What tracing warns of."""


class Attribute(NamedTuple):
    """A value for a module's attribute, with its type in programs."""

    value: Any
    type: Any
