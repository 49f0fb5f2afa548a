"""Functions made of texts."""

from __future__ import annotations

import itertools
import linecache
import types
from typing import Any

_numbers = itertools.count()


def compiled(name: str, text: str, space: dict[str, Any]) -> types.FunctionType:
    """The function of that name that a text defines; tracebacks and debuggers show its lines."""
    place = f"<torchlite.compile {next(_numbers)} {name}>"
    exec(compile(text, place, "exec"), space)
    linecache.cache[place] = (len(text), None, text.splitlines(True), place)
    space[name].text = text
    return space[name]
