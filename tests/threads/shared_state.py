"""Lists the state of modules that code changes after import: what threads share.

A *name* of a module (or of a class) counts where something within a function changes it: it assigns the name by
`global`, an item or an attribute of it, deletes one, or calls a method that changes containers. So constant tables do
not count. Caches of functions (`functools.cache`, `lru_cache`), locks, thread-locals and context variables count too.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
CHANGING = set(
    "add append appendleft clear difference_update discard extend extendleft insert intersection_update pop popitem "
    "popleft put remove reverse setdefault sort symmetric_difference_update update move_to_end".split()
)
GUARDS = {"Lock": "lock", "RLock": "lock", "local": "thread-local", "ContextVar": "context variable"}
FUNCTIONS = ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda


def modules() -> Iterator[tuple[str, ast.Module]]:
    """Each module of the project by its name, with its syntax tree."""
    for folder in ("torchlite", "backends"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = path.relative_to(ROOT if folder == "torchlite" else ROOT / folder).with_suffix("").parts
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), ast.parse(path.read_text())


def _last(node: ast.expr) -> str:
    """The last part of a dotted name."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _root(node: ast.expr) -> ast.expr:
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node


def _targets(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.Assign):
        found = node.targets
    elif isinstance(node, (ast.AugAssign, ast.AnnAssign)):
        found = [node.target]
    elif isinstance(node, ast.Delete):
        found = node.targets
    else:
        return []
    return [part for t in found for part in (t.elts if isinstance(t, (ast.Tuple, ast.List)) else [t])]


def _bound(body: list[ast.stmt]) -> dict[str, ast.expr | None]:
    """The names that statements of a module or class bind by assignment, with their values."""
    found: dict[str, ast.expr | None] = {}
    for node in body:
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            for target in _targets(node):
                if isinstance(target, ast.Name):
                    found[target.id] = node.value
        elif isinstance(node, (ast.If, ast.Try, ast.With, ast.For)):
            for part in ("body", "orelse", "finalbody"):
                found.update(_bound(getattr(node, part, [])))
    return found


def _made_by(value: ast.expr | None) -> str:
    """The kind of guard that a value is; empty where it is none. `forks.hold(Lock())` is what it holds."""
    calls = [n for n in ast.walk(value) if isinstance(n, ast.Call)] if value is not None else []
    return next((GUARDS[_last(c.func)] for c in calls if _last(c.func) in GUARDS), "")


def _locals(function: ast.AST) -> set[str]:
    """The names of a function's parameters and of what it assigns without `global`."""
    arguments = function.args  # type: ignore[attr-defined]
    names = {a.arg for a in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]}
    names |= {a.arg for a in (arguments.vararg, arguments.kwarg) if a}
    shared: set[str] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Global):
            shared |= set(node.names)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    return names - shared


def _changed_in(function: ast.AST) -> Iterator[ast.expr]:
    """Yield the expressions of objects that a function's statements change in place."""
    for node in ast.walk(function):
        for target in _targets(node):
            if isinstance(target, (ast.Subscript, ast.Attribute)):
                yield target.value
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CHANGING:
            yield node.func.value


def _functions(tree: ast.AST) -> Iterator[ast.AST]:
    """The outermost functions of a module: those of its classes too."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, FUNCTIONS):
            yield node
        else:
            yield from _functions(node)


def _imports(name: str, tree: ast.Module, known: set[str]) -> dict[str, tuple[str, str]]:
    """Return the imported names of a module: (module, name), or (module, "") for a module."""
    found: dict[str, tuple[str, str]] = {}
    package = name.split(".") if (name in _PACKAGES) else name.split(".")[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            home = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                whole = f"{home}.{alias.name}"
                found[alias.asname or alias.name] = (whole, "") if whole in known else (home, alias.name)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.asname:
                    found[alias.asname] = alias.name, ""
    return found


_PACKAGES = {
    ".".join(p.parent.relative_to(ROOT if f == "torchlite" else ROOT / f).parts)
    for f in ("torchlite", "backends")
    for p in (ROOT / f).rglob("__init__.py")
}


def listed() -> dict[str, str]:
    """Names of state, `module:name` or `module:Class.name`, each with its kind: "state", "cache" or a guard's."""
    trees = dict(modules())
    bound = {name: _bound(tree.body) for name, tree in trees.items()}
    found: dict[str, str] = {}
    changed: dict[str, str] = {}
    for name, tree in trees.items():
        classes = {c.name: c for c in ast.walk(tree) if isinstance(c, ast.ClassDef)}
        of_threads = {label for label, c in classes.items() if any(_last(b) == "local" for b in c.bases)}
        for target, value in bound[name].items():
            if isinstance(value, ast.Call) and _last(value.func) in of_threads:
                found[f"{name}:{target}"] = "thread-local"
            elif kind := _made_by(value):
                found[f"{name}:{target}"] = kind
            elif isinstance(value, ast.Call) and _last(value.func) in ("cache", "lru_cache"):
                found[f"{name}:{target}"] = "cache"
        for node in ast.walk(tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and any(
                _last(d.func if isinstance(d, ast.Call) else d) in ("cache", "lru_cache") for d in node.decorator_list
            ):
                found[f"{name}:{node.name}"] = "cache"
        changed.update(_changed(name, tree, bound, classes, set(trees)))
    return {**changed, **found}


def _changed(name: str, tree: ast.Module, bound: dict, classes: dict, known: set[str]) -> dict[str, str]:
    """The state that the functions of one module change: its own, and what it imports of others."""
    found: dict[str, str] = {}
    imports = _imports(name, tree, known)
    members = {f"{label}.{t}" for label, owner in classes.items() for t in _bound(owner.body)}
    for function in _functions(tree):
        own = _locals(function)
        for node in ast.walk(function):
            if isinstance(node, ast.Global):
                found.update({f"{name}:{target}": "state" for target in node.names})
        for what in _changed_in(function):
            root = _root(what)
            if not isinstance(root, ast.Name) or root.id in own:
                continue
            if isinstance(what, ast.Attribute) and f"{root.id}.{what.attr}" in members:
                found[f"{name}:{root.id}.{what.attr}"] = "state"
            elif root.id in bound[name] and not _made_by(bound[name][root.id]):
                found[f"{name}:{root.id}"] = "state"
            elif root.id in imports:
                home, target = imports[root.id]
                if not target and isinstance(what, ast.Attribute):
                    target = what.attr
                if target in bound.get(home, {}) and not _made_by(bound[home][target]):
                    found[f"{home}:{target}"] = "state"
    return found


if __name__ == "__main__":
    for key, kind in sorted(listed().items()):
        print(f"{kind}\t{key}")
