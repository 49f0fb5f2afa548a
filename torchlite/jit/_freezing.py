"""`torch.jit.freeze`: a copy of a program whose weights are plain attributes."""

from __future__ import annotations

import re
from typing import Any

from .._dispatch.call import Tensor
from ._modules import RecursiveScriptModule
from ._program import Program
from ._saving import _Programs

_LISTED = re.compile(r"^(  __(?:parameters|buffers)__ = )\[.*\]$", re.MULTILINE)


def freeze(module: Any, preserved: list[str]) -> Any:
    """The copy. AttributeError for a name in `preserved` that the module does not have."""
    for name in preserved:
        if not hasattr(module, name):
            raise RuntimeError(f"Module '{module.original_name}' does not have an attribute '{name}' to preserve")
    programs = _Programs()
    programs.gather(module)
    sources = {name: _LISTED.sub(r"\1[]", text) for name, text in programs.sources.items()}
    first = module._script.program
    program = Program(sources, tuple(programs.constants), first.version)
    program.device = first.device
    return _copied(module, program, programs, {})


def _copied(module: Any, program: Program, programs: Any, made: dict[int, Any]) -> Any:
    if id(module) in made:
        return made[id(module)]
    out = made[id(module)] = RecursiveScriptModule(program.find(programs.name(module._script)))
    own = out._attributes
    for name, value in (*module._parameters.items(), *module._buffers.items(), *module._attributes.items()):
        own[name] = _detached(value)
    for name, child in module._modules.items():
        out._modules[name] = child if child is None else _copied(child, program, programs, made)
    object.__setattr__(out, "training", False)
    return out


def _detached(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.detach()
    if value.__class__ in (list, tuple):
        return value.__class__(map(_detached, value))
    if value.__class__ is dict:
        return {key: _detached(item) for key, item in value.items()}
    return value
