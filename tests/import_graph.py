"""The import graph of a checkout: statements, `import_module` with literals, lazy attributes of the root.

python -m tests.import_graph [ROOT]     # circles, and the arrows between rooms
"""

from __future__ import annotations

import ast
import functools
import pathlib
import sys
from collections.abc import Iterator
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[1]
FRONT, BACKENDS = "torchlite", "torchlite_backends"
LOADERS = ("import_module", "__import__", "find_spec")
# Modules that name a higher room, since PyTorch's public name of a thing is of a lower one: the module, the room, why.
FACADES = {
    ("torchlite.fx._symbolic_trace", "jit"): "torch.fx._symbolic_trace.ScriptObject",
    ("torchlite.nn.intrinsic", "ao"): "torch.nn.intrinsic",
    ("torchlite.nn.parallel.distributed", "distributed"): "torch.nn.parallel.DistributedDataParallel",
    ("torchlite.nn.qat", "ao"): "torch.nn.qat",
    ("torchlite.nn.quantized", "ao"): "torch.nn.quantized",
    ("torchlite.utils.model_zoo", "hub"): "torch.utils.model_zoo.load_url",
}
# Modules that name packages of backends: tables of names, whose modules are loaded where a program names them.
NAMES_OF_BACKENDS = {"torchlite._settings.moved_modules"}


class Arrow(NamedTuple):
    """An import of `target` by `source`, at `line`.

    when: "load" as the source is loaded, "call" as a function of it runs, "attribute" as its `__getattr__` runs.
    """

    source: str
    target: str
    line: int
    when: str


def module_name(path: pathlib.Path, root: pathlib.Path = ROOT) -> str:
    """The dotted name under which a file is imported."""
    parts = path.relative_to(root).with_suffix("").parts
    parts = parts[1:] if parts[0] == "backends" else parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


class Graph:
    """The modules of a checkout and the arrows between them."""

    def __init__(self, root: pathlib.Path = ROOT):
        self.root = root
        self.paths = {
            module_name(path, root): path for folder in ("torchlite", "backends") for path in files(folder, root)
        }
        texts = {name: path.read_text() for name, path in self.paths.items()}
        self.loading = {name for name, text in texts.items() if any(loader in text for loader in LOADERS)}
        self.trees = {name: ast.parse(text) for name, text in texts.items()}
        self.homes = self._root_homes()
        readers = [_Reader(self, name) for name in self.paths]
        self.arrows = [arrow for reader in readers for arrow in reader.arrows()]
        # Modules that import others by computed names, not only those of their package.
        self.dynamic = {reader.name for reader in readers if reader.is_dynamic}

    def _root_homes(self) -> dict[str, str]:
        """For each lazy attribute of the root, from its table, the module that defines it."""
        tables = [
            ast.literal_eval(node.value)
            for node in self.trees[FRONT].body
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_HOMES"
        ]
        return {name: f"{FRONT}.{home}" for table in tables for home, names in table.items() for name in names}

    def longest(self, name: str) -> str | None:
        """The longest prefix of a dotted name that is a module."""
        while name and name not in self.paths:
            name = name.rpartition(".")[0]
        return name or None

    @functools.cached_property
    def _ops(self) -> set[str]:
        sys.path[:0] = [str(self.root), str(self.root / "backends")]
        import torchlite

        return set(torchlite._dispatch.NAMESPACES["torch"])

    def resolved(self, name: str) -> str | None:
        """The module of a dotted name; an attribute of the root package resolves to the module that defines it."""
        found = self.longest(name)
        if found != FRONT or name == FRONT:
            return found
        first = name.split(".")[1]
        if first in self.homes:
            return self.longest(self.homes[first])
        for node in self.trees[FRONT].body:
            if isinstance(node, ast.ImportFrom) and any((a.asname or a.name) == first for a in node.names):
                return self.longest(f"{FRONT}.{node.module}" if node.level else node.module or "")
        if first in ("_foreach_", "ops") or first.startswith("_foreach_"):
            return f"{FRONT}._tensor.foreach"
        return f"{FRONT}._ops" if first.rstrip("_") in self._ops or first in self._ops else FRONT


