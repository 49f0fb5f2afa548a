"""Builds the source of a generated function: written by line, wrapped at the line limit, and compiled so that
tracebacks, debuggers and `inspect.getsource` show it.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Sequence
from typing import Any

from ..._types.python_source import compile_code, run_code, show_source_later
from ..dispatch_state import GLOBALS
from ..op_record import Op
from . import code_cache

WIDTH = 120


class Listing:
    """Comma-separated items in brackets, filled into as many lines as necessary."""

    def __init__(self, opening: str, items: Sequence[Piece], closing: str = ")"):
        self.opening, self.items, self.closing = opening, items, closing

    def __str__(self) -> str:
        return f"{self.opening}{', '.join(map(to_single_line, self.items))}{self.closing}"


# The integers that the hot path takes as numbers: the slow path handles larger ones.
INT64_MIN, INT64_END = "-0x8000000000000000", "0x8000000000000000"

# A part of an expression: text that stays on one line, a listing, or a chain of parts. The parts of a chain share one
# line, separated by spaces, or have one line each.
Piece = str | Listing | Sequence["Piece"]


def to_single_line(piece: Piece) -> str:
    """A piece on one line."""
    return str(piece) if isinstance(piece, (str, Listing)) else " ".join(map(to_single_line, piece))


def tuple_literal(items: Sequence[Piece], before: str = "") -> Listing:
    """A tuple display; a one-item tuple has its comma next to the bracket."""
    return Listing(f"{before}(", items, ",)" if len(items) == 1 else ")")


def join_tests(tests: Sequence[Piece], joint: str) -> list[Piece]:
    """The chain "a", "and b", "and c" of tests."""
    return [tests[0], *(f"{joint} {test}" if isinstance(test, str) else [joint, test] for test in tests[1:])]


class Source:
    """Lines of Python, each at the indentation of the block that it is written in.

    >>> source = Source()
    >>> with source.block("def double(x):"):
    ...     source.comment("Twice as much.")
    ...     source.line("return 2 * x")
    >>> print(source.text(), end="")
    def double(x):
        # Twice as much.
        return 2 * x
    """

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._indent = ""

    def text(self) -> str:
        """Everything that was written."""
        return "\n".join(self._lines) + "\n"

    def __enter__(self) -> None:
        """Indent the lines written inside `with source`."""
        self._indent += "    "

    def __exit__(self, *exc: object) -> None:
        self._indent = self._indent[4:]

    def block(self, header: str) -> Source:
        """Context manager: write a header such as `else:`, and indent the lines inside."""
        self.line(header)
        return self

    def condition(self, keyword: str, tests: Sequence[Piece], joint: str = "and") -> Source:
        """Context manager: write `if a and b:`, and indent the lines inside."""
        self.expression(f"{keyword} ", join_tests(tests, joint), ":")
        return self

    def line(self, text: str) -> None:
        """Write one line."""
        self._lines.append(self._indent + text)

    def comment(self, sentence: str) -> None:
        """Write a comment on the lines that follow."""
        self.line(f"# {sentence}")

    def expression(self, before: str, chain: Sequence[Piece], after: str = "") -> None:
        """Write `before` and an expression, in brackets if it needs several lines."""
        text = before + to_single_line(chain) + after
        if self._fits_on_line(text):
            self.line(text)
            return
        with self.block(f"{before}("):
            self.write(chain)
        self.line(f"){after}")

    def write(self, piece: Piece, after: str = "") -> None:
        """A piece, on one line if it fits."""
        text = to_single_line(piece) + after
        if isinstance(piece, str) or self._fits_on_line(text):
            self.line(text)
        elif isinstance(piece, Listing):
            with self.block(piece.opening):
                self._fill_lines(piece.items)
            self.line(piece.closing.lstrip(",") + after)
        else:
            for part in piece[:-1]:
                self.write(part)
            self.write(piece[-1], after)

    def _fill_lines(self, items: Sequence[Piece]) -> None:
        """Fill lines with comma-separated items. CPython 3.13 has an instruction that loads two local variables at once
        if their names are on one line.
        """
        row = ""
        for item in items:
            text = to_single_line(item) + ","
            if row and not self._fits_on_line(f"{row} {text}"):
                self.line(row)
                row = ""
            if self._fits_on_line(text):
                row = f"{row} {text}" if row else text
            else:
                self.write(item, ",")
        if row:
            self.line(row)

    def _fits_on_line(self, text: str) -> bool:
        return len(self._indent) + len(text) <= WIDTH


def with_traceback_filter(text: str) -> str:
    """A function's text whose errors begin in its caller (`filter_traceback`).

    >>> print(with_traceback_filter("def half(x):\\n    return x / 2\\n"), end="")
    def half(x):
        try:
            return x / 2
        except Exception:
            filter_traceback()
            raise
    """
    lines = text.splitlines()
    start = next(i for i, line in enumerate(lines) if line[0] != " " and line.endswith(":")) + 1
    body = [f"    {line}" for line in lines[start:]]
    ending = ["    except Exception:", "        filter_traceback()", "        raise"]
    return "\n".join([*lines[:start], "    try:", *body, *ending]) + "\n"


def compile_op(
    op: Op, name: str, write: Callable[[], str], constants: dict[str, Any], variant: str = "", kind: str = ""
) -> Callable:
    """The function `name` of generated source that refers to the constants: from the disk if its byte code is kept
    there, else compiled.

    Args:
        op: the record.
        name: the name that the source defines.
        write: returns the source. A function from the disk has it written when a traceback shows it.
        constants: values by the names that they have in the source.
        variant: names the op's function if it is not the public one.
        kind: distinguishes functions of one variant.
    """
    place = f"{op.file.rpartition('/')[2]}:{op.line}"
    filename = f"<torchlite op {op.name}, declared at {place}{variant and f' ({variant})'}>"
    GLOBALS.update(constants)
    code = code_cache.find(op, variant + kind)
    if code is None:
        code = compile_code(write(), filename)
        code_cache.keep(op, variant + kind, code)
    else:
        show_source_later(filename, write)
    return run_code(code, GLOBALS, {})[name]


def generated_text(function: Callable) -> str:
    """The text of a generated function; "" for any other."""
    code = getattr(function, "__code__", None)
    if code is None or not code.co_filename.startswith("<torchlite op "):
        return ""
    return "".join([*linecache.getlines(code.co_filename)])
