"""Quantized modules, and `functional`, `dynamic` and `reference` ones."""

from . import dynamic as dynamic
from . import functional as functional
from . import reference as reference
from .modules import *
from .modules import MaxPool2d as MaxPool2d
from .modules import __all__ as __all__
