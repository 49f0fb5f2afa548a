"""Layers whose weights are rounded to the levels of integers while they are trained."""

from typing import Any

from .modules import *
from .modules import __all__ as __all__


def __getattr__(name: str) -> Any:
    if name == "dynamic":
        import importlib

        return importlib.import_module(".dynamic", __name__)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
