"""Layers for training with inputs that get a scale each."""

from .linear import Linear

__all__ = ["Linear"]
