"""Tensors over several processes: none."""

from __future__ import annotations

from typing import Any

__all__ = ["DTensor"]


class DTensor:
    """A class for programs that ask whether a tensor is one: none is."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError("DTensor: torchlite has no process groups")
