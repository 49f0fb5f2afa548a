"""Scripting, switched off."""

from __future__ import annotations

from typing import Any

__all__ = [
    "CompilationUnit", "ScriptWarning", "interface", "script", "script_method",
]  # fmt: skip


class ScriptWarning(Warning):
    """What TorchScript warns of."""


def script(obj: Any, optimize: None = None, _frames_up: int = 0, _rcb: Any = None, example_inputs: Any = None) -> Any:
    """A function, module or class as a program of TorchScript.

    Python runs it, with `torch.jit.is_scripting()` true; `save` writes it as text, in which names stand for what they
    mean. A module keeps its parameters, buffers and submodules; `forward`, methods that it calls and those marked by
    `@torch.jit.export` are its methods. NotSupportedError (a RuntimeError) for forms that TorchScript does not have,
    RuntimeError for names that are nothing in it.

    >>> import torchlite as torch
    >>> @torch.jit.script
    ... def clipped(x: torch.Tensor, most: float = 1.0):
    ...     return x.clamp(max=most)
    >>> clipped(torch.tensor([0.5, 2.0]))
    tensor([0.5000, 1.0000])
    """
    from . import _scripting

    if _frames_up:
        return obj
    return _scripting.script(obj)


def script_method(fn: Any) -> Any:
    """The method itself."""
    return fn


def interface(obj: Any) -> Any:
    """The class itself. RuntimeError for what is no class."""
    if not isinstance(obj, type):
        raise RuntimeError("interface must be applied to a class")
    return obj


def _unwrap_optional(x: Any) -> Any:
    if x is None:
        raise AssertionError("Unwrapping null optional")
    return x


class CompilationUnit:
    """Functions from a text of TorchScript."""

    def __init__(self, lang: Any = None, _frames_up: int = 0) -> None:
        if lang is not None:
            raise NotImplementedError("torch.jit.CompilationUnit needs TorchScript, which torchlite does not have yet")
