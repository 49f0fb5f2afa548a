"""OpSpec: declares an op that replaces one of a compiled extension."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class OpSpec:
    """Schema, function for all devices (None: unsupported) and derivative of an op."""

    schema: str
    kernel: Callable | None = None
    backward: Callable | None = None
    setup_context: Callable | None = None


def require(holds: bool, words: Callable[[], str]) -> None:
    """Raise RuntimeError with this message if the condition is False."""
    if not holds:
        raise RuntimeError(words())
