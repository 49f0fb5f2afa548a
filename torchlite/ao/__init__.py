"""Quantization: modules, and what observes and converts them."""

from . import nn as nn
from . import quantization as quantization

__all__ = ["nn", "quantization"]
