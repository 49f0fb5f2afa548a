"""How an op is said that stands in place of a compiled one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class OpSpec:
    """An op: its schema, the function that computes it on every device (None: there is none here), its derivative."""

    schema: str
    kernel: Callable | None = None
    backward: Callable | None = None
    setup_context: Callable | None = None


def require(holds: bool, words: Callable[[], str]) -> None:
    """RuntimeError with these words unless something holds."""
    if not holds:
        raise RuntimeError(words())
