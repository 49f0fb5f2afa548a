"""The table of decompositions that `run_decompositions` takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["CustomDecompTable"]


class CustomDecompTable(dict):
    """Decompositions by overload, to which a program adds its own. Ops that are written in others in PyTorch too come
    apart without an entry.
    """

    def materialize(self) -> dict[Any, Callable]:
        """As a plain dictionary."""
        return dict(self)
