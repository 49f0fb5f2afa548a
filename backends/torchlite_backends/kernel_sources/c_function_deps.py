"""Dependency closure of C functions: a program includes those that it calls."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable


def make_dependency_collector(functions: dict[str, str], prefixes: str) -> Callable[[str], str]:
    """Return a function from an expression to the source of all `functions` that it needs, callees first.

    The functions' names begin with one of the letters of `prefixes` and `_`.
    """
    call = re.compile(rf"\b([{prefixes}]_\w+)\(")

    @functools.cache
    def find_needed(name: str) -> tuple[str, ...]:
        found: dict[str, None] = {}
        for callee in call.findall(functions[name].split("{", 1)[1]):
            found.update(dict.fromkeys(find_needed(callee)))
        return (*found, name)

    @functools.cache
    def collect_source(expression: str) -> str:
        found: dict[str, None] = {}
        for name in call.findall(expression):
            if name in functions:
                found.update(dict.fromkeys(find_needed(name)))
        return "".join(functions[name].strip() + "\n" for name in found)

    return collect_source
