"""Conservative call graph: functions that a call may reach, by names in their bytecode."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from torchlite._dispatch.tracing import unwrap_traced
from torchlite._types.package_name import is_torchlite_object

_WRAPPERS = (classmethod, staticmethod, MethodType)


@functools.lru_cache(4096)
def referenced_names(code: CodeType) -> frozenset[str]:
    """Return global names and attributes that a code object and nested code use."""
    inner = (referenced_names(value) for value in code.co_consts if isinstance(value, CodeType))
    return frozenset(code.co_names).union(*inner)


def reachable_functions(*roots: Any) -> Iterator[FunctionType]:
    """Return the functions, classes and objects given and the user functions they may call, each once."""
    seen: dict[int, Any] = {}
    waiting = list(roots)
    while waiting:
        value = unwrap_traced(waiting.pop())
        if id(value) in seen:
            continue
        seen[id(value)] = value
        if isinstance(value, _WRAPPERS):
            waiting.append(value.__func__)
        elif isinstance(value, property):
            waiting += [value.fget]
        elif isinstance(value, functools.partial):
            waiting.append(value.func)
        elif isinstance(value, FunctionType):
            waiting += _iterate_function_callees(value)
            yield value
        elif isinstance(value, type):
            waiting += [part for base in value.__mro__ if not _is_library(base) for part in vars(base).values()]
        elif not _is_library(type(value)) and not isinstance(value, ModuleType):
            waiting += [type(value), *_iterate_attribute_callees(value)]


def _iterate_function_callees(function: FunctionType) -> Iterator[Any]:
    """Yield the possible callees of a function's code."""
    names, space = referenced_names(function.__code__), function.__globals__
    # Another thread may delete a name meanwhile: its trace restores rebound names.
    for name in names & space.keys():
        value = unwrap_traced(space.get(name))
        if isinstance(value, ModuleType):
            if not _is_library(value):
                yield from (
                    found
                    for name in names & vars(value).keys()
                    if _iterate_value_callees(found := vars(value).get(name))
                )
        elif _iterate_value_callees(value):
            yield value
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # the cell is empty
            continue
    if (wrapped := vars(function).get("__wrapped__")) is not None:
        yield wrapped


def _iterate_value_callees(value: Any) -> bool:
    return isinstance(value, (FunctionType, type, functools.partial)) and not _is_library(value)


def _iterate_attribute_callees(value: Any) -> Iterator[Any]:
    """Yield what an object's attributes may run."""
    for field in list(getattr(value, "__dict__", {}).values()):
        if isinstance(field, (FunctionType, MethodType, functools.partial)) or not _is_library(type(field)):
            yield field


def _is_library(value: Any) -> bool:
    """True if a class, function or module belongs to Python, NumPy or torchlite."""
    name = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
    root = str(name).partition(".")[0]
    return (
        root in sys.stdlib_module_names
        or root == "numpy"
        or root.startswith("torchlite")
        or is_torchlite_object(str(name))
    )
