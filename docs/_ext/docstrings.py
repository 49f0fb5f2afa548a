"""Docstrings as reStructuredText: torchlite's are written for `help()`, in plain text with `code` in backticks."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx

_SIGNATURE = re.compile(r"[\w.]+\(.*\)(?: -> .*)?$")
_DECLARED = re.compile(r"Declared at (\S+?)\.?$")
_SPANS = re.compile(r"(``.+?``|:[\w:+-]+:`[^`]+`|`[^`]+`__?|`[^`]+`)")
_SECTION = re.compile(r"[A-Z][A-Za-z ]*:$")
# An author's initial at the start of a line or of a list item, which would begin an enumerated list.
_INITIAL = re.compile(r"^(\s*(?:- )?[A-Z])\. ")
_INDENT = re.compile(r"\s*")


def escape(text: str) -> str:
    """Text without code: characters that reStructuredText would read as markup stand for themselves."""
    text = re.sub(r"([\\*|])", r"\\\1", text)
    return re.sub(r"(?<=\w)_(?!\w)", r"\_", text)


def escape_line(line: str) -> str:
    parts = _SPANS.split(line)
    for i, part in enumerate(parts):
        if i % 2 == 0:
            parts[i] = escape(part)
        elif part.startswith("`") and not part.startswith("``") and not part.endswith("_"):
            parts[i] = f"``{part[1:-1].strip()}``" + ("\\ " if parts[i + 1][:1].isalnum() else "")
    return _INITIAL.sub(r"\1\\. ", "".join(parts))


def indent_of(line: str) -> int:
    return len(_INDENT.match(line)[0])  # type: ignore[index]


def converted(lines: list[str]) -> list[str]:
    """The lines with examples and literal blocks as they are, and all other text escaped."""
    out: list[str] = []
    example = False
    literal: int | None = None  # the indentation above which lines are literal
    for line in lines:
        stripped = line.strip()
        if not stripped:
            example = False
            out.append("")
            continue
        if literal is not None and indent_of(line) > literal:
            out.append(line)
            continue
        literal = None
        if stripped.startswith(">>>"):
            if not example and out and out[-1]:
                out.append("")
            example = True
        if example:
            out.append(line)
            continue
        if stripped.startswith(".. "):
            literal = indent_of(line)
            out.append(line)
            continue
        starts_block = indent_of(line) >= 4 and (not out or not out[-1]) and not _in_section(out)
        if starts_block:  # an indented block after an empty line is code
            out += ["::", ""] if not out or not out[-1] else ["", "::", ""]
            literal = indent_of(line) - 1
            out.append(line)
            continue
        if stripped.endswith("::"):
            literal = indent_of(line)
        text = escape_line(line)
        out.append(text if literal is None else text.replace("\\:\\:", "::"))
    return out


def _in_section(lines: list[str]) -> bool:
    """True where the last line without indentation opens a section, such as `Args:`."""
    last = next((line for line in reversed(lines) if line and not line.startswith(" ")), "")
    return bool(_SECTION.match(last.strip()))


def process_docstring(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Drop the line with the signature, which the page shows above, and escape what is left."""
    if lines and _SIGNATURE.match(lines[0].strip()):
        del lines[0]
    place = next((found for line in lines if (found := _DECLARED.match(line.strip()))), None)
    # Wrapped text of some records is one column in.
    kept = [line[1:] if indent_of(line) == 1 else line for line in lines if not _DECLARED.match(line.strip())]
    lines[:] = converted(kept)
    if place is not None:
        lines += ["", f"Declared in ``{place[1].rpartition(':')[0]}``.", ""]


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("autodoc-process-docstring", process_docstring, priority=100)  # before napoleon
    return {"parallel_read_safe": True, "parallel_write_safe": True}