class _Reader:
    """The arrows of one file."""

    def __init__(self, graph: Graph, name: str):
        self.graph, self.name, self.tree = graph, name, graph.trees[name]
        self.is_package = graph.paths[name].name == "__init__.py"
        self.package = name if self.is_package else name.rpartition(".")[0]
        self.bound: dict[str, str] = {}  # names bound to modules
        self.loaders: dict[str, str] = {}  # functions that import a module by its last name, with the name's start
        self.is_dynamic = False

    def arrows(self) -> list[Arrow]:
        running = nodes(self.tree)
        for node, _ in running:
            self._bind(node)
        found: dict[tuple[str, str], Arrow] = {}
        inner = {id(node.value) for node, _ in running if isinstance(node, ast.Attribute)}
        for node, when in running:
            if isinstance(node, ast.Attribute) and id(node) in inner:
                continue  # of `torch.nn.functional` the longest name counts
            for target, by_name in self._targets(node):
                own = self.is_package and by_name and (target + ".").startswith(self.name + ".")
                if target != self.name and not own:
                    found.setdefault((target, when), Arrow(self.name, target, node.lineno, when))
        return list(found.values())

    def _bind(self, node: ast.AST) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                self.bound[alias.asname or alias.name.partition(".")[0]] = (
                    alias.name if alias.asname else alias.name.partition(".")[0]
                )
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                full = f"{self._base(node)}.{alias.name}"
                if full in self.graph.paths:
                    self.bound[alias.asname or alias.name] = full
        elif isinstance(node, ast.FunctionDef) and self.name in self.graph.loading:
            parameters = {a.arg for a in node.args.args}
            for call in ast.walk(node):
                if _loads(call) and isinstance(call.args[0], ast.JoinedStr):
                    text = self._text(call.args[0])
                    last = call.args[0].values[-1]
                    if isinstance(last, ast.FormattedValue) and ast.unparse(last.value) in parameters and text:
                        self.loaders[node.name] = text

    def _base(self, node: ast.ImportFrom) -> str:
        parts = self.package.split(".")
        base = parts[: len(parts) - node.level + 1] if node.level else []
        return ".".join([*base, *([node.module] if node.module else [])])

    def _targets(self, node: ast.AST) -> Iterator[tuple[str, bool]]:
        """The modules that a node imports, and whether it does so by a string or by an attribute."""
        resolved = self.graph.resolved
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name != FRONT and alias.name in self.graph.paths:
                    yield alias.name, False
        elif isinstance(node, ast.ImportFrom):
            base = self._base(node)
            for alias in node.names:
                target = resolved(f"{base}.{alias.name}")
                if target and target != FRONT:
                    yield target, False
        elif isinstance(node, ast.Attribute):
            yield from self._attribute(dotted(node) or "")
        elif _loads(node):
            text = self._text(node.args[0])
            relative_to_unknown = len(node.args) > 1 and self._text(node.args[1]) is None
            if relative_to_unknown or not _is_literal(node.args[0]) and not self._is_of_package(text or ""):
                self.is_dynamic = True
            yield from self._named(text, node)
        elif isinstance(node, ast.Call) and dotted(node.func) == "getattr" and _is_literal(node.args[1]):
            chain = dotted(node.args[0]) or ""
            if self.bound.get(chain.partition(".")[0], "").partition(".")[0] == FRONT:
                yield from self._attribute(f"{chain}.{node.args[1].value}")
        elif isinstance(node, ast.Subscript) and dotted(node.value) == "sys.modules":
            yield from self._named(self._text(node.slice))
        elif isinstance(node, ast.Call) and dotted(node.func) == "sys.modules.get":
            yield from self._named(self._text(node.args[0]))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in self.loaders:
            for argument in node.args[:1]:
                if isinstance(argument, ast.Constant):
                    yield from self._named(f"{self.loaders[node.func.id]}{argument.value}")
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            if node.value.partition(".")[0] == BACKENDS and " " not in node.value:
                yield from self._named(node.value.partition(":")[0])

    def _is_of_package(self, start: str) -> bool:
        """True if a module name with this prefix is in a package: this file's, or one that it names."""
        return self.graph.resolved(start.rstrip(".")) not in (None, FRONT, BACKENDS) or (
            start[:1] == "." and self.package != FRONT
        )

    def _attribute(self, chain: str) -> Iterator[tuple[str, bool]]:
        """The module of `torch.nn.functional.relu`, where the first name is bound to a module."""
        first, _, rest = chain.partition(".")
        base = self.bound.get(first, "")
        target = self.graph.resolved(f"{base}.{rest}") if base.partition(".")[0] in (FRONT, BACKENDS) else None
        if target and target != FRONT:
            yield target, True

    def _named(self, text: str | None, call: ast.Call | None = None) -> Iterator[tuple[str, bool]]:
        if not text:
            return
        if text.startswith("."):
            base = self.package
            if call is not None and len(call.args) > 1:
                given = self._text(call.args[1])
                if given is None:
                    return
                base = given
            up = len(text) - len(text.lstrip("."))
            base = ".".join(base.split(".")[: len(base.split(".")) - up + 1])
            text = base + "." + text.lstrip(".")
        target = self.graph.resolved(text.rstrip("."))
        if target and target != FRONT:
            yield target, True

    def _text(self, node: ast.AST) -> str | None:
        """The literal text of an expression, or its literal start."""
        if isinstance(node, ast.Constant):
            return node.value if isinstance(node.value, str) else None
        if isinstance(node, ast.Name) and node.id in ("__name__", "__package__"):
            return self.name if node.id == "__name__" else self.package
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            left, right = self._text(node.left), self._text(node.right)
            return (left or FRONT) + (right or "")
        if isinstance(node, ast.JoinedStr):
            out = ""
            for index, value in enumerate(node.values):
                if isinstance(value, ast.Constant):
                    out += value.value
                elif index == 0:
                    out += self._text(value.value) or (FRONT if len(node.values) > 1 else "")
                else:
                    break
            return out
        return None


