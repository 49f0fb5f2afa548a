"""Docstrings of the stubs: what an editor shows for a name. They come from the op records and from the code's
docstrings, so they are written in one place alone.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator, Sequence
from types import FunctionType
from typing import Any

WIDTH = 120
# A longer docstring is cut to its first paragraph: three copies of each (function, method, nn.functional) are kept.
MOST_LINES = 8


def docstring(text: str, indent: str) -> str:
    """The lines of a docstring: all of a short text, and the first paragraph of a long one."""
    text = inspect.cleandoc(text)
    if not text:
        return ""
    paragraphs = text.split("\n\n")
    if len(text.splitlines()) > MOST_LINES:
        paragraphs = paragraphs[:1]
    width = WIDTH - len(indent)
    quotes = 'r"""' if "\\" in text else '"""'
    paragraphs = [paragraph for paragraph in (_wrap(p, width, len(quotes)) for p in paragraphs) if paragraph]
    text = "\n\n".join(paragraphs).replace('"""', "'''")
    if text.startswith('"'):
        text = " " + text
    if "\n" not in text:
        if len(quotes + text) + 4 <= width:
            return f'{indent}{quotes}{text}{" " if text.endswith(chr(34)) else ""}"""\n'
        text = textwrap.fill(text, width - len(quotes) - 4)
    first, *others = f"{quotes}{text}".splitlines()
    lines = [first, *others, '"""']
    return "".join(f"{indent}{line}".rstrip() + "\n" for line in lines)


def _wrap(paragraph: str, width: int, taken: int) -> str:
    """The paragraph within the width. Examples and lists keep their lines; those that do not fit are left out."""
    lines = paragraph.splitlines()
    if all(len(line) <= width - taken for line in lines):
        return paragraph
    if any(line.startswith((" ", ">>>", "- ", "|")) for line in lines):
        return "" if any(len(line) > width for line in lines) else paragraph
    return "\n".join(textwrap.wrap(paragraph, width - taken, break_long_words=False, break_on_hyphens=False))


# -- stubs that are written by hand ---------------------------------------------------


def document(text: str, owners: Sequence[Any]) -> str:
    """The stub with the docstrings that its functions and classes have in the owners. What has none there keeps the
    stub's own.
    """
    text = _without_docstrings(text, [node for node, _ in _documented(ast.parse(text).body, owners)])
    lines = text.splitlines(keepends=True)
    places = list(_documented(ast.parse(text).body, owners))
    # From the end, so that what is above keeps its lines; a class after its first member.
    for node, doc in sorted(places, key=lambda place: (-place[0].body[0].lineno, isinstance(place[0], ast.ClassDef))):
        indent = " " * (node.col_offset + 4)
        at = node.body[0].lineno - 1
        if isinstance(node, ast.ClassDef):
            start = min([node.body[0].lineno, *(d.lineno for d in getattr(node.body[0], "decorator_list", ()))])
            while not lines[start - 2].rstrip().endswith(":"):  # a comment stands before the first member
                start -= 1
            after = "" if isinstance(node.body[0], ast.FunctionDef) else "\n"
            lines[start - 1 : start - 1] = [docstring(doc, indent) + after]
            continue
        head = lines[at].removesuffix(" ...\n")
        after = "\n" if not node.col_offset and lines[at + 1 : at + 2] not in ([], ["\n"]) else ""
        lines[at] = f"{head}\n{docstring(doc, indent)}{after}"
    return "".join(lines)


def _without_docstrings(text: str, nodes: Sequence[Any]) -> str:
    lines = text.splitlines(keepends=True)
    for node in sorted(nodes, key=lambda n: -n.lineno):
        first = node.body[0]
        if ast.get_docstring(node) is None:
            continue
        start, end = first.lineno - 1, first.end_lineno or first.lineno
        if isinstance(node, ast.FunctionDef):
            lines[start - 1] = lines[start - 1].rstrip() + " ...\n"
        elif lines[end] == "\n":
            end += 1
        del lines[start:end]
    return "".join(lines)


def _documented(body: Sequence[ast.stmt], owners: Sequence[Any]) -> Iterator[tuple[Any, str]]:
    """(node, docstring) of functions and classes that have one in the first owner that has the name."""
    overloaded: set[str] = set()
    for node in body:
        if isinstance(node, ast.ClassDef):
            kind = _find(node.name, owners)
            if isinstance(kind, type) and node.lineno != node.body[0].lineno:
                if doc := _own_doc(kind, kind.__dict__.get("__doc__")):
                    yield node, doc
                yield from _documented(node.body, [kind])
        elif isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            marks = {getattr(mark, "id", "") or getattr(mark, "attr", "") for mark in node.decorator_list}
            if marks & {"setter", "deleter"} or node.name in overloaded:
                continue
            overloaded |= {node.name} if "overload" in marks else set()
            found = _find(node.name, owners)
            found = found.fget if isinstance(found, property) else getattr(found, "__func__", found)
            op = getattr(found, "op", None)  # the record's text has neither signature nor place
            if doc := op.doc if op else _own_doc(found, getattr(found, "__doc__", None)):
                yield node, doc


def _find(name: str, owners: Sequence[Any]) -> Any:
    for owner in owners:
        try:
            return inspect.getattr_static(owner, name) if isinstance(owner, type) else getattr(owner, name)
        except AttributeError:
            continue
    return None


def _own_doc(found: Any, doc: str | None) -> str:
    """The docstring of torchlite's own code: Python's differ from version to version."""
    ours = isinstance(found, (FunctionType, type)) or hasattr(found, "__wrapped__")
    return doc or "" if ours and str(getattr(found, "__module__", "")).startswith("torchlite") else ""
