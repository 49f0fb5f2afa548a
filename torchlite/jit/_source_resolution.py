"""Resolves the source of functions to compile: definition, visible names and annotations.

A Python function has its source and globals. A function from a text (`CompilationUnit`, `ScriptModule.define`) sees
names of the defining frame and TorchScript's types. Text is never evaluated: annotations and defaults are literals,
names, attributes and type subscripts.
"""

from __future__ import annotations

import ast
import builtins
import collections
import copy
import inspect
import textwrap
import types
import typing
import warnings
from collections.abc import Mapping
from typing import Any

import torchlite as torch

from .._types.python_source import parse
from ..futures import Future
from ._function_modifiers import BroadcastingListCls, overload_hints


class FunctionDefinition:
    """Function defined by a text."""

    __module__ = "__main__"

    def __init__(self, node: ast.FunctionDef, text: str, names: Mapping[str, Any], start: int = 1):
        self.node, self.text, self.names, self.start = node, text, names, start
        self.__name__ = self.__qualname__ = node.name
        self.__module__ = "__main__"


class FunctionSource:
    """Definition, text, location and visible names of a function."""

    def __init__(self, function: Any, classes: Mapping[str, Any] = types.MappingProxyType({}), overload: Any = None):
        """classes: classes whose methods are compiled now, as a decorated class is not yet bound in its module.
        overload: the declaration that has the annotations, of a function with overloads.
        """
        self.function = None if isinstance(function, FunctionDefinition) else function
        self.overload = overload
        if isinstance(function, FunctionDefinition):
            self.node, self.text, self.names = copy.deepcopy(function.node), function.text, function.names
            self.file, self.start = "<string>", function.start
            return
        plain = inspect.unwrap(function)
        self.node, self.text = _parse_definition(function)
        closure = inspect.getclosurevars(function) if not isinstance(function, types.MethodType) else None
        self.names = {**classes, **plain.__globals__, **(closure.nonlocals if closure is not None else {})}
        self.file, self.start = plain.__code__.co_filename, plain.__code__.co_firstlineno

    def defaults(self) -> list[Any]:
        """Return the defaults in order; for functions from text, syntax nodes."""
        if self.function is None:
            return list(self.node.args.defaults)
        return list(getattr(inspect.unwrap(self.overload or self.function), "__defaults__", None) or ())

    def hints(self) -> dict[str, Any]:
        """Return annotations by parameter name: types, or None if the node must be parsed."""
        if self.function is None:
            a = self.node.args
            found = {p.arg: p.annotation for p in (*a.args, *a.kwonlyargs) if p.annotation is not None}
            return found | ({"return": self.node.returns} if self.node.returns is not None else {})
        try:
            hints = typing.get_type_hints(self.function, {**self.names})
            if self.overload is not None:
                return hints | typing.get_type_hints(self.overload)
            return overload_hints(self.function) | hints
        except (NameError, TypeError) as error:
            raise RuntimeError(f"Unknown type name: {error}") from None


def _parse_definition(function: Any) -> tuple[ast.FunctionDef, str]:
    """Return the syntax tree of a function. Raise OSError with PyTorch's message if the source is unavailable."""
    try:
        text = textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError):
        raise OSError(
            f"Can't get source for {function}. TorchScript requires source access in order to carry out "
            "compilation, make sure original .py files are available."
        ) from None
    try:
        tree = parse(text)
    except SyntaxError:  # part of a longer expression
        tree = ast.Module([], [])
    found = next((n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)), None)
    if found is None or function.__name__ == "<lambda>":
        raise RuntimeError("Expected a single top-level function")
    return found, text


def class_definitions(text: str, names: Mapping[str, Any]) -> list[FunctionDefinition]:
    """Return the functions of a text, which can call each other. Raise RuntimeError for other content."""
    text = textwrap.dedent(text)
    try:
        body = parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise RuntimeError(f"expected a definition of a function: {type(error).__name__}: {str(error)[:200]}") from None
    own: dict[str, Any] = {}
    seen = collections.ChainMap(own, dict(names) if not isinstance(names, dict) else names)
    found = []
    for node in body:
        if not isinstance(node, ast.FunctionDef):
            raise RuntimeError(f"expected def but found '{type(node).__name__}' here:\n{ast.unparse(node)[:200]}")
        definition = FunctionDefinition(node, text, seen, 1)
        own[node.name] = definition
        found.append(definition)
    return found


def names_in_frame(up: int) -> dict[str, Any]:
    """Return the names visible in a caller's frame, locals before globals. up: number of callers."""
    import sys

    frame = sys._getframe(up + 1)
    return {**frame.f_globals, **frame.f_locals}


