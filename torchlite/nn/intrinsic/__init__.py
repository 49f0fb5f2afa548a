"""The older name of `torch.ao.nn.intrinsic`."""

import sys

from torchlite.ao.nn.intrinsic import *
from torchlite.ao.nn.intrinsic import __all__ as __all__
from torchlite.ao.nn.intrinsic import modules as modules
from torchlite.ao.nn.intrinsic import qat as qat
from torchlite.ao.nn.intrinsic import quantized as quantized

sys.modules[f"{__name__}.modules"] = modules
sys.modules[f"{__name__}.qat"] = qat
sys.modules[f"{__name__}.quantized"] = quantized
sys.modules[f"{__name__}.quantized.dynamic"] = quantized.dynamic
