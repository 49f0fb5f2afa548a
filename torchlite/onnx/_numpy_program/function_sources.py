"""The functions that written programs contain: their sources, and which of them need others."""

from __future__ import annotations

import ast
import functools
import inspect
import re
from types import ModuleType
from typing import Any

from ..._types.python_source import parse
from . import array_functions, elementwise_functions, layer_functions, recurrent_functions

_MODULES: tuple[ModuleType, ...] = (array_functions, elementwise_functions, layer_functions, recurrent_functions)


@functools.cache
def program_functions() -> dict[str, Any]:
    """Return all functions by name, in the order of their modules."""
    return {
        name: value
        for module in _MODULES
        for name, value in vars(module).items()
        if inspect.isfunction(value) and value.__module__ == module.__name__
    }


@functools.cache
def needed_functions(name: str) -> frozenset[str]:
    """Return the functions and modules that a function names."""
    found = {node.id for node in ast.walk(parse(function_source(name))) if isinstance(node, ast.Name)}
    return frozenset(found & {*program_functions(), "math", "np"} - {name})


@functools.cache
def function_source(name: str) -> str:
    """Return a function's source, without comments for checkers."""
    text = inspect.getsource(program_functions()[name]).rstrip()
    return re.sub(r"  # type: ignore\[[a-z-]+\]$", "", text, flags=re.MULTILINE)


def with_needed(names: Any) -> list[str]:
    """Return functions with those that they need, in the order of their modules."""
    found: set[str] = set()
    open_ = list(names)
    while open_:
        name = open_.pop()
        if name not in found and name in program_functions():
            found.add(name)
            open_ += needed_functions(name)
    return [name for name in program_functions() if name in found]


def modules_of(names: list[str]) -> set[str]:
    """Return the modules that functions need."""
    return {module for name in names for module in needed_functions(name) & {"math"}}
