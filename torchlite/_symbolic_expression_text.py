"""Expressions of sizes, read from the text that PyTorch's files have: SymPy's `srepr`."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any

from ._symbolic_shapes import _DEEPEST, _FUNCTIONS, Expr
from ._types.python_source import literal, parse


def parse_srepr(text: str, budget: Any = None) -> Expr | None:
    """Parse an expression from `srepr`. Return None for unsupported forms, and for powers and products of long sums.
    `budget`: work limit of the file.

    >>> from torchlite._symbolic_expression_text import parse_srepr
    >>> parse_srepr("Mul(Integer(2), Symbol('s39', positive=True, integer=True))")
    2*s39
    """
    if len(text) > 10_000:
        return None
    try:
        return _parse_srepr_node(parse(text, mode="eval").body, 0, budget)
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError, ZeroDivisionError):
        return None


_FORMS = (ast.Expression, ast.Call, ast.Name, ast.Load, ast.Constant, ast.keyword, ast.UnaryOp, ast.USub)


def make_opaque_symbol(text: str) -> Expr | None:
    """Return an unsupported expression as one symbol named by its text, None for text that is no `srepr`.

    >>> from torchlite._symbolic_expression_text import make_opaque_symbol
    >>> make_opaque_symbol("TruncToInt(Symbol('zuf0'))").srepr()
    "TruncToInt(Symbol('zuf0'))"
    """
    if len(text) > 10_000 or "(" not in text:
        return None
    try:
        nodes = list(ast.walk(parse(text, mode="eval")))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return Expr.symbol(text) if all(isinstance(node, _FORMS) for node in nodes) else None


def _parse_srepr_node(node: Any, depth: int, budget: Any) -> Expr:
    if depth > _DEEPEST or not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        raise ValueError
    name = node.func.id
    if name in ("Integer", "Symbol"):
        value = literal(node.args[0])
        if name == "Symbol" and isinstance(value, str) and value.isidentifier():
            return Expr.symbol(value)
        if name == "Integer" and type(value) is int:
            return Expr.of(value)
        raise ValueError
    parts = [_parse_srepr_node(part, depth + 1, budget) for part in node.args]
    if name == "Add":
        return Expr.sum(parts)
    if name == "Mul":
        return _expand_product(parts, budget)
    if name == "Pow" and len(parts) == 2 and parts[1].is_number and 0 <= int(parts[1]) <= 8:
        return _expand_product([parts[0]] * int(parts[1]), budget)
    if name in _FUNCTIONS and len(parts) == 2:
        return Expr.function(name, *parts)
    raise ValueError


# Limits of a product in a text: PyTorch's exports have few terms of few symbols.
_LARGEST_PRODUCT, _STEPS_OF_A_PART = 1_000, 10


def _expand_product(parts: Iterable[Expr], budget: Any) -> Expr:
    """Return an expanded product. Raise OverflowError for long sums."""
    found = Expr.of(1)
    for part in parts:
        size = len(found.terms) * part.parts + len(part.terms) * found.parts
        if size > _LARGEST_PRODUCT:
            raise OverflowError(f"a product of {len(found.terms)} by {len(part.terms)} terms is too large")
        if budget is not None:
            budget.spend(_STEPS_OF_A_PART * size)
        found = found * part
    return found
