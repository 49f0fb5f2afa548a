"""Containers of layers that quantization treats as one."""

from .fused import *
from .fused import __all__ as __all__
