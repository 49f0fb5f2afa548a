"""Shared declarations of scripting and tracing: TracerWarning, Attribute, library class check."""

from __future__ import annotations

from typing import Any, NamedTuple

from .._jit_internal import STATE

__all__ = ["STATE", "Attribute", "TracerWarning", "is_library_class"]


class TracerWarning(Warning):
    """Warning category of tracing."""


class Attribute(NamedTuple):
    """Value of a module attribute, with its TorchScript type."""

    value: Any
    type: Any


def is_library_class(module: str | None, part: str = "") -> bool:
    """True if a module name belongs to torchlite, or to a part of it; with `as_torch` the names begin with torch."""
    root, _, rest = (module or "").partition(".")
    return root in ("torchlite", "torch") and (not part or f"{rest}.".startswith(f"{part}."))
