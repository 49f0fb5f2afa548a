"""Linear layers over quantized tensors whose weights are sparse."""

from . import dynamic as dynamic
from .linear import Linear, LinearPackedParams

__all__ = ["Linear", "LinearPackedParams", "dynamic"]
