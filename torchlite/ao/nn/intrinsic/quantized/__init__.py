"""Quantized layers with the activation or the sum after them."""

from . import dynamic as dynamic
from .modules import *
from .modules import __all__ as __all__
