"""Layers of quantization: fused containers, layers whose weights are rounded while they are trained, and arithmetic
that observers can follow.
"""

from . import intrinsic as intrinsic
from . import qat as qat
from . import quantized as quantized

__all__ = ["intrinsic", "qat", "quantized"]
