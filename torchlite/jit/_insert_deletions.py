"""Liveness analysis: inserts `del` after the last use of variables, as PyTorch's interpreter frees values."""

from __future__ import annotations

import ast
import collections
from collections.abc import Iterator

_CAPTURING_NODES = (ast.FunctionDef, ast.Lambda, ast.Delete)
_EXIT_NODES = (ast.Return, ast.Raise, ast.Break, ast.Continue)
_NONE: frozenset[str] = frozenset()
_BARE_KINDS = ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop
_BARE_NODES = frozenset(node for kind in _BARE_KINDS for node in kind.__subclasses__())


def walk(node: ast.AST) -> list[ast.AST]:
    """Return the nodes of a tree, each after the node around it, without those that have no fields: operators and
    contexts. Several times faster than `ast.walk`.
    """
    found = [node]
    for node in found:
        for part in node.__dict__.values():
            if part.__class__ is list:
                found += [item for item in part if isinstance(item, ast.AST)]
            elif isinstance(part, ast.AST) and part.__class__ not in _BARE_NODES:
                found.append(part)
    return found


def insert_deletions(body: list[ast.stmt]) -> list[ast.stmt]:
    """Return a block's statements with deletions of variables used only there and assigned on all paths. Loop bodies
    are unchanged, as the next iteration may read their variables.
    """
    return _DeletionInserter().block(body, _NONE)


class _DeletionInserter:
    """Inserter of deletions in one function; collects names per statement once."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[frozenset[str], frozenset[str]]] = {}

    def block(self, body: list[ast.stmt], outside: frozenset[str]) -> list[ast.stmt]:
        """Process a block. outside: variables used elsewhere."""
        both = [self._scan(statement) for statement in body]
        named = [names for names, _ in both]
        last = {name: i for i, names in enumerate(named) for name in names}
        counts = collections.Counter(name for names in named for name in names)
        kept = outside.union(*(captured for _, captured in both))
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
        return self._scan(node)[0]

    def _scan(self, node: ast.AST) -> tuple[frozenset[str], frozenset[str]]:
        """Return the variables in a node, and those of them that inner functions may read later or that the program
        deletes.
        """
        found = self._known.get(id(node))
        if found is None:
            if isinstance(node, ast.If):
                parts = [self._scan(part) for part in (node.test, *node.body, *node.orelse)]
                found = _NONE.union(*(names for names, _ in parts)), _NONE.union(*(captured for _, captured in parts))
            else:
                nodes = walk(node)
                captured: frozenset[str] = _NONE
                for part in nodes:
                    if isinstance(part, _CAPTURING_NODES):
                        captured |= {inner.id for inner in walk(part) if isinstance(inner, ast.Name)}
                found = frozenset(part.id for part in nodes if isinstance(part, ast.Name)), captured
            self._known[id(node)] = found
        return found


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
