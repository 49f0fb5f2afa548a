"""Finds the syntax tree of a function in its source file, and checks that the tree is what runs."""

from __future__ import annotations

import ast
import functools
import linecache
import types
from collections.abc import Iterator
from typing import Any

from torchlite._types.python_source import compile_code, parse

Position = tuple[int, int, int, int]  # first line, last line, first column, last column, as in `co_positions`


def position_of(node: Any) -> Position:
    """Return where a node is."""
    return node.lineno, node.end_lineno, node.col_offset, node.end_col_offset


def find_definition(code: types.CodeType) -> ast.FunctionDef | None:
    """Return a copy of the tree of a function, in which private names and `super()` do not depend on the class around
    it. Return None if its source is unknown or has changed, and for generators and coroutines.
    """
    if code.co_flags & _RESUMABLE:
        return None
    lines = tuple(linecache.getlines(code.co_filename))
    if not lines:
        return None
    found = _find_in_file(code.co_filename, lines).get((code.co_qualname, code.co_firstlineno), ())
    for other, node, class_name in found:
        if other == code:
            return _ClassNames(code, class_name).visit(_as_function(node))
    return None


@functools.lru_cache(32)
def _find_in_file(path: str, lines: tuple[str, ...]) -> dict[tuple[str, int], list[tuple[Any, Any, str]]]:
    """Return the code objects of a file with their trees, by name and first line."""
    try:
        tree = parse("".join(lines), path)
        codes: dict[tuple[str, int], list] = {}
        for code in _codes_within(compile_code(tree, path)):
            codes.setdefault((code.co_qualname, code.co_firstlineno), []).append(code)
    except (SyntaxError, ValueError, RecursionError):
        return {}
    nodes: dict[tuple[str, int], list] = {}
    for qualname, node, class_name in _functions_within(tree, "", ""):
        decorators = [one.lineno for one in getattr(node, "decorator_list", ())]
        nodes.setdefault((qualname, min([node.lineno, *decorators])), []).append((node, class_name))
    return {
        key: [(code, *found) for code, found in zip(codes[key], nodes[key], strict=True)]
        for key in codes.keys() & nodes.keys()
        if len(codes[key]) == len(nodes[key])
    }


def _codes_within(code: types.CodeType) -> Iterator[types.CodeType]:
    for one in code.co_consts:
        if isinstance(one, types.CodeType):
            if one.co_name not in _SCOPES_WITHOUT_NODE:
                yield one
            yield from _codes_within(one)


def _functions_within(node: ast.AST, prefix: str, class_name: str) -> Iterator[tuple[str, Any, str]]:
    """Yield the functions and lambdas inside a node, with their qualified names and classes."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Lambda):
            yield f"{prefix}<lambda>", child, class_name
            yield from _functions_within(child, f"{prefix}<lambda>.<locals>.", class_name)
        elif isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
            outside = [*child.decorator_list, child.args]
            for part in outside:
                yield from _functions_within(ast.Expr(part) if isinstance(part, ast.expr) else part, prefix, class_name)
            yield f"{prefix}{child.name}", child, class_name
            for statement in child.body:
                yield from _functions_within(ast.Module([statement], []), f"{prefix}{child.name}.<locals>.", class_name)
        elif isinstance(child, ast.ClassDef):
            yield from _functions_within(child, f"{prefix}{child.name}.", child.name)
        else:
            yield from _functions_within(child, prefix, class_name)


def _as_function(node: Any) -> ast.FunctionDef:
    """Return a copy of a definition without decorators, defaults and annotations."""
    if isinstance(node, ast.Lambda):
        body: list[ast.stmt] = [ast.copy_location(ast.Return(copy_tree(node.body)), node.body)]
        made = ast.FunctionDef("lambda_", copy_tree(node.args), body, [])
        ast.copy_location(made, node)
    else:
        made = copy_tree(node)
    made.decorator_list, made.returns = [], None
    arguments = made.args
    for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg):
        if one is not None:
            one.annotation = None
    nothing = ast.copy_location(ast.Constant(None), made)
    arguments.defaults = [nothing for _ in arguments.defaults]
    arguments.kw_defaults = [None if one is None else nothing for one in arguments.kw_defaults]
    return made


def copy_tree(node: Any) -> Any:
    """Return a deep copy of a tree."""
    if isinstance(node, ast.AST):
        made = node.__class__()
        for name in (*node._fields, *node._attributes):
            if hasattr(node, name):
                setattr(made, name, copy_tree(getattr(node, name)))
        return made
    return [copy_tree(one) for one in node] if isinstance(node, list) else node


class _ClassNames(ast.NodeTransformer):
    """Writes out what a method's code gets from its class: private names, and the arguments of `super()`."""

    def __init__(self, code: types.CodeType, class_name: str) -> None:
        self.prefix = f"_{class_name.lstrip('_')}" if class_name.strip("_") else ""
        self.first = code.co_varnames[0] if code.co_argcount and "__class__" in code.co_freevars else ""

    def _whole_name(self, name: str) -> str:
        is_private = self.prefix and name.startswith("__") and not name.endswith("__")
        return self.prefix + name if is_private else name

    def visit_Name(self, node: ast.Name) -> Any:
        node.id = self._whole_name(node.id)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        node.attr = self._whole_name(node.attr)
        return self.generic_visit(node)

    def visit_arg(self, node: Any) -> Any:
        node.arg = node.arg and self._whole_name(node.arg)
        return self.generic_visit(node)

    visit_keyword = visit_arg

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        if self.first and isinstance(node.func, ast.Name) and node.func.id == "super" and not node.args:
            names = ("__class__", self.first)
            node.args = [ast.copy_location(ast.Name(name, ast.Load()), node.func) for name in names]
        return node


_RESUMABLE = 0x20 | 0x80 | 0x100 | 0x200  # generators, coroutines and their kinds
_SCOPES_WITHOUT_NODE = frozenset(("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"))
