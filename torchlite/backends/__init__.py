"""`torch.backends`: availability and switches of the libraries that devices use. `torchlite._settings.backend_flags`
stores the switches.
"""

from __future__ import annotations

import importlib
import sys

from .._settings.backend_flags import FLAGS
from .._settings.importable_module import ImportableModule
from .._settings.module_dir import make_module_dir
from ._flag_properties import allow_mutation as __allow_nonbracketed_mutation  # imported by MONAI
from ._flag_properties import disable_global_flags, flags_frozen

_NAMES = ("cpu", "cuda", "cudnn", "mha", "mkl", "mkldnn", "mps", "openmp", "opt_einsum", "quantized")


class _Backends(ImportableModule):
    @property
    def fp32_precision(self) -> str:
        """The default precision of float32 products: "none", "ieee" or "tf32". More specific settings override it."""
        return FLAGS.precision("all")

    @fp32_precision.setter
    def fp32_precision(self, value: str) -> None:
        FLAGS.set_precision("all", value)

    def __getattr__(self, name: str):
        if name in _NAMES:
            return importlib.import_module(f".{name}", __name__)
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")

    def __dir__(self):
        return sorted({*super().__dir__(), *_NAMES})


__dir__ = make_module_dir(globals(), "fp32_precision")
sys.modules[__name__].__class__ = _Backends
