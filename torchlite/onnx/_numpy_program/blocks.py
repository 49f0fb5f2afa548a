"""Divides the statements of a program into functions: one for each module of the network that is large enough."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from .expressions import Statement

_SMALLEST = 3  # statements of a function; fewer stay where they are
_LARGEST = 40  # statements of a function that are not divided further
_PART = 15  # statements that a part of a longer one has at least


@dataclasses.dataclass
class Block:
    """Statements, and blocks that become functions of their own."""

    path: tuple[str, ...]
    items: list[Statement | Block]

    def statements(self) -> Iterator[Statement]:
        """Return all statements, those of inner blocks as well."""
        for item in self.items:
            if isinstance(item, Block):
                yield from item.statements()
            else:
                yield item


def divide(statements: Sequence[Statement], wanted: set[int]) -> Block:
    """Return the whole program as a block. `wanted` are the variables that it returns."""
    statements = _moved_to_readers(statements)
    found = _grouped((), list(zip(_filled_scopes(statements), statements, strict=True)))
    return _cut(found, wanted)


def _moved_to_readers(statements: Sequence[Statement]) -> list[Statement]:
    """Return the statements, those that read weights alone before the first one that reads them, and in its scope."""
    waiting: dict[int, Statement] = {}
    found = []
    for statement in statements:
        if not statement.reads and not statement.block:
            waiting.update(dict.fromkeys(statement.targets, statement))
            continue
        for number in statement.reads:
            needed = waiting.get(number)
            if needed is not None:
                found.append(dataclasses.replace(needed, scope=statement.scope))
                for target in needed.targets:
                    waiting.pop(target, None)
        found.append(statement)
    return [*found, *{id(statement): statement for statement in waiting.values()}.values()]


def _filled_scopes(statements: Sequence[Statement]) -> list[tuple[str, ...]]:
    """Return the path of each statement. One that has none is in the module around its neighbours."""
    scopes = [statement.scope for statement in statements]
    following: list[tuple[str, ...]] = [()] * len(scopes)
    last: tuple[str, ...] = ()
    for i in range(len(scopes) - 1, -1, -1):
        scope = scopes[i]
        last = last if scope is None else scope
        following[i] = last
    before: tuple[str, ...] = ()
    found = []
    for scope, after in zip(scopes, following, strict=True):
        if scope is None:
            common = 0
            while common < min(len(before), len(after)) and before[common] == after[common]:
                common += 1
            found.append(before[:common])
        else:
            before = scope
            found.append(scope)
    return found


def _grouped(path: tuple[str, ...], pairs: list[tuple[tuple[str, ...], Statement]]) -> Block:
    """Return a block whose inner blocks are runs of statements with the same next part of the path."""
    depth, at = len(path), 0
    items: list[Statement | Block] = []
    while at < len(pairs):
        scope = pairs[at][0]
        end = at + 1
        if len(scope) <= depth:
            items.append(pairs[at][1])
            at = end
            continue
        while end < len(pairs) and pairs[end][0][: depth + 1] == scope[: depth + 1]:
            end += 1
        inner = _grouped(scope[: depth + 1], pairs[at:end])
        if end - at == len(pairs):  # a module around everything
            return inner
        items += [inner] if end - at >= _SMALLEST else list(inner.statements())
        at = end
    return Block(path, items)


def _cut(block: Block, wanted: set[int]) -> Block:
    """Divide long blocks at the places that the fewest values cross."""
    items: list[Statement | Block] = [_cut(i, wanted) if isinstance(i, Block) else i for i in block.items]
    if len(items) <= _LARGEST:
        return Block(block.path, items)
    live = _live_after(items, wanted)
    parts: list[Statement | Block] = []
    start = 0
    while len(items) - start > _LARGEST:
        places = range(start + _PART, min(start + _LARGEST, len(items) - _PART))
        end = min(places, key=lambda i: (live[i - 1], -i))
        parts.append(Block((*block.path, f"part_{len(parts) + 1}"), items[start:end]))
        start = end
    parts.append(Block((*block.path, f"part_{len(parts) + 1}"), items[start:]))
    return _cut(Block(block.path, parts), wanted)


def _live_after(items: list[Statement | Block], wanted: set[int]) -> list[int]:
    """Return how many values that exist after each item are read later."""
    needed: set[int] = set()
    counts = [0] * len(items)
    for i in range(len(items) - 1, -1, -1):
        counts[i] = len(needed)
        item = items[i]
        for statement in [*item.statements()][::-1] if isinstance(item, Block) else [item]:
            needed -= set(statement.targets)
            needed |= set(statement.reads)
    return counts
