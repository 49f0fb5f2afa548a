"""TorchScript's operators on strings: formatting, padding, search and conversion of values to text."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

from ._value_limits import _MAX_PRINTED_ELEMENTS, _MAX_REPEATED_LENGTH, VISITS, _check_length, count_visited


def format_value(value: Any) -> str:
    """Format a value as TorchScript prints it. Raise RuntimeError if that would take too long."""
    if value.__class__ is not str:
        count_visited(value, tensor=_MAX_PRINTED_ELEMENTS)
    return _format_value(value)


def _format_value(value: Any) -> str:
    kind = value.__class__
    if kind is float:
        return (
            f"{int(value)}."
            if math.isfinite(value) and value == int(value) and abs(value) < 1e15
            else _format_tensor(value)
        )
    if kind is str:
        return value
    if kind is list:
        return "[" + ", ".join(map(_format_value, value)) + "]"
    if kind is tuple:
        return "(" + ", ".join(map(_format_value, value)) + (",)" if len(value) == 1 else ")")
    if kind is dict:
        return "{" + ", ".join(f"{_format_value(k)}: {_format_value(v)}" for k, v in value.items()) + "}"
    # Other objects print by Python, which would show addresses.
    return f"<{kind.__name__}>" if kind.__repr__ is object.__repr__ or callable(value) else str(value)


def _format_tensor(value: float) -> str:
    return format(value, ".6g")


def to_str(value: Any) -> str:
    """`str(value)` of a program."""
    return value if value.__class__ is str else str(value) if value.__class__ is float else format_value(value)


def str_format(pattern: str, *values: Any) -> str:
    """`"{} {}".format(a, b)`: supports empty braces only."""
    parts = pattern.split("{}")
    if len(values) < len(parts) - 1:
        raise RuntimeError("Too few arguments for format string: " + pattern[:200])
    if len(values) >= len(parts):
        raise RuntimeError("Too many arguments for format string: " + pattern[:200])
    count_visited(values, tensor=_MAX_PRINTED_ELEMENTS)
    out = [parts[0]]
    for value, part in zip(values, parts[1:], strict=True):
        out += (_format_value(value), part)
    return "".join(out)


_PERCENT = re.compile(r"%(.?)", re.DOTALL)


def str_percent(pattern: str, *values: Any) -> str:
    """`"%d" % value`, with plain conversions only."""
    count_visited(values, tensor=_MAX_PRINTED_ELEMENTS)
    given = iter(values[0] if len(values) == 1 and values[0].__class__ is tuple else values)

    def format_one(match: Any) -> str:
        letter = match[1]
        if letter == "%":
            return "%"
        value: Any = next(given, given)
        if value is given:
            raise RuntimeError("Too few arguments for format string: " + pattern[:200])
        if letter in ("d", "i"):
            return str(int(value))
        if letter in ("f", "F", "e", "E", "g", "G"):
            return format(float(value), "." + "6" + letter)
        if letter in ("x", "X"):
            return format(int(value), letter)
        if letter == "c":
            return value if isinstance(value, str) else chr(value)
        if letter == "s":
            return _format_value(value)
        raise RuntimeError(f"The specifier %{letter} is not supported in TorchScript format strings")

    out = _PERCENT.sub(format_one, pattern)
    if next(given, given) is not given:
        raise RuntimeError("Too many arguments for format string: " + pattern[:200])
    return out


def _make_padding(name: str) -> Callable:
    method = getattr(str, name)

    def pad(value: str, width: int, *fill: str) -> str:
        if width > _MAX_REPEATED_LENGTH:
            raise RuntimeError(f"text cannot be {width} letters wide")
        return method(value, width, *fill)

    return pad


def _replace_text(value: str, old: str, new: str, count: int = -1) -> str:
    found = value.count(old)
    _check_length(len(value) + found * max(0, len(new) - len(old)))
    return value.replace(old, new, count)


def _make_find(name: str) -> Callable:
    method = getattr(str, name)

    def find(value: str, part: str, start: int = 0, end: int = -1) -> int:
        if name[0] == "r":
            _check_search(value, part)
        return method(value, part, start, len(value) if end == -1 else end)

    return find


def _check_search(value: str, part: Any) -> None:
    """Raise RuntimeError if a reverse search, quadratic in the worst case, would take too long."""
    if part.__class__ is str and len(value) * len(part) > VISITS << 4:
        raise RuntimeError(f"text of {len(part)} letters cannot be searched for in {len(value)} from the right")


def _search_from_right(name: str) -> Callable:
    method = getattr(str, name)

    def run(value: str, separator: Any = None, *rest: Any) -> Any:
        _check_search(value, separator)
        return method(value, separator, *rest)

    return run


def _join_texts(separator: str, parts: list) -> str:
    _check_length(len(separator) * len(parts) + sum(map(len, parts)))
    return separator.join(parts)


def _expandtabs(value: str, size: int = 8) -> str:
    _check_length(max(0, value.count("\t") * size))
    if size > _MAX_REPEATED_LENGTH:
        raise RuntimeError(f"text cannot be {size} letters wide")
    return value.expandtabs(size)


_TEXT = (
    "capitalize isalnum isalpha isdecimal isdigit isidentifier islower isnumeric isprintable isspace istitle isupper "
    "lower upper title swapcase casefold strip lstrip rstrip splitlines partition startswith endswith"
).split()
