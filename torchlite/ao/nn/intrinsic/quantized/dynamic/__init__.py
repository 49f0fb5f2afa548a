"""Layers with an activation that quantize float inputs by their range in each call."""

from .modules import *
from .modules import __all__ as __all__
