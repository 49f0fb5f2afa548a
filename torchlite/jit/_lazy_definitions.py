"""Parses the definitions of a program's text lazily.

A syntax tree takes about two hundred times the bytes of its text, so a file is never parsed at once. As PyTorch's
printer writes them, definitions start in the first column and methods after two spaces.
"""

from __future__ import annotations

import ast
import re
from typing import Any

from ._insert_deletions import walk
from ._python_translator import ProgramError, parse

_BEGIN = re.compile(r"^(?![\s#)\]}]|$)(?:(def|class)\s+(\w+))?", re.MULTILINE)
_METHOD = re.compile(r"^  def\s+(\w+)", re.MULTILINE)


class LazyDefinition:
    """A definition of a function or class. methods: of a class. `owner` of a method is True."""

    __slots__ = ("_header", "_line", "_longest", "_where", "is_class", "methods", "name", "owner", "text")

    def __init__(
        self, name: str, text: str, line: int, where: str, longest: int | None, is_class: bool = False,
        owner: bool = False,
    ):  # fmt: skip
        self.name, self.text, self._line, self._where, self._longest = name, text, line, where, longest
        self.is_class, self.owner = is_class, owner
        self.methods: list[LazyDefinition] = []
        self._header = text
        if is_class:
            found = list(_METHOD.finditer(text))
            before = 0
            for begin, end in zip(found, [*found[1:], None], strict=False):
                line += text.count("\n", before, begin.start())
                before = begin.start()
                part = text[before : len(text) if end is None else end.start()]
                self.methods.append(LazyDefinition(begin[1], part, line, where, longest, owner=True))
            self._header = text[: found[0].start()] if found else text

    def parsed(self) -> Any:
        """Return the syntax tree."""
        return self._parse_one(self.text)

    def header(self) -> Any:
        """Return the tree of a class without its methods."""
        text = self._header
        return self._parse_one(text if text is self.text else f"{text}  pass\n")

    def _parse_one(self, text: str) -> Any:
        if self._longest is not None and len(text) > self._longest:
            raise ProgramError(f"{self.name[:100]} is longer than a file of this length can have (in {self._where})")
        body: list[Any] = parse(f"class _:\n{text}" if self.owner else text, self._where).body
        if self.owner:
            body = body[0].body if len(body) == 1 else body
        wanted = ast.ClassDef if self.is_class else ast.FunctionDef
        if len(body) != 1 or not isinstance(body[0], wanted) or body[0].name != self.name:
            raise ProgramError(f"a program has classes and functions only, methods last (in {self._where})")
        more = self._line - 1 - self.owner
        for part in walk(body[0]) if more else ():
            if hasattr(part, "lineno"):
                part.lineno += more
                part.end_lineno += more  # type: ignore[attr-defined]
        return body[0]

    def lines(self, node: Any) -> str:
        """Return the text of a definition without indentation."""
        lines = self.text.split("\n")[: node.end_lineno - node.lineno + 1]
        indent = len(lines[0]) - len(lines[0].lstrip())
        return "\n".join(line[indent:] for line in lines) + "\n"


def parse_definitions(text: str, where: str, longest: int | None) -> dict[str, LazyDefinition]:
    """Return the definitions of a text by name. Raise RuntimeError for other content. longest: maximum length to parse
    at once.
    """
    found = list(_BEGIN.finditer(text))
    definitions: dict[str, LazyDefinition] = {}
    line, before = 1, 0
    for begin, end in zip(found, [*found[1:], None], strict=False):
        if begin[1] is None:
            if longest is None or len(text) <= longest:
                parse(text, where)  # raises with the position
            raise ProgramError(f"a program has classes and functions only (in {where})")
        line += text.count("\n", before, begin.start())
        before = begin.start()
        part = text[before : len(text) if end is None else end.start()]
        definitions[begin[2]] = LazyDefinition(begin[2], part, line, where, longest, begin[1] == "class")
    return definitions


class DefinitionTable(dict):
    """Trees by name, parsed on access."""

    def __getitem__(self, name: str) -> Any:
        found = super().__getitem__(name)
        if isinstance(found, LazyDefinition):
            found = self[name] = found.parsed()
        return found

    def get(self, name: str, default: Any = None) -> Any:
        return self[name] if name in self else default  # noqa: SIM401  which is this method

    def values(self) -> Any:
        return [self[name] for name in self]
