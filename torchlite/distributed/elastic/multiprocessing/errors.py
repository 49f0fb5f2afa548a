"""Errors of processes that a launcher started: there is no launcher that would hear of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["record"]


def record(fn: Callable[..., Any], error_handler: Any = None) -> Callable[..., Any]:
    """Mark a program's main function, whose error its launcher is told: the function itself where nothing launched it,
    as nothing can.
    """
    return fn