# Type names of the language.
_TYPES: dict[str, Any] = {
    "Tensor": torch.Tensor,
    "List": typing.List,  # noqa: UP006
    "Dict": typing.Dict,  # noqa: UP006
    "Tuple": typing.Tuple,  # noqa: UP006
    "Optional": typing.Optional,
    "Union": typing.Union,
    "Any": typing.Any,
    "Future": Future,
    "NoneType": None,
    "None": None,
    "Device": torch.device,
    "number": typing.Union[int, float, complex],
    "Final": typing.Final,
}


class UnresolvedType(RuntimeError):
    """An annotation that names no type."""


def type_value(node: ast.AST, names: Mapping[str, Any]) -> Any:
    """Return the Python type of an annotation. Raise UnresolvedType if it names none."""
    if isinstance(node, ast.Constant):
        if isinstance(node.value, str):
            try:
                return type_value(parse(node.value.strip(), mode="eval").body, names)
            except SyntaxError:
                raise UnresolvedType(f"Unknown type name '{node.value[:100]}'") from None
        if node.value is None or node.value is Ellipsis:
            return node.value
    if isinstance(node, ast.Name):
        if node.id in names:
            return names[node.id]
        if node.id in _TYPES:
            return _TYPES[node.id]
        found = getattr(builtins, node.id, UnresolvedType)
        if found is UnresolvedType:
            raise UnresolvedType(f"Unknown type name '{node.id[:100]}'")
        return found
    if isinstance(node, ast.Attribute):
        owner = type_value(node.value, names)
        found = None if node.attr.startswith("__") else getattr(owner, node.attr, UnresolvedType)
        if found is None or found is UnresolvedType:
            raise UnresolvedType(f"Unknown type name '{ast.unparse(node)[:100]}'")
        return found
    if isinstance(node, ast.Subscript):
        return _resolve_container_type(node, names)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return typing.Union[type_value(node.left, names), type_value(node.right, names)]
    if isinstance(node, ast.Tuple) and not node.elts:
        return ()
    raise UnresolvedType(f"Unknown type constructor or type expression '{ast.unparse(node)[:100]}'")


def _resolve_container_type(node: ast.Subscript, names: Mapping[str, Any]) -> Any:
    outer = type_value(node.value, names)
    inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    parts = tuple(type_value(part, names) for part in inner)
    if isinstance(node.slice, ast.Tuple) and not node.slice.elts:
        parts = ((),)
    if isinstance(outer, BroadcastingListCls):
        outer = typing.List  # noqa: UP006
    module = getattr(outer, "__module__", None) or type(outer).__module__
    if module not in ("typing", "builtins", "types", "collections", "collections.abc") and outer is not Future:
        raise UnresolvedType(f"Unknown type constructor '{ast.unparse(node.value)[:100]}'")
    try:
        return outer[parts if len(parts) != 1 else parts[0]]
    except TypeError as error:
        raise UnresolvedType(f"{ast.unparse(node)[:100]}: {error}") from None


def warn_of_annotations(module: Any) -> None:
    """Warn if `__init__` annotates an attribute with an empty container: the annotation is lost."""
    init = type(module).__dict__.get("__init__")
    if not isinstance(init, types.FunctionType):
        return
    try:
        node = _parse_definition(init)[0]
    except (OSError, RuntimeError):
        return
    known = getattr(type(module), "__annotations__", {})
    for part in ast.walk(node):
        if not isinstance(part, ast.AnnAssign) or not isinstance(part.target, ast.Attribute) or part.value is None:
            continue
        if part.target.attr not in known and _is_empty(part.value, part.annotation):
            warnings.warn(
                "The TorchScript type system doesn't support instance-level annotations on empty non-base types in "
                "`__init__`. Instead, either 1) use a type annotation in the class body, or 2) wrap the type in "
                "`torch.jit.Attribute`.",
                stacklevel=4,
            )


def _is_empty(value: ast.AST, annotation: ast.AST) -> bool:
    """True if a value is an empty list or dictionary, or None."""
    if isinstance(value, ast.List):
        return not value.elts
    if isinstance(value, ast.Dict):
        return not value.keys
    if isinstance(value, ast.Constant) and value.value is None:
        return True
    if isinstance(value, ast.Call) and ast.unparse(value.func) == "torch.jit.annotate" and len(value.args) == 2:
        return _is_empty(value.args[1], annotation)
    return isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in ("list", "dict")
