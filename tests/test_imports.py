"""The arrows between the folders point one way, and importing torchlite stays light."""

from __future__ import annotations

import ast
import functools
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]
RUNTIMES = {"cupy", "pyopencl", "torch", "scipy", "jax", "mpi4py"}
BACKENDS = "torchlite_backends"


def module_name(path: pathlib.Path) -> str:
    """The dotted name under which a file is imported."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    parts = parts[1:] if parts[0] == "backends" else parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def statements(tree: ast.AST, inside_functions: bool):
    """The import statements of a file that run: those for type checkers alone do not."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            yield from statements(ast.Module(node.orelse, []), inside_functions)
        elif inside_functions or not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield from statements(node, inside_functions)


def imported(path: pathlib.Path, inside_functions: bool = True) -> set[str]:
    """Absolute dotted names that a file imports: of `from a import b` both "a" and "a.b"."""
    package = module_name(path).split(".")
    package = package if path.name == "__init__.py" else package[:-1]
    found = set()
    for node in statements(ast.parse(path.read_text()), inside_functions):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        else:
            base = package[: len(package) - node.level + 1] if node.level else []
            name = ".".join([*base, *((node.module or "").split(".") if node.module else [])])
            found |= {name, *(f"{name}.{alias.name}" for alias in node.names)}
    return found


@functools.cache
def arrows(inside_functions: bool) -> dict[str, set[str]]:
    """For each module of the project those that it imports. Of `from package import module` the module counts, and not
    the package.
    """
    modules = {module_name(path): path for folder in ("torchlite", "backends") for path in files(folder)}
    found = {}
    for name, path in modules.items():
        targets = imported(path, inside_functions) & set(modules)
        through = {t.rpartition(".")[0] for t in targets}
        named = imported(path, inside_functions)
        found[name] = {
            t for t in targets if t not in through or any(n.rpartition(".")[0] == t and n not in modules for n in named)
        } - {name}
    return found


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


def files(folder: str):
    return sorted((ROOT / folder).rglob("*.py"))


def names(path, prefixes) -> list[str]:
    return sorted(n for n in imported(path) if n.split(".")[0] in prefixes)


@pytest.mark.parametrize("path", files("torchlite"), ids=lambda p: str(p.relative_to(ROOT)))
def test_front_end_knows_no_backend_and_no_runtime_but_numpy(path):
    assert not names(path, {BACKENDS} | RUNTIMES)


@pytest.mark.parametrize("path", files("torchlite/_ops"), ids=lambda p: p.name)
def test_ops_know_the_dispatch_and_no_layer_above(path):
    above = [
        n
        for n in imported(path)
        if n.startswith(("torchlite.nn", "torchlite.optim", "torchlite.utils.data", "torchlite.serialization"))
    ]
    assert not above


@pytest.mark.parametrize("folder", ["nn", "optim", "utils"])
def test_layers_know_ops_and_no_kernels(folder):
    for path in files(f"torchlite/{folder}"):
        assert not names(path, {BACKENDS}), path


@pytest.mark.parametrize("folder", ["nn", "optim", "utils"])
def test_layers_touch_no_raw_array(folder):
    for path in files(f"torchlite/{folder}"):
        touched = [
            node.attr
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Attribute) and node.attr in ("_tl_array", "_tl_kernels")
        ]
        assert not touched, path


@pytest.mark.parametrize("path", files("backends"), ids=lambda p: str(p.relative_to(ROOT / "backends")))
def test_backends_know_the_protocol_only(path):
    """Of the front end a backend may know the registry, dtypes, devices, shape rules, thread settings, switches and
    errors.
    """
    allowed = ("torchlite._dispatch", "torchlite._types", "torchlite._settings")
    strangers = [n for n in imported(path) if n.startswith("torchlite.") and not n.startswith(allowed)]
    assert not strangers
    if path.parent.name == "array":
        # NumPy's dtypes are CuPy's too; the arrays' functions come through the global `xp`.
        assert not names(path, {"cupy"})


# The front end's rooms from the ground up: each may know itself and those before it.
ROOMS = ("_settings", "_types", "_dispatch", "_device", "_tensor", "autograd", "_ops")


