"""Converts Python arguments to the types of a TorchScript function's schema."""

from __future__ import annotations

import ast
from typing import Any, NamedTuple

from .._dispatch.call import Tensor
from .._dispatch.dispatch_state import MODE
from .._types import dtypes
from .._types.layouts import Size, layout, memory_format
from .._types.python_source import literal
from ..autograd.grad_mode import set_grad_enabled
from ._dtype_codes import to_code
from ._runtime import CONTAINERS, as_runtime_error
from ._value_limits import count_visited

_PLAIN_TYPES = (Tensor, int, float, bool, str, type(None))


class Parameter(NamedTuple):
    """Parameter of a function: name, type and default, both as text."""

    name: str
    type: str
    default: str | None

    def has_default_value(self) -> bool:
        """True if the parameter is optional."""
        return self.default is not None

    @property
    def value(self) -> Any:
        """Return the default; for a non-literal, its text."""
        try:
            return literal(self.default or "None")
        except ValueError:
            return self.default


class Schema:
    """Parameters and result of a function, printed as in PyTorch."""

    def __init__(self, name: str, node: ast.FunctionDef | None, owner: str | None):
        self.name, self.node, self._owner = name, node, owner

    def __str__(self) -> str:
        if self.node is None:
            return f"{self.name}(...) -> Tensor"
        parts = [f"{p.type} {p.name}" + ("" if p.default is None else f"={p.default}") for p in self.arguments]
        return f"{self.name}({', '.join(parts)}) -> {_python_type_name(self.node.returns)}"

    @property
    def arguments(self) -> list[Parameter]:
        """Return the parameters, including self first for methods."""
        if self.node is None:
            return []
        a = self.node.args
        written: list[str | None] = [None] * (len(a.args) - len(a.defaults)) + [
            ast.unparse(default) for default in a.defaults
        ]
        kinds = [_python_type_name(p.annotation) for p in a.args]
        if kinds and self._owner:
            kinds[0] = self._owner
        return [Parameter(p.arg, kind, text) for p, kind, text in zip(a.args, kinds, written, strict=True)]

    __repr__ = __str__


def _python_type_name(annotation: ast.AST | None) -> str:
    return "Tensor" if annotation is None else ast.unparse(annotation)


def make_schema(script: Any, name: str) -> Schema:
    """Return the schema of a method or function."""
    return Schema(name, script.nodes.get(name), script.name if script.kind == "Module" else None)


def _to_program_value(value: Any) -> Any:
    """Return a Python value as a TorchScript value."""
    cls = value.__class__
    if cls is Tensor or cls in _PLAIN_TYPES:
        return value
    if cls is Size:
        return list(value)
    if cls is dtypes.dtype or cls is layout or cls is memory_format:
        return to_code(value)
    if cls is tuple:
        return tuple(map(_to_program_value, value))
    return value


def call_function(function: Any, owner: Any, script: Any, name: str, args: tuple, kwargs: dict) -> Any:
    """Call a program's function. Raise RuntimeError for arguments that do not match its schema."""
    if not kwargs and tuple([a.__class__ for a in args]) == script.tensors_of(name):
        return _call_with_context(function, (owner, *args) if owner is not None else args, {}, script)
    if script.by_python:
        given = list(args)
    else:
        given = [a if a.__class__ in _PLAIN_TYPES else _to_program_value(a) for a in args]
    if kwargs and not script.by_python:
        kwargs = {key: _to_program_value(value) for key, value in kwargs.items()}
    own = () if owner is None else (owner,)
    node = script.nodes.get(name)
    if node is not None:
        _check_call_arguments(node, len(own), given, kwargs, script, name)
    return _call_with_context(function, (*own, *given), kwargs, script)


def _call_with_context(function: Any, args: tuple, kwargs: dict, script: Any) -> Any:
    if script.by_python:
        return function(*args, **kwargs)
    grad = MODE.grad
    try:
        result = function(*args, **kwargs)
    except Exception as error:  # TorchScript's errors are RuntimeErrors
        found = as_runtime_error(error)
        if found is error:
            raise
        raise found from None
    finally:
        if MODE.grad is not grad and script.of_file:
            set_grad_enabled(grad)
    if script.of_file and result.__class__ in CONTAINERS:
        count_visited(result, tensor=0)
    return result


# Dtypes, layouts and memory formats are ints in programs.
_NUMBERS = {"int": (int, dtypes.dtype, layout, memory_format), "float": (float, int), "bool": (bool,), "str": (str,)}


def _check_call_arguments(node: ast.FunctionDef, skip: int, given: list, kwargs: dict, script: Any, name: str) -> None:
    a = node.args
    names = [p.arg for p in a.args[skip:]]
    if len(given) > len(names):
        raise RuntimeError(
            f"{name}() expected at most {len(names) + skip} argument(s) but received {len(given) + skip} argument(s). "
            f"Declaration: {make_schema(script, name)}"
        )
    for key in kwargs:
        if key not in names and key not in [p.arg for p in a.kwonlyargs]:
            raise RuntimeError(
                f"Unknown keyword argument '{key}' for operator '{name}'. Schema: {make_schema(script, name)}"
            )
    required = len(names) - len(a.defaults)
    for place, one in enumerate(names):
        if place >= len(given) and one not in kwargs and place < required:
            raise RuntimeError(
                f"{name}() is missing value for argument '{one}'. Declaration: {make_schema(script, name)}"
            )
    for place, value in enumerate(given):
        given[place] = _convert_argument(a.args[place + skip], value, script, name, place + skip)
    for p in a.args[skip + len(given) :]:
        if p.arg in kwargs:
            kwargs[p.arg] = _convert_argument(p, kwargs[p.arg], script, name, None)


def _convert_argument(parameter: ast.arg, value: Any, script: Any, name: str, place: int | None) -> Any:
    """Return a value as its parameter's type, for example an int as float. Raise RuntimeError for other types."""
    kind = parameter.annotation
    expected = kind.id if isinstance(kind, ast.Name) else "Tensor" if kind is None else None
    if expected == "Tensor":
        fits = isinstance(value, Tensor)
    elif expected in _NUMBERS:
        fits = isinstance(value, _NUMBERS[expected]) and (expected == "bool" or not isinstance(value, bool))
        if expected == "float" and fits:
            value = float(value)
        elif isinstance(value, Tensor) and value.numel() == 1:
            return {"int": int, "float": float, "bool": bool}.get(expected, str)(value.item())
    else:
        fits, members = True, script.members_of(name, parameter)
        if members is not None:
            try:
                return members(value)
            except (TypeError, ValueError):
                fits, path = False, _python_type_name(kind)
                expected = f"Enum<{path}>" if path.startswith("__torch__.") else path
    if not fits:
        at = "" if place is None else f"\nPosition: {place}"
        raise RuntimeError(
            f"{name}() Expected a value of type '{expected}' for argument '{parameter.arg}' but instead found type "
            f"'{type(value).__name__}'.{at}\nDeclaration: {make_schema(script, name)}"
        )
    return value
