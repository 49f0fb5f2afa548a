"""Scripting, switched off."""

from __future__ import annotations

from typing import Any

__all__ = [
    "Attribute", "CompilationUnit", "ScriptWarning", "interface", "script", "script_method",
]  # fmt: skip


class ScriptWarning(Warning):
    """What TorchScript warns of."""


def script(obj: Any, optimize: None = None, _frames_up: int = 0, _rcb: Any = None, example_inputs: Any = None) -> Any:
    """The function, class or module itself: Python runs it."""
    return obj


def script_method(fn: Any) -> Any:
    """The method itself."""
    return fn


def interface(obj: Any) -> Any:
    """The class itself. RuntimeError for what is no class."""
    if not isinstance(obj, type):
        raise RuntimeError("interface must be applied to a class")
    return obj


def Attribute(value: Any, type: Any) -> Any:
    """The value: its type is for TorchScript."""
    return value


def _unwrap_optional(x: Any) -> Any:
    if x is None:
        raise AssertionError("Unwrapping null optional")
    return x


class CompilationUnit:
    """Functions from a text of TorchScript."""

    def __init__(self, lang: Any = None, _frames_up: int = 0) -> None:
        if lang is not None:
            raise NotImplementedError("torch.jit.CompilationUnit needs TorchScript, which torchlite does not have yet")
