"""Arithmetic that observers can follow. Layers over quantized tensors are not part of torchlite."""

from typing import Any

from .modules import *
from .modules import __all__ as __all__


def __getattr__(name: str) -> Any:
    if name[:1].isupper():
        raise NotImplementedError(f"torch.ao.nn.quantized.{name}: torchlite has no layers over quantized tensors")
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
