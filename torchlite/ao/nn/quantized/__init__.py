"""Quantized modules, and `functional` and `dynamic` ones."""

from . import dynamic as dynamic
from .modules import *
from .modules import __all__ as __all__
