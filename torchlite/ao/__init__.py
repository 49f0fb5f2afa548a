"""Quantization and pruning: modules, and what observes, converts and masks them."""

import importlib
from typing import Any

from . import nn as nn
from . import quantization as quantization

__all__ = ["nn", "ns", "pruning", "quantization"]


def __getattr__(name: str) -> Any:
    if name in ("ns", "pruning"):
        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
