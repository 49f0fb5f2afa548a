"""The older name of `torch.ao.quantization`."""

import sys

from torchlite.ao import quantization as _new
from torchlite.ao.quantization import *
from torchlite.ao.quantization import __all__ as __all__

for _name in (
    "fake_quantize", "fuse_modules", "fuser_method_mappings", "observer", "qconfig", "qconfig_mapping", "quant_type",
    "quantization_mappings", "quantize", "quantize_fx", "stubs", "utils",
):  # fmt: skip
    sys.modules[f"{__name__}.{_name}"] = sys.modules[f"{_new.__name__}.{_name}"]


def __getattr__(name: str) -> object:
    return getattr(_new, name)
