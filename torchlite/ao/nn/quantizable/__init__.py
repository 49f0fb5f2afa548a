"""Layers made of parts that can be observed and quantized: LSTM and attention."""

# The quantized forms derive from these classes, which need the package of quantized modules: it is imported first.
import torchlite.ao.nn.quantized as _quantized

from .modules import *
from .modules import __all__ as __all__

del _quantized
