"""Internals of `vmap` under PyTorch's private module name, which packages patch."""

from __future__ import annotations

import sys
from typing import Any

from .._settings.importable_module import ImportableModule
from ..func import _vmap


class _ForwardingModule(ImportableModule):
    """Module type that forwards assignments to the module that `vmap` reads."""

    def __getattr__(self, name: str) -> Any:
        return getattr(_vmap, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("__"):
            super().__setattr__(name, value)
        else:
            setattr(_vmap, name, value)


sys.modules[__name__].__class__ = _ForwardingModule
