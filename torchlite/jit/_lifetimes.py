"""Variables of a program's function let go of where they were read for the last time, as PyTorch's interpreter does."""

from __future__ import annotations

import ast
from collections.abc import Iterator

_KEEPING = (ast.FunctionDef, ast.Lambda, ast.Delete)
_LEAVES = (ast.Return, ast.Raise, ast.Break, ast.Continue)


def with_deletions(body: list[ast.stmt], outside: frozenset[str] = frozenset()) -> list[ast.stmt]:
    """The statements of a block with deletions of the variables that it alone names, and gives a value for certain.
    outside: the variables that are named elsewhere. Bodies of loops stay: the next time round may read what is there.
    """
    named = [frozenset(_names(statement)) for statement in body]
    last = {name: i for i, names in enumerate(named) for name in names}
    kept = outside.union(*map(_kept, body))
    given: set[str] = set()
    found: list[ast.stmt] = []
    for i, statement in enumerate(body):
        if isinstance(statement, ast.If):
            others = outside.union(*named[:i], *named[i + 1 :], _names(statement.test))
            for block, other in ((statement.body, statement.orelse), (statement.orelse, statement.body)):
                block[:] = with_deletions(block, others.union(*map(_names, other)))
        found.append(statement)
        given |= _given(statement)
        dead = sorted(name for name in named[i] & given if last[name] == i and name not in kept)
        if dead and not isinstance(statement, _LEAVES) and i + 1 < len(body):
            found.append(ast.Delete([ast.Name(name, ast.Del()) for name in dead]))
    return found


def _names(node: ast.AST) -> Iterator[str]:
    return (part.id for part in ast.walk(node) if isinstance(part, ast.Name))


def _kept(statement: ast.stmt) -> set[str]:
    """The variables that a function inside may read later, and those that the program deletes itself."""
    return {name for part in ast.walk(statement) if isinstance(part, _KEEPING) for name in _names(part)}


def _given(statement: ast.stmt) -> set[str]:
    """The variables that a statement gives a value wherever it goes on."""
    if not isinstance(statement, ast.Assign):
        return set()
    targets = [part for target in statement.targets for part in _flat(target)]
    return {part.id for part in targets if isinstance(part, ast.Name)}


def _flat(target: ast.expr) -> Iterator[ast.expr]:
    if isinstance(target, (ast.Tuple, ast.List)):
        for item in target.elts:
            yield from _flat(item)
    else:
        yield target


__all__ = ["with_deletions"]