def _loads(node: ast.AST) -> bool:
    """True if a node is a call that imports a module by name."""
    return isinstance(node, ast.Call) and bool(node.args) and _last(node.func) in LOADERS


def _last(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _is_literal(node: ast.AST) -> bool:
    """True if an expression is a string literal."""
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def dotted(node: ast.AST) -> str | None:
    """`a.b.c` of a chain of attributes that begins with a name."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else None


_KINDS = (ast.Import, ast.ImportFrom, ast.Attribute, ast.Call, ast.Subscript, ast.Constant, ast.FunctionDef)


def nodes(tree: ast.AST) -> list[tuple[ast.AST, str]]:
    """The nodes of a file that may import and that run, and when; annotations and what stands under TYPE_CHECKING do
    not run.
    """
    found: list[tuple[ast.AST, str]] = []
    pending: list[tuple[ast.AST, str]] = [(tree, "load")]
    while pending:
        node, when = pending.pop()
        if isinstance(node, _KINDS):
            found.append((node, when))
        for field, value in ast.iter_fields(node):
            if field in ("annotation", "returns", "ctx"):
                continue
            inside = when
            if field == "body" and isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
                continue
            if (
                field == "body"
                and when == "load"
                and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            ):
                lazy = getattr(node, "name", "") == "__getattr__" and len(node.args.args) == 1
                inside = "attribute" if lazy else "call"
            pending.extend(
                (v, inside) for v in (value if isinstance(value, list) else [value]) if isinstance(v, ast.AST)
            )
    return found


@functools.cache
def names_of(path: pathlib.Path) -> set[str]:
    """Absolute dotted names in a file's import statements: of `from a import b` both "a" and "a.b"."""
    package = module_name(path).split(".")
    package = package if path.name == "__init__.py" else package[:-1]
    found = set()
    for node, _ in nodes(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            name = ".".join([*base, *([node.module] if node.module else [])])
            found |= {name, *(f"{name}.{alias.name}" for alias in node.names)}
    return found


def files(folder: str, root: pathlib.Path = ROOT) -> list[pathlib.Path]:
    return sorted((root / folder).rglob("*.py"))


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """The modules that reach each other, by Kosaraju's two passes."""

    def walk(start, edges, seen):
        order, pending = [], [(start, iter(edges[start]))]
        seen.add(start)
        while pending:
            node, rest = pending[-1]
            for target in rest:
                if target not in seen:
                    seen.add(target)
                    pending.append((target, iter(edges[target])))
                    break
            else:
                order.append(node)
                pending.pop()
        return order

    seen: set[str] = set()
    finished = [name for start in graph if start not in seen for name in walk(start, graph, seen)]
    back: dict[str, set[str]] = {name: {n for n in graph if name in graph[n]} for name in graph}
    seen = set()
    groups = [walk(start, back, seen) for start in reversed(finished) if start not in seen]
    return [sorted(group) for group in groups if len(group) > 1]


def room(module: str) -> str:
    """The room of a module: the first name below torchlite, or a package of the backends."""
    parts = module.split(".")
    return parts[1] if parts[0] == FRONT and len(parts) > 1 else ".".join(parts[:2])


def module_graph(graph: Graph, whens: tuple[str, ...]) -> dict[str, set[str]]:
    """For each module those that it imports then. Attributes that a module's `__getattr__` has from its own room are
    names alone, which nothing waits for.
    """
    found: dict[str, set[str]] = {name: set() for name in graph.paths}
    for arrow in graph.arrows:
        if arrow.when in whens and (arrow.when != "attribute" or room(arrow.source) != room(arrow.target)):
            found[arrow.source].add(arrow.target)
    return found


def room_graph(graph: Graph) -> dict[str, set[str]]:
    """For each room those that it imports. The two packages' roots and the modules of `FACADES` and `NAMES_OF_BACKENDS`
    are names alone.
    """
    found: dict[str, set[str]] = {room(name): set() for name in graph.paths}
    for arrow in graph.arrows:
        source, target = room(arrow.source), room(arrow.target)
        if arrow.source not in (FRONT, BACKENDS) and source != target and not _is_name_alone(arrow):
            found[source].add(target)
    return found


def _is_name_alone(arrow: Arrow) -> bool:
    """True for the import by which a public name of a lower room is defined in a higher one, or in a backend."""
    names_backend = arrow.source in NAMES_OF_BACKENDS and arrow.target.partition(".")[0] == BACKENDS
    return names_backend or (arrow.source, room(arrow.target)) in FACADES


def main() -> None:
    """Print the circles of a checkout's modules and rooms."""
    graph = Graph(pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else ROOT)
    for whens in (("load",), ("load", "call", "attribute")):
        print(", ".join(whens), [(len(c), c) for c in circles(module_graph(graph, whens))])
    print("rooms", [(len(c), c) for c in circles(room_graph(graph))])
    for (source, target), name in FACADES.items():
        print(f"beside {source} -> {target}, where PyTorch has {name}")
    for source in sorted(NAMES_OF_BACKENDS):
        print(f"beside {source} -> {BACKENDS}, the former names of modules")
    for arrow in graph.arrows:
        if room(arrow.source) != room(arrow.target):
            print(f"{arrow.source}:{arrow.line} -> {arrow.target} ({arrow.when})")


if __name__ == "__main__":
    main()
