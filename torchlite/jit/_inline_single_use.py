"""Inlines variables used once into their use, so values are freed early."""

from __future__ import annotations

import ast
from typing import Any

from ._constant_propagation import assigned_name, count_loads, count_stores
from ._inlining import walk_statements
from ._python_translator import dotted_name

_MAX_NESTING_DEPTH = 30  # maximum nesting depth of combined expressions


def inline_single_use(node: ast.FunctionDef) -> None:
    """Inline generated variables into the next statement that reads them, so they are freed early."""
    once, read = count_stores(node), count_loads(node)
    for owner in [node, *walk_statements(node.body)]:
        for field in ("body", "orelse"):
            body = getattr(owner, field, None)
            if isinstance(body, list):
                setattr(owner, field, _inline_in_block(body, once, read))


def _inline_in_block(body: list[ast.stmt], once: Any, read: Any) -> list[ast.stmt]:
    out: list[ast.stmt] = []
    for part in body:
        last = out[-1] if out else None
        target = assigned_name(last) if isinstance(last, ast.Assign) else None
        if target is not None and target.startswith(("_0", "result")) and once[target] == read[target] == 1:
            if isinstance(part, (ast.Assign, ast.Return, ast.Expr)) and part.value is not None:
                value = last.value  # type: ignore[union-attr]
                if _nesting_depth(value) < _MAX_NESTING_DEPTH and _substitute_first_read(part, target, value):
                    out.pop()
        out.append(part)
    return out


def _nesting_depth(node: ast.AST) -> int:
    return 1 + max((_nesting_depth(part) for part in ast.iter_child_nodes(node)), default=0)


def _substitute_first_read(part: Any, target: str, value: ast.expr) -> bool:
    """Replace a variable that is read before any computation by its value."""
    node, field, place = part, "value", None
    while True:
        inner = getattr(node, field) if place is None else getattr(node, field)[place]
        if isinstance(inner, ast.Name) and inner.id == target:
            if place is None:
                setattr(node, field, value)
            else:
                getattr(node, field)[place] = value
            return True
        if isinstance(inner, ast.Call) and (dotted_name(inner.func) or "").startswith("torch.") and inner.args:
            node, field, place = inner, "args", _find_first_evaluated(inner.args)
        elif isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute) and dotted_name(inner.func) is None:
            node, field, place = inner.func, "value", None
        elif isinstance(inner, ast.BinOp):
            node, field, place = inner, "left", None
        elif isinstance(inner, (ast.List, ast.Tuple)) and inner.elts:
            node, field, place = inner, "elts", _find_first_evaluated(inner.elts)
        else:
            return False


def _find_first_evaluated(items: list[ast.expr]) -> int:
    """Return the first expression that is evaluated."""
    plain = (ast.Constant,)
    return next((i for i, item in enumerate(items) if not isinstance(item, plain)), 0)
