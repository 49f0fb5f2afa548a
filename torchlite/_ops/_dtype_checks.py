"""Errors for dtypes for which PyTorch has no kernel."""

from __future__ import annotations

from torchlite._types.dtypes import dtype


def refuse_kinds(given: dtype, kernel: str, *kinds: int) -> None:
    """PyTorch's error for a dtype of one of these kinds; `kernel` is the name in its message."""
    if given.category in kinds:
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{given.scalar_name}'")


def refuse_floats(*values):
    """Raise TypeError for a float in the place of an integer; the parser then writes PyTorch's error."""
    for value in values:
        if isinstance(value, (float, complex)):
            raise TypeError(f"must be int, not {type(value).__name__}")


def refuse_complex(*values):
    """Raise TypeError for a complex number or text in the place of a float."""
    for value in values:
        if isinstance(value, (complex, str)):
            raise TypeError(f"must be float, not {type(value).__name__}")
