"""Autocast on the CPU under its old name."""

from ._forms import autocast

__all__ = ["autocast"]
