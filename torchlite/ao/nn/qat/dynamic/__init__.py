"""Layers for training with inputs that get a scale each."""

from .modules import *
from .modules import __all__ as __all__
