"""Reference layers: a quantized weight, and a computation on numbers."""

from .modules import *
from .modules import __all__ as __all__
