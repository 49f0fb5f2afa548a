"""Public entry points of scripting: script, script_method, interface, CompilationUnit, loaded on first use."""

from __future__ import annotations

import ast
from typing import Any

from .._types.python_source import parse
from ._function_modifiers import warn_of_optimize

__all__ = [
    "CompilationUnit", "ScriptWarning", "interface", "script", "script_method",
]  # fmt: skip


class ScriptWarning(Warning):
    """Warning category of TorchScript."""


def script(obj: Any, optimize: None = None, _frames_up: int = 0, _rcb: Any = None, example_inputs: Any = None) -> Any:
    """Compile a function, module or class to a TorchScript program.

    Python runs the result, with `torch.jit.is_scripting()` True; `save` writes it as text with resolved names. A module
    shares parameters, buffers and submodules. Its methods are `forward`, the methods that it calls, and those marked by
    `@torch.jit.export`. Raise NotSupportedError (a RuntimeError) for unsupported syntax, RuntimeError for undefined
    names.

    `example_inputs` has no effect: types come from annotations alone.

    >>> import torchlite as torch
    >>> @torch.jit.script
    ... def clipped(x: torch.Tensor, most: float = 1.0):
    ...     return x.clamp(max=most)
    >>> clipped(torch.tensor([0.5, 2.0]))
    tensor([0.5000, 1.0000])
    """
    from . import _recursive

    warn_of_optimize(optimize)
    return _recursive.script(obj)


def script_method(fn: Any) -> Any:
    """Mark a method of a `ScriptModule` subclass for compilation after `__init__`."""
    from ._recursive import run_as_scripted

    made = run_as_scripted(fn)
    made._script_method = True
    return made


def interface(obj: Any) -> Any:
    """Return the class; as a type annotation, it accepts any object with its methods. Raise RuntimeError for a
    non-class.
    """
    if not isinstance(obj, type):
        raise RuntimeError("interface must be applied to a class")
    if len(obj.mro()) > 2 and "Module" not in [base.__name__ for base in obj.__mro__]:
        raise RuntimeError(
            "TorchScript interface does not support inheritance yet. Please directly inherit from 'object' or "
            "'nn.Module'."
        )
    obj.__torch_script_interface__ = f"__torch__.{obj.__module__}.{obj.__name__}"  # type: ignore[attr-defined]
    return obj


def _unwrap_optional(x: Any) -> Any:
    if x is None:
        raise AssertionError("Unwrapping null optional")
    return x


class CompilationUnit:
    """Functions compiled from a TorchScript text, which can use names of the defining frame and each other.

    They are compiled rather than run by Python. Raise RuntimeError for unsupported syntax and for a text that contains
    anything but functions.

    >>> import torchlite as torch
    >>> unit = torch.jit.CompilationUnit("def double(x):\\n    return 2 * x")
    >>> unit.double(torch.ones(2))
    tensor([2., 2.])
    """

    def __init__(self, lang: Any = None, _frames_up: int = 0) -> None:
        self._functions: dict[str, Any] = {}
        if lang is not None:
            self.define(lang, _frames_up=_frames_up + 1)

    def define(self, lang: str, rcb: Any = None, _frames_up: int = 0) -> None:
        """Add the functions of a text. rcb: a function that gives the value of a name, None for one that it has not."""
        from . import _recursive
        from ._source_resolution import names_in_frame

        names = names_in_frame(_frames_up + 1)
        if rcb is not None:
            wanted = {node.id for node in ast.walk(parse(lang)) if isinstance(node, ast.Name)}
            names |= {name: value for name in wanted if (value := rcb(name)) is not None}
        self._functions |= _recursive.compile_functions(lang, {**names, **self._functions})

    def get_functions(self) -> list:
        """Return the functions."""
        return list(self._functions.values())

    def find_function(self, name: str) -> Any:
        """Return a function by name, None if there is none."""
        return self._functions.get(name)

    def __getattr__(self, attr: str) -> Any:
        found = self.__dict__.get("_functions", {}).get(attr)
        if found is None:
            raise AttributeError(f"'CompilationUnit' has no attribute '{attr}'")
        return found
