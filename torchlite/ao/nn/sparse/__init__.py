"""Layers with sparse weights."""

from . import quantized as quantized

__all__ = ["quantized"]
