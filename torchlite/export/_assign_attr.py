"""`_assign_attr`: a parameter, buffer or constant at a path below a module, which passes of packages set."""

from __future__ import annotations

import enum
from typing import Any

from .._tensor import Tensor
from ..nn import Module, Parameter


class _AttrKind(enum.Enum):
    PARAMETER = "parameter"
    BUFFER = "buffer"
    CONSTANT = "constant"
    MODULE = "module"


_CLASSES: dict[_AttrKind, type] = {
    _AttrKind.PARAMETER: Parameter, _AttrKind.BUFFER: Tensor, _AttrKind.MODULE: Module, _AttrKind.CONSTANT: object,
}  # fmt: skip


def _calls_of(owner: Module, name: str) -> list[Module]:
    """The submodules of a name and of its later calls, which unflattened modules have as ``name@1`` and so on."""
    return [child for key, child in owner._modules.items() if key.partition("@")[0] == name and child is not None]


def _assign_attr(from_obj: Any, to_module: Module, target: str, attr_kind: _AttrKind, persistent: bool = True) -> None:
    """Set an attribute at a path, in each call of the modules on the path; missing modules are made.

    AssertionError if the object does not fit the kind.

    >>> import torchlite as torch
    >>> from torchlite.export.unflatten import _assign_attr, _AttrKind
    >>> module = torch.nn.Module()
    >>> _assign_attr(torch.ones(2), module, "layer.scale", _AttrKind.BUFFER)
    >>> list(module.state_dict())
    ['layer.scale']
    """
    wanted: Any = _CLASSES[attr_kind]
    if not isinstance(from_obj, wanted):
        raise AssertionError(f"expected {wanted.__name__} for {attr_kind.name} attr_kind, got {type(from_obj)}")
    *path, field = target.split(".")
    owners = [to_module]
    for name in path:
        for owner in owners:
            if not hasattr(owner, name):
                owner.add_module(name, Module())
        owners = [child for owner in owners for child in _calls_of(owner, name)]
    for owner in owners:
        if attr_kind is _AttrKind.PARAMETER:
            owner.register_parameter(field, from_obj)
        elif attr_kind is _AttrKind.BUFFER:
            owner.register_buffer(field, from_obj, persistent=persistent)
        else:
            setattr(owner, field, from_obj)
