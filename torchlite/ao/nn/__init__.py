"""Layers of quantization: fused containers, layers whose weights are rounded while they are trained, and layers over
quantized tensors.
"""

from . import intrinsic as intrinsic
from . import qat as qat
from . import quantizable as quantizable
from . import quantized as quantized
from . import sparse as sparse

__all__ = ["intrinsic", "qat", "quantizable", "quantized", "sparse"]
