"""The list of state that threads share is complete, and each entry is of a known kind."""

from __future__ import annotations

import functools
from pathlib import Path

from .shared_state import listed

# Permitted kinds in the table; docs/threads.md explains each.
KINDS = {"cache", "count", "distributed", "import", "lock", "once", "register", "setting", "thread", "trace"}
TABLE = Path(__file__).with_name("state.txt")

found = functools.cache(listed)


def table() -> dict[str, str]:
    lines = [line for line in TABLE.read_text().splitlines() if line and not line.startswith("#")]
    entries = dict(line.split(" ") for line in lines)
    assert len(entries) == len(lines), "a name stands twice in state.txt"
    return entries


def test_every_name_that_changes_after_import_is_in_the_table():
    changing = {name for name, kind in found().items() if kind == "state"}
    new, gone = changing - table().keys(), table().keys() - changing
    assert not new, f"say in tests/threads/state.txt how threads share {sorted(new)}"
    assert not gone, f"no code changes these any more; take them out of tests/threads/state.txt: {sorted(gone)}"


def test_the_table_knows_the_kinds_that_the_page_explains():
    assert set(table().values()) <= KINDS
    page = (TABLE.parents[2] / "docs" / "threads.md").read_text()
    assert [kind for kind in sorted(KINDS) if f"`{kind}`" not in page] == []


def test_the_scanner_finds_each_way_to_change_state():
    import ast

    from .shared_state import _bound, _changed

    text = """
import threading
A, B, C, D, E, F = {}, [], set(), 0, {}, []
CONSTANT = {1: 2}
class Home:
    known = {}
    def put(self): Home.known[1] = 2
def one(x): A[x] = 1
def two(x): B.append(x)
def three(): C.add(1)
def four():
    global D
    D += 1
def five(E): E[1] = CONSTANT[1]
def six():
    F = []
    F.append(1)
"""
    tree = ast.parse(text)
    classes = {c.name: c for c in ast.walk(tree) if isinstance(c, ast.ClassDef)}
    changed = _changed("m", tree, {"m": _bound(tree.body)}, classes, {"m"})
    assert sorted(changed) == ["m:A", "m:B", "m:C", "m:D", "m:Home.known"]
