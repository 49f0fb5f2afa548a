"""Modules that quantize float inputs by their range in each call."""

from .linear import Linear

__all__ = ["Linear"]
