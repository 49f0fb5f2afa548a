"""Mutation analysis: finds constants that a method may mutate."""

from __future__ import annotations

import ast
import functools
from typing import Any

from ._constant_propagation import ProgramConstants
from ._inlining import walk_statements
from ._python_translator import ANNOTATED, dotted_name

_BUILT_IN = frozenset("int float bool str len min max abs sum range isinstance print".split())


@functools.cache
def _may_alias(operator: str) -> bool:
    """True if an operator's result may alias an argument."""
    from .. import ops

    packet: Any = getattr(ops.aten, operator, None)
    if not hasattr(packet, "overloads"):  # an operator on lists, strings, ...
        return True
    return any("(a" in str(getattr(packet, name)._schema) for name in packet.overloads())


def mutated_constants(node: ast.FunctionDef, constants: ProgramConstants) -> set[int]:
    """Return the numbers of constants that the method may mutate."""
    finder = _MutationFinder(constants)
    before = -1
    while before != finder.size():
        before = finder.size()
        for part in walk_statements(node.body):
            finder.statement(part)
    return finder.found


class _MutationFinder:
    def __init__(self, constants: ProgramConstants):
        self._constants, self.found = constants, set[int]()
        self._variables: dict[str, set[int]] = {}

    def size(self) -> int:
        """Return the size of the current state, to detect a fixed point."""
        return len(self.found) + sum(map(len, self._variables.values()))

    def statement(self, part: ast.stmt) -> None:
        """Update the state for a statement."""
        value = getattr(part, "value", None)
        roots = self._possible_constants(value) if isinstance(value, ast.expr) else set()
        for target in getattr(part, "targets", None) or [getattr(part, "target", None)]:
            if isinstance(part, ast.For):
                roots = self._possible_constants(part.iter)
            if isinstance(part, ast.AugAssign):
                self.found |= self._possible_constants(part.target)
            self._bind_variable(target, roots)
        for test in (getattr(part, "test", None), getattr(part, "iter", None)):
            if isinstance(test, ast.expr):
                self._possible_constants(test)

    def _bind_variable(self, target: Any, roots: set[int]) -> None:
        if isinstance(target, ast.Name):
            self._variables.setdefault(target.id, set()).update(roots)
        elif isinstance(target, (ast.Tuple, ast.List)):
            for item in target.elts:
                self._bind_variable(item, roots)
        elif isinstance(target, ast.Subscript):
            self.found |= self._possible_constants(target.value)
        elif isinstance(target, ast.Attribute):
            self.found |= roots

    def _possible_constants(self, node: ast.AST) -> set[int]:
        """Return the constants that a value may be or alias."""
        number = self._constants.number(node)
        if number is not None:
            return {number}
        if isinstance(node, ast.Name):
            return self._variables.get(node.id, set())
        if isinstance(node, (ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp)):
            return set()  # a new value
        inner = [
            self._possible_constants(part)
            for part in ast.iter_child_nodes(node)
            if isinstance(part, (ast.expr, ast.keyword))
        ]
        if not isinstance(node, ast.Call):
            return set().union(*inner)
        path = dotted_name(node.func) or ""
        if path in ANNOTATED:
            return self._possible_constants(node.args[1])
        given = [self._possible_constants(a) for a in node.args] + [
            self._possible_constants(k.value) for k in node.keywords
        ]
        operator = path.removeprefix("torch.") if path.startswith("torch.") else ""
        if isinstance(node.func, ast.Attribute) and not path.startswith(("torch.", "ops.", "__torch__.")):
            operator, given = node.func.attr, [self._possible_constants(node.func.value), *given]
        everything = set().union(*given)
        if path in _BUILT_IN:
            return set()
        if not operator:  # an unknown function may do anything
            self.found |= everything
            return everything
        if operator.endswith("_") and not operator.endswith("__") or operator == "_set_item":
            self.found |= given[0] if given else set()
        for k in node.keywords:
            if k.arg == "out":
                self.found |= self._possible_constants(k.value)
        return everything if _may_alias(operator) else set()
