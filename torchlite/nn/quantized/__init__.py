"""The older name of `torch.ao.nn.quantized`."""

import sys

from torchlite.ao.nn.quantized import *
from torchlite.ao.nn.quantized import __all__ as __all__
from torchlite.ao.nn.quantized import modules as modules

sys.modules[f"{__name__}.modules"] = modules
