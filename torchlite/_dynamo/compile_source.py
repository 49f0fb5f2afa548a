"""Compiles generated source to functions, with lines visible to tracebacks and debuggers."""

from __future__ import annotations

import itertools
import types
from typing import Any

from .._types.python_source import compile_function

_numbers = itertools.count()


def define_function(name: str, text: str, space: dict[str, Any]) -> types.FunctionType:
    """Return the function of a name that a source defines; tracebacks and debuggers show its lines."""
    place = f"<torchlite.compile {next(_numbers)} {name}>"
    function = compile_function(name, text, place, space)
    function.text = text  # type: ignore[attr-defined]
    return function
