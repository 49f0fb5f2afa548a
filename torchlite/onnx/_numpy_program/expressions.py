"""Parts of the written source: values, statements and texts. Names from a file enter it here only."""

from __future__ import annotations

import dataclasses
import functools
import math
import re
from typing import Any

import numpy as np

from ..._types.python_source import identifier, is_identifier, one_line, quote

TOKEN = re.compile("\x00([0-9]+)\x00")
_WIDTH = 120  # columns of a line, as in the functions that programs contain
_LONGEST_NAME = 40
_OPEN, _CLOSE = "([{", ")]}"


class UnwritableError(ValueError):
    """Reason why a node, or a model, cannot be written as a NumPy program."""


@dataclasses.dataclass(frozen=True)
class Constant:
    """Value that the file has, or that follows from such values. `key` is its name among the weights, if it may be one
    of them; the program reads `stored`, and applies `view` (".T") to it.
    """

    array: np.ndarray
    key: str | None = None
    view: str = ""
    stored: np.ndarray | None = None


@dataclasses.dataclass(frozen=True)
class Sizes:
    """Integers as Python expressions, one for each element: "3", "\\x001\\x00.shape[0]", or a starred tuple. `scalar`
    is a value without dimensions.
    """

    items: tuple[str, ...]
    scalar: bool = False

    @property
    def is_plain(self) -> bool:
        """True if the number of elements is known."""
        return not any(item.startswith("*") for item in self.items)


@dataclasses.dataclass(frozen=True)
class Variable:
    """Value that a statement assigns, by number."""

    number: int

    @property
    def text(self) -> str:
        return f"\x00{self.number}\x00"


Value = Constant | Sizes | Variable


@dataclasses.dataclass
class Statement:
    """Assignment in the program. `text` is everything after the targets' `=`, or complete lines if `block`, which
    assigns the variables `inner` as well.
    """

    targets: list[int]
    text: str
    scope: tuple[str, ...] | None
    inner: tuple[int, ...] = ()
    block: bool = False

    @functools.cached_property
    def reads(self) -> list[int]:
        """Variables that it reads, in order."""
        found = dict.fromkeys(int(number) for number in TOKEN.findall(self.text))
        own = {*self.inner, *(self.targets if self.block else ())}
        return [number for number in found if number not in own]


# Names of Python that written programs use.
BUILTINS = frozenset(
    "ValueError TypeError any bool dict enumerate float getattr int isinstance len list map max min object range set "
    "slice str sum tuple type zip".split()
)


def safe_name(text: str, taken: Any, default: str) -> str:
    """Return a Python name made of a text, none of the taken ones."""
    name = re.sub(r"[^0-9A-Za-z]+", "_", text)[:_LONGEST_NAME].strip("_")
    if not is_identifier(name):
        name = f"{default}_{name}".strip("_")
    return unused_name(name, taken)


def unused_name(name: str, taken: Any) -> str:
    """Return the name, with a number if it is taken, or is one that the program uses, or no name of Python's."""
    found, count = name, 1
    while found in taken or found in BUILTINS or not is_identifier(found):
        found, count = f"{name}_{count}", count + 1
    return identifier(found)


def literal_number(value: Any) -> str:
    """Return the shortest text of a number that Python reads as the same in its dtype.

    >>> literal_number(np.float32(0.1)), literal_number(np.float64("inf")), literal_number(np.int64(3))
    ('0.1', 'np.inf', '3')
    """
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value))
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    if math.isnan(value):
        return "np.nan"
    if math.isinf(value):
        return "np.inf" if value > 0 else "-np.inf"
    text = str(value) if isinstance(value, np.floating) else repr(float(value))
    return text if any(c in text for c in ".e") else f"{text}.0"


def literal_array(array: np.ndarray) -> str:
    """Return the expression of a small array."""
    kind = f"np.{array.dtype.name}"
    if array.ndim == 0:
        return f"np.bool_({bool(array)})" if kind == "np.bool" else f"{kind}({literal_number(array[()])})"
    kind = "bool" if kind == "np.bool" else kind

    def nested(part: np.ndarray) -> str:
        return literal_number(part[()]) if part.ndim == 0 else f"[{', '.join(map(nested, part))}]"

    return f"np.array({nested(array)}, dtype={kind})"


def literal_tuple(items: Any) -> str:
    """Return a tuple's text.

    >>> literal_tuple([1]), literal_tuple([2, 3]), literal_tuple([])
    ('(1,)', '(2, 3)', '()')
    """
    texts = [item if isinstance(item, str) else literal_number(item) for item in items]
    return f"({texts[0]},)" if len(texts) == 1 else f"({', '.join(texts)})"


