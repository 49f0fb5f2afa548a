"""Fused layers whose weights are rounded to the levels of integers while they are trained."""

from .modules import *
from .modules import __all__ as __all__
