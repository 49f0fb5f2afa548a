"""Errors for dtypes for which PyTorch has no kernel."""

from __future__ import annotations

from torchlite._types.dtypes import dtype


def refuse_kinds(given: dtype, kernel: str, *kinds: int) -> None:
    """PyTorch's error for a dtype of one of these kinds; `kernel` is the name in its message."""
    if given.category in kinds:
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{given.scalar_name}'")