def docstring(lines: list[str], indent: str = "") -> str:
    """Return a docstring of lines, with everything in them that ends it or is no printable character escaped."""
    safe = [re.sub(r'"(?=")|(?<=")"|"$', '\\\\"', one_line(line).replace("\\", "\\\\")) for line in lines]
    if len(safe) == 1:
        return f'{indent}"""{safe[0]}"""'
    return "\n".join([f'{indent}"""{safe[0]}', *(f"{indent}{line}".rstrip() for line in safe[1:]), f'{indent}"""'])


def shown(text: str, limit: int = 80) -> str:
    """Return a name of a file in quotes, for docstrings and errors."""
    return quote(text if len(text) <= limit else f"{text[:limit]}...")


def wrap(line: str, indent: int) -> str:
    """Return a line of source, broken at its last bracket and then at its commas where it is too long."""
    margin = " " * indent
    if len(line) + indent <= _WIDTH:
        return margin + line
    place = _last_bracket(line)
    if place is None:
        return margin + line
    head, body, tail = line[: place + 1], line[place + 1 : _matching(line, place)], line[_matching(line, place) :]
    if len(head) + indent > _WIDTH or not body or (len(body) + indent + 4 <= 20):
        return margin + line
    inner = " " * (indent + 4)
    parts = split_commas(body)
    if len(body) + indent + 4 <= _WIDTH and not (head.endswith(("[", "{")) and len(parts) > 1):
        return f"{margin}{head}\n{inner}{body}\n{margin}{tail}"
    comma = "" if re.search(r"[\w)\]]\[$", head) or len(parts) == 1 and head.endswith("(") else ","
    lines = [wrap(f"{part}{comma}", indent + 4) for part in parts]
    return "\n".join([margin + head, *lines, margin + tail])


def wrap_header(name: str, parameters: list[str], result: str) -> str:
    """Return the first line of a function, or lines where it is too long."""
    inside, end = ", ".join(parameters), f") -> {result}:"
    if len(name) + len(inside) + len(end) + 5 <= _WIDTH:
        return f"def {name}({inside}{end}"
    if len(inside) + 4 <= _WIDTH:
        return f"def {name}(\n    {inside}\n{end}"
    return "\n".join([f"def {name}(", *(f"    {parameter}," for parameter in parameters), end])


def wrap_names(before: str, names: list[str], after: str, indent: int) -> str:
    """Return a line with names after one another, or one line for each in brackets where it is too long."""
    line = f"{before}{', '.join(names)}{after}"
    if len(names) < 2 or len(line) + indent <= _WIDTH:
        return wrap(line, indent)
    margin = " " * indent
    return "\n".join([f"{margin}{before}(", *(f"{margin}    {name}," for name in names), wrap(f"){after}", indent)])


def words(text: str) -> set[str]:
    """Return the names in a text, except those in literals."""
    return set(re.findall(r"(?<![.\w])[A-Za-z_]\w*", re.sub(r'"[^"]*"', '""', text)))


def weight_names(text: str) -> list[str]:
    """Return the names of the weights that a text reads."""
    return re.findall(r'weights\["([^"]*)"\]', text)


def _last_bracket(line: str) -> int | None:
    """Return the place of the bracket whose end is the last one of a line."""
    places = [i for i in _code_places(line) if line[i] in _OPEN]
    ends = [(i, _matching(line, i)) for i in places]
    return max(ends, key=lambda pair: (pair[1], -pair[0]))[0] if ends else None


def _code_places(line: str) -> list[int]:
    """Return the places of a line that are in no literal of a text."""
    found, mark, at = [], "", 0
    while at < len(line):
        c = line[at]
        if mark:
            at += c == "\\"
            mark = "" if c == mark else mark
        elif c in "\"'":
            mark = c
        else:
            found.append(at)
        at += 1
    return found


def _matching(line: str, place: int) -> int:
    depth = 0
    for i in _code_places(line):
        if i < place:
            continue
        depth += (line[i] in _OPEN) - (line[i] in _CLOSE)
        if depth == 0:
            return i
    return len(line)


def split_commas(text: str) -> list[str]:
    """Return the parts of a text between the commas that are in no bracket."""
    parts, depth, start = [], 0, 0
    for i in _code_places(text):
        depth += (text[i] in _OPEN) - (text[i] in _CLOSE)
        if text[i] == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    return [part for part in [*parts, text[start:].strip()] if part]
