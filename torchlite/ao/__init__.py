"""Quantisation and pruning, by name."""

from . import quantization as quantization

__all__ = ["quantization"]
