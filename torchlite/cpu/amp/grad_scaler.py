"""Gradient scaling on the CPU under its old name."""

from ._forms import GradScaler

__all__ = ["GradScaler"]
