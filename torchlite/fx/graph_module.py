"""Modules that are made from a graph."""

from __future__ import annotations

from typing import Any

from torchlite import Tensor
from torchlite.nn.modules.module import Module
from torchlite.nn.parameter import Parameter

from ._later import later

__all__ = ["GraphModule"]

_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"


class GraphModule(Module):
    """A module whose forward is a graph: there are no graphs yet."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise later("GraphModule")


class _CodeOnlyModule(Module):
    """A module of the attributes that a graph names."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__()
        self.__dict__ = body


def _copy_attr(from_module: Module, to_module: Module, target: str) -> None:
    """Give a module the attribute of another one under the same dotted name, through modules that are made for it."""
    *path, name = target.split(".")
    for part in path:
        inner = getattr(to_module, part, None)
        from_module = getattr(from_module, part)
        if inner is from_module:
            return
        if inner is None:
            inner = Module()
            setattr(to_module, part, inner)
        to_module = inner
    value = getattr(from_module, name)
    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        to_module.register_buffer(name, value)
    else:
        setattr(to_module, name, value)
