"""Functions of op records by their public names, for modules below `torch` and `torch.nn`."""

from __future__ import annotations

from typing import Any

from .op_functions import namespace_function


class _PublicFunctions:
    """The op functions of a namespace as attributes: `torch.zeros_like`, `nn_functional.gelu`."""

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace

    def __getattr__(self, name: str) -> Any:
        found = namespace_function(self._namespace, name)
        setattr(self, name, found)
        return found


torch = _PublicFunctions("torch")
nn_functional = _PublicFunctions("nn.functional")
