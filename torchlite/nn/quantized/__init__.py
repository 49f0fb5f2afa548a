"""The older name of `torch.ao.nn.quantized`."""

import sys

from torchlite.ao.nn.quantized import *
from torchlite.ao.nn.quantized import __all__ as __all__
from torchlite.ao.nn.quantized import dynamic as dynamic
from torchlite.ao.nn.quantized import modules as modules

sys.modules[f"{__name__}.dynamic"] = dynamic
sys.modules[f"{__name__}.dynamic.modules"] = dynamic.modules
sys.modules[f"{__name__}.modules"] = modules
