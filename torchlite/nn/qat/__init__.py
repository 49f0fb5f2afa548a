"""The older name of `torch.ao.nn.qat`."""

import sys

from torchlite.ao.nn.qat import *
from torchlite.ao.nn.qat import __all__ as __all__
from torchlite.ao.nn.qat import dynamic as dynamic
from torchlite.ao.nn.qat import modules as modules

sys.modules[f"{__name__}.dynamic"] = dynamic
sys.modules[f"{__name__}.modules"] = modules
