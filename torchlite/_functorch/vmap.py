"""The steps of `vmap`, where packages look for them and put their own in their place."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from ..func import _vmap


class _ForwardingModule(ModuleType):
    """This module: what is set here is set where `vmap` reads it."""

    def __getattr__(self, name: str) -> Any:
        return getattr(_vmap, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("__"):
            super().__setattr__(name, value)
        else:
            setattr(_vmap, name, value)


sys.modules[__name__].__class__ = _ForwardingModule
