"""What a thread traces or scripts."""

from __future__ import annotations

from typing import Any, NamedTuple

from .._settings.jit_state import STATE

__all__ = ["STATE", "Attribute", "TracerWarning", "is_library_class"]


class TracerWarning(Warning):
    """What tracing warns of."""


class Attribute(NamedTuple):
    """A value for a module's attribute, with its type in programs."""

    value: Any
    type: Any


def is_library_class(module: str | None, part: str = "") -> bool:
    """Whether a module's name is one of torchlite's, or of a part of it: with `as_torch` they go by the name torch."""
    root, _, rest = (module or "").partition(".")
    return root in ("torchlite", "torch") and (not part or f"{rest}.".startswith(f"{part}."))
