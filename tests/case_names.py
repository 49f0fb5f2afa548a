"""Names of parametrized cases: descriptions of the arguments, for pytest and for the op table."""

from __future__ import annotations

import ast
import enum
import functools
import inspect
import re
import types
from pathlib import Path
from typing import Any

import numpy as np

import torchlite as torch

_LONGEST, _LONGEST_TEXT = 60, 100


def case_name(value: Any, parameter: str) -> str | None:
    """The name of a parameter's value in a test id; None where pytest's own is good."""
    if isinstance(value, str) and len(value) <= _LONGEST_TEXT:
        return value or f"{parameter}=''"
    if isinstance(value, (str, bytes)):  # pytest calls long texts by their positions
        return f"{str(value)[: _LONGEST_TEXT - 2]}.." if len(value) > _LONGEST_TEXT else None
    if isinstance(value, (bool, int, float, complex, type(None), np.generic)) and not isinstance(value, enum.Enum):
        return f"{parameter}={value}"
    if _is_shape(value) and re.search("shape|size|lead|batch", parameter):
        return shape_name(value) if len(value) != 1 else f"{parameter}={value[0]}"
    text = described(value)
    if isinstance(value, (tuple, list, dict, set)):
        text = f"{parameter}={text}"
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 2]}.."


def shape_name(shape: tuple[int, ...]) -> str:
    """A shape as text: "2x3", "0-d" without dimensions."""
    return "x".join(map(str, shape)) if len(shape) else "0-d"


def described(value: Any) -> str:
    """A value as short text: dtypes and functions by their names, tensors by dtype and shape, containers by items."""
    if isinstance(value, torch.dtype):
        return str(value).removeprefix("torch.")
    if isinstance(value, np.dtype):
        return value.name
    if isinstance(value, (np.ndarray, torch.Tensor)):
        return f"{described(value.dtype)}[{shape_name(tuple(value.shape))}]"
    if isinstance(value, functools.partial):
        arguments = [*map(described, value.args), *(f"{k}={described(v)}" for k, v in value.keywords.items())]
        return f"{described(value.func)}({','.join(arguments)})"
    if isinstance(value, types.FunctionType) and value.__name__ == "<lambda>":
        return _lambda_text(value)
    if isinstance(value, re.Pattern):
        return value.pattern
    if isinstance(value, dict):
        return ",".join(f"{key}={described(item)}" for key, item in value.items()) or "{}"
    if type(value) in (tuple, list, set, frozenset):
        opening, closing = "()" if isinstance(value, tuple) else "[]" if isinstance(value, list) else "{}"
        comma = "," if isinstance(value, tuple) and len(value) == 1 else ""
        items = list(map(described, value))  # of a set in an order that is the same in all processes
        return f"{opening}{','.join(sorted(items) if isinstance(value, (set, frozenset)) else items)}{comma}{closing}"
    name = getattr(value, "__name__", None)
    if isinstance(name, str) and callable(value):
        return name
    text = re.sub(r"\s+", " ", repr(value))
    return type(value).__name__ if " at 0x" in text else text


def _is_shape(value: Any) -> bool:
    return type(value) in (tuple, list, torch.Size) and all(type(n) is int for n in value)


def _lambda_text(function: types.FunctionType) -> str:
    """The text of a lambda's body, from its file."""
    code = function.__code__
    places = [p for p in code.co_positions() if p[0] and p[1] and p[2] is not None and p[3]]
    if not places:
        return "lambda"
    first, last = min((p[0], p[2]) for p in places), max((p[1], p[3]) for p in places)
    bodies = _lambda_bodies(inspect.getsourcefile(code) or "")
    found = bodies.get((first, last)) or next((text for (start, _), text in bodies.items() if start == first), None)
    return found or "lambda"


@functools.cache
def _lambda_bodies(file: str) -> dict[tuple[tuple[int, int], tuple[int, int]], str]:
    """The bodies of the lambdas in a file by their places in it."""
    if not Path(file).is_file():
        return {}
    bodies = [node.body for node in ast.walk(ast.parse(Path(file).read_text())) if isinstance(node, ast.Lambda)]
    return {
        ((b.lineno, b.col_offset), (b.end_lineno or 0, b.end_col_offset or 0)): re.sub(r"\s+", " ", ast.unparse(b))
        for b in bodies
    }


def unnamed(case: str, params: dict[str, Any]) -> str | None:
    """Return why the name of a case does not describe its arguments, or None."""
    if "<lambda>" in case:
        return "a lambda without a name"
    values = {str(value) for value in params.values()}
    if case.isdecimal() and case not in values:
        return f"'{case}', a position and not an argument"
    for parameter in params:
        found = re.search(rf"(?:^|-)({re.escape(parameter)}\d+)(?:-|$)", case)
        if found and found[1] not in values:
            return f"'{found[1]}', a position and not an argument"
    return None
