"""Modules of quantized networks."""

from . import quantized as quantized
