"""Parses type texts of programs to functions that check or convert values."""

from __future__ import annotations

import ast
import enum
from collections.abc import Callable
from typing import Any

from .._dispatch.call import Tensor
from .._types.devices import device
from ..futures import Future
from ._python_translator import dotted_name
from ._runtime import SCRIPTED

_CHECKERS_BY_NAME: dict[str, Callable[[Any], bool]] = {
    "Tensor": lambda v: isinstance(v, Tensor),
    "int": lambda v: v.__class__ is int,
    "bool": lambda v: v.__class__ is bool,
    "float": lambda v: v.__class__ is float,
    "complex": lambda v: v.__class__ is complex,
    "str": lambda v: v.__class__ is str,
    "NoneType": lambda v: v is None,
    "None": lambda v: v is None,
    "Device": lambda v: v.__class__ is device,
    "Any": lambda v: True,
    "t": lambda v: True,
    "number": lambda v: v.__class__ in (int, float, complex, bool),
    "list": lambda v: v.__class__ is list,
    "tuple": lambda v: isinstance(v, tuple),
    "dict": lambda v: v.__class__ is dict,
    "Dict": lambda v: v.__class__ is dict,
    "List": lambda v: v.__class__ is list,
    "Tuple": lambda v: isinstance(v, tuple),
    "AnyList": lambda v: v.__class__ is list,
    "AnyTuple": lambda v: isinstance(v, tuple),
    "Future": lambda v: isinstance(v, Future),
}


def make_type_checker(node: ast.AST, find: Callable[[str], Any], depth: int = 0) -> Callable[[Any], bool]:
    """Return a function that tests if a value is of a type, or one of several. Raise ValueError for an invalid type."""
    if depth > 30:
        raise ValueError("a type is too deep")
    if isinstance(node, (ast.List, ast.Tuple)):
        tests = [make_type_checker(part, find, depth + 1) for part in node.elts]
        return lambda v: any(test(v) for test in tests)
    if isinstance(node, ast.Constant) and node.value is None:
        return _CHECKERS_BY_NAME["NoneType"]
    path = dotted_name(node)
    if path is not None:
        return _make_named_type_checker(path, find)
    if not isinstance(node, ast.Subscript):
        raise ValueError(f"{ast.unparse(node)[:100]} is no type")
    outer = (dotted_name(node.value) or "").rpartition(".")[2]
    inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    return _make_container_checker(
        outer, [make_type_checker(part, find, depth + 1) for part in inner], ast.unparse(node)[:100]
    )


def _make_named_type_checker(path: str, find: Callable[[str], Any]) -> Callable[[Any], bool]:
    if path in ("torch.Tensor", "torch.device"):
        path = {"torch.Tensor": "Tensor", "torch.device": "Device"}[path]
    if path in _CHECKERS_BY_NAME:
        return _CHECKERS_BY_NAME[path]
    found = find(path) if path.startswith("__torch__.") else None
    if isinstance(found, type):
        return lambda v: v.__class__ is found
    if found is not None and hasattr(found, "methods"):
        if found.kind == "interface":
            return lambda v: v.__class__ in SCRIPTED
        return lambda v: v.__class__ in SCRIPTED and v._script is found
    raise ValueError(f"Unknown type name '{path[:100]}'")


def _make_container_checker(outer: str, tests: list, text: str) -> Callable[[Any], bool]:
    if outer in ("Optional", "Union"):
        return lambda v: v is None and outer == "Optional" or any(test(v) for test in tests)
    if outer in ("List", "list") and len(tests) == 1:
        return lambda v: v.__class__ is list and all(map(tests[0], v))
    if outer in ("Dict", "dict") and len(tests) == 2:
        return lambda v: v.__class__ is dict and all(tests[0](k) and tests[1](x) for k, x in v.items())
    if outer in ("Tuple", "tuple"):
        return lambda v: (
            isinstance(v, tuple) and len(v) == len(tests) and all(t(x) for t, x in zip(tests, v, strict=True))
        )
    if outer in ("Future", "Final", "Await", "RRef") and len(tests) == 1:
        return _CHECKERS_BY_NAME["Future"] if outer == "Future" else tests[0]
    raise ValueError(f"{text} is no type")


def make_enum_member_converter(node: ast.AST | None, find: Callable[[str], Any]) -> Callable[[Any], Any] | None:
    """Return a converter of Python enum members to a program's, also inside lists, tuples and dictionaries. Return None
    for types without enums. Raise TypeError for a value that is no member.

    A program has its own enums: members correspond by name and value.
    """
    path = dotted_name(node) if node is not None else None
    if path is not None:
        found = find(path) if path.startswith("__torch__.") else None
        return _make_enum_converter(found) if isinstance(found, enum.EnumMeta) else None
    if not isinstance(node, ast.Subscript):
        return None
    outer = (dotted_name(node.value) or "").rpartition(".")[2]
    inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    parts = [make_enum_member_converter(part, find) for part in inner]
    return _make_nested_enum_converter(outer, parts) if any(parts) else None


def _make_enum_converter(found: enum.EnumMeta) -> Callable[[Any], Any]:
    def member(value: Any) -> Any:
        if not isinstance(value, enum.Enum):
            raise TypeError(f"'{type(value).__name__}' is no member of an enumeration")
        own: Any = found.__members__.get(value.name)
        return own if own is not None and own.value == value.value else value

    return member


def _make_nested_enum_converter(outer: str, parts: list) -> Callable[[Any], Any] | None:
    last = parts[-1]
    if outer == "Optional":
        return lambda v: None if v is None else last(v)
    if outer in ("List", "list"):
        return lambda v: [last(x) for x in v]
    if outer in ("Dict", "dict"):
        return lambda v: {k: last(x) for k, x in v.items()} if isinstance(v, dict) and last else v
    if outer in ("Tuple", "tuple"):
        return lambda v: tuple(x if p is None else p(x) for p, x in zip(parts, v, strict=True)) if v else v
    return None
