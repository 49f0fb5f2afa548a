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
    """Warns of TorchScript's use.

    Example:
        >>> issubclass(torch.jit.ScriptWarning, Warning)
        True
    """


def script(obj: Any, optimize: None = None, _frames_up: int = 0, _rcb: Any = None, example_inputs: Any = None) -> Any:
    """Compiles a function, module or class to a TorchScript program.

    Python runs the result, with `torch.jit.is_scripting()` True. `save` writes it as text with resolved names. A
    scripted module shares parameters, buffers and submodules with the original. Its methods are `forward`, the methods
    that `forward` calls, and those marked by `torch.jit.export`.

    Args:
        obj: A function, module or class.
        optimize: Deprecated, no effect.
        example_inputs: No effect: types come from annotations alone.

    Returns:
        A `ScriptFunction` or `ScriptModule`; the class itself for a class.

    Raises:
        NotSupportedError: TorchScript has no such syntax. It is a RuntimeError.
        RuntimeError: A name is not defined.

    Example:
        >>> import torchlite as torch
        >>> @torch.jit.script
        ... def clipped(x: torch.Tensor, most: float = 1.0):
        ...     return x.clamp(max=most)
        >>> clipped(torch.tensor([0.5, 2.0]))
        tensor([0.5000, 1.0000])

    See also:
        `torch.jit.trace`, `torch.jit.save`, `torch.jit.freeze`.
    """
    from . import _recursive

    warn_of_optimize(optimize)
    return _recursive.script(obj)


def script_method(fn: Any) -> Any:
    """Marks a method of a `ScriptModule` subclass that is compiled after `__init__`.

    Args:
        fn: The method.

    Returns:
        The method, which runs as part of the program.

    Example:
        >>> class Doubling(torch.jit.ScriptModule):
        ...     @torch.jit.script_method
        ...     def forward(self, x):
        ...         return 2 * x
        >>> Doubling()(torch.ones(2))
        tensor([2., 2.])
    """
    from ._recursive import run_as_scripted

    made = run_as_scripted(fn)
    made._script_method = True
    return made


def interface(obj: Any) -> Any:
    """Marks a class as an interface: as an annotation it accepts any object with its methods.

    Args:
        obj: A class with methods whose bodies are empty.

    Returns:
        The class.

    Raises:
        RuntimeError: ``obj`` is no class, or inherits from another class than `object` or `torch.nn.Module`.

    Example:
        >>> @torch.jit.interface
        ... class Scale:
        ...     def run(self, x: torch.Tensor) -> torch.Tensor:
        ...         pass
        >>> Scale.__name__
        'Scale'
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
    r"""Functions compiled from a TorchScript text.

    The functions can use each other and the names of the defining frame.

    Args:
        lang: The text. Default: none, no functions.

    Raises:
        RuntimeError: The text has unsupported syntax, or anything but functions.

    Example:
        >>> import torchlite as torch
        >>> unit = torch.jit.CompilationUnit("def double(x):\n    return 2 * x")
        >>> unit.double(torch.ones(2))
        tensor([2., 2.])
    """

    def __init__(self, lang: Any = None, _frames_up: int = 0) -> None:
        self._functions: dict[str, Any] = {}
        if lang is not None:
            self.define(lang, _frames_up=_frames_up + 1)

    def define(self, lang: str, rcb: Any = None, _frames_up: int = 0) -> None:
        """Adds the functions of a text.

        Args:
            lang: The text.
            rcb: Function of a name that returns its value, or ``None`` for one that it lacks. Default: none.
        """
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
        """Returns a function by name.

        Args:
            name: Name of the function.

        Returns:
            The function, or ``None`` if there is none.
        """
        return self._functions.get(name)

    def __getattr__(self, attr: str) -> Any:
        found = self.__dict__.get("_functions", {}).get(attr)
        if found is None:
            raise AttributeError(f"'CompilationUnit' has no attribute '{attr}'")
        return found