@pytest.mark.parametrize("room", ROOMS)
def test_rooms_know_what_they_stand_on(room):
    # The Array API's namespace shows two public ones, which stand on the core alone.
    below = {f"torchlite.{name}" for name in ROOMS[: ROOMS.index(room) + 1]} | {"torchlite.fft", "torchlite.linalg"}
    for path in files(f"torchlite/{room}"):
        targets = {n for n in arrows(True)[module_name(path)] if n.startswith("torchlite")}
        above = {n for n in targets if not any(n == b or n.startswith(b + ".") for b in below)}
        assert not above, f"{path.relative_to(ROOT)} imports {sorted(above)}"


@pytest.mark.parametrize("inside_functions", [False, True], ids=["as modules load", "as functions run"])
def test_no_circles(inside_functions):
    assert circles(arrows(inside_functions)) == []


def test_circles_are_found():
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"e"}, "e": set()}) == [["a", "b", "c"]]


def test_importing_torchlite_loads_no_other_runtime():
    code = (
        "import sys, torchlite; print([m for m in ('cupy', 'pyopencl', 'torch', 'scipy', 'matplotlib', 'sklearn', "
        "'ml_dtypes', 'torchlite_backends.numpy') if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    assert found == "[]"


# Of the backends' packages each knows itself and these.
BELOW = {
    "array": (),
    "kernel_sources": ("array",),
    "cpu_engines": ("array", "device_runtime", "kernel_sources"),  # an engine's package by its name
    "onednn": (),
    "numpy": ("array", "cpu_engines", "onednn"),
    "device_runtime": ("array", "kernel_sources"),
    "opencl": ("array", "device_runtime", "kernel_sources"),
    "cupy": ("device_runtime", "kernel_sources"),
    "mpi": (),
    "nccl": (),
    "cc": ("array", "device_runtime", "kernel_sources", "numpy"),
}
DEVICE_ROOMS = ("core", "array_ops", "linalg", "nn")  # of device_runtime, from the ground up


def test_every_package_of_backends_has_its_place():
    assert set(BELOW) == {p.name for p in (ROOT / "backends" / BACKENDS).iterdir() if (p / "__init__.py").exists()}


def packages_imported(package: str):
    """The modules of a package of backends, and for each those that it imports, as parts of names."""
    for name, others in arrows(True).items():
        if name.split(".")[:2] == [BACKENDS, package]:
            yield name, [o.split(".") for o in others if o.startswith(f"{BACKENDS}.")]


@pytest.mark.parametrize("package", BELOW)
def test_packages_of_backends_know_those_below(package):
    for name, others in packages_imported(package):
        above = {o[1] for o in others} - {package, *BELOW[package]}
        assert not above, f"{name} imports {sorted(above)}"


def test_rooms_of_devices_know_what_they_stand_on():
    for name, others in packages_imported("device_runtime"):
        room = name.split(".")[2] if name.count(".") > 1 else ""
        if room in DEVICE_ROOMS:
            below = DEVICE_ROOMS[: DEVICE_ROOMS.index(room) + 1]
            above = {".".join(o) for o in others if o[1] == "device_runtime" and (o[2:3] or [""])[0] not in below}
            assert not above, f"{name} imports {sorted(above)}"


def test_kernel_sources_stand_in_their_package():
    assert not [p for p in files(f"backends/{BACKENDS}/device_runtime") if "KERNEL void" in p.read_text()]


def test_every_family_of_ops_is_named():
    from torchlite._ops import FAMILIES

    there = sorted(path.stem for path in (ROOT / "torchlite" / "_ops").glob("*.py") if path.stem != "__init__")
    assert sorted(FAMILIES) == there


def test_a_first_use_changes_no_filters_of_warnings():
    """Filters that a first use within `catch_warnings` adds would go with it, and later overflows would warn."""
    code = (
        "import warnings, torchlite as torch\n"
        "before = list(warnings.filters)\n"
        "with warnings.catch_warnings():\n    torch.ones(1) + 1\n"
        "with warnings.catch_warnings(record=True) as told:\n    torch.tensor([1e38]) * 1e38\n"
        "torch.ones(1) / 0\n"
        "print(told, warnings.filters == before)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[] True\n" and not done.stderr
