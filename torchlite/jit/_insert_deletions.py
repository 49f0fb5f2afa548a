"""Liveness analysis: inserts `del` after the last use of variables, as PyTorch's interpreter frees values."""

from __future__ import annotations

import ast
import collections
from collections.abc import Iterator

_CAPTURING_NODES = (ast.FunctionDef, ast.Lambda, ast.Delete)
_EXIT_NODES = (ast.Return, ast.Raise, ast.Break, ast.Continue)
_NONE: frozenset[str] = frozenset()


def walk(node: ast.AST) -> Iterator[ast.AST]:
    """Yield all nodes of a tree in unspecified order; several times faster than `ast.walk`."""
    pending = [node]
    while pending:
        node = pending.pop()
        yield node
        for part in node.__dict__.values():
            if isinstance(part, ast.AST):
                pending.append(part)
            elif part.__class__ is list:
                pending += [item for item in part if isinstance(item, ast.AST)]


def insert_deletions(body: list[ast.stmt]) -> list[ast.stmt]:
    """Return a block's statements with deletions of variables used only there and assigned on all paths. Loop bodies
    are unchanged, as the next iteration may read their variables.
    """
    return _DeletionInserter().block(body, _NONE)


class _DeletionInserter:
    """Inserter of deletions in one function; collects names per statement once."""

    def __init__(self) -> None:
        self._known: dict[int, frozenset[str]] = {}

    def block(self, body: list[ast.stmt], outside: frozenset[str]) -> list[ast.stmt]:
        """Process a block. outside: variables used elsewhere."""
        named = [self._names_in(statement) for statement in body]
        last = {name: i for i, names in enumerate(named) for name in names}
        counts = collections.Counter(name for names in named for name in names)
        kept = outside.union(*map(_captured_names, body))
        given: set[str] = set()
        found: list[ast.stmt] = []
        for i, statement in enumerate(body):
            if isinstance(statement, ast.If):
                here = frozenset(name for name in named[i] if counts[name] > 1 or name in outside)
                here |= self._names_in(statement.test)
                parts = statement.body, statement.orelse
                for block, other in (parts, parts[::-1]):
                    block[:] = self.block(block, here.union(*map(self._names_in, other)))
            found.append(statement)
            given |= _assigned_names(statement)
            dead = sorted(name for name in named[i] & given if last[name] == i and name not in kept)
            if dead and not isinstance(statement, _EXIT_NODES) and i + 1 < len(body):
                found.append(ast.Delete([ast.Name(name, ast.Del()) for name in dead]))
        return found

    def _names_in(self, node: ast.AST) -> frozenset[str]:
        names = self._known.get(id(node))
        if names is None:
            if isinstance(node, ast.If):
                names = self._names_in(node.test).union(*map(self._names_in, (*node.body, *node.orelse)))
            else:
                names = frozenset(part.id for part in walk(node) if isinstance(part, ast.Name))
            self._known[id(node)] = names
        return names


def _captured_names(statement: ast.stmt) -> set[str]:
    """Return variables that inner functions may read later, and those that the program deletes."""
    kept = [part for part in walk(statement) if isinstance(part, _CAPTURING_NODES)]
    return {inner.id for part in kept for inner in walk(part) if isinstance(inner, ast.Name)}


def _assigned_names(statement: ast.stmt) -> set[str]:
    """Return variables assigned on every path through the statement."""
    if not isinstance(statement, ast.Assign):
        return set()
    targets = [part for target in statement.targets for part in _target_names(target)]
    return {part.id for part in targets if isinstance(part, ast.Name)}


def _target_names(target: ast.expr) -> Iterator[ast.expr]:
    if isinstance(target, (ast.Tuple, ast.List)):
        for item in target.elts:
            yield from _target_names(item)
    else:
        yield target
