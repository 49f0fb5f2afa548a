"""The op families. Importing one declares its records."""

from __future__ import annotations

import importlib
import pkgutil


def load() -> None:
    """Import every family."""
    for info in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{info.name}")
