"""Containers of layers that quantization treats as one."""

from typing import Any

from .modules import *
from .modules import __all__ as __all__
from .modules.fused import _FusedModule as _FusedModule


def __getattr__(name: str) -> Any:
    if name == "qat":
        import importlib

        return importlib.import_module(".qat", __name__)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
