"""The arrows between the folders point one way, and importing torchlite stays light."""

from __future__ import annotations

import ast
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]
RUNTIMES = {"cupy", "pyopencl", "torch", "scipy", "jax"}
BACKENDS = {p.name for p in (ROOT / "backends").iterdir() if p.is_dir() and p.name.startswith("torchlite_")}


def imported(path: pathlib.Path) -> set[str]:
    """Absolute dotted names that a file imports, wherever in it."""
    package = path.relative_to(ROOT).with_suffix("").parts
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = list(package[: len(package) - node.level]) if node.level else []
            found.add(".".join([*base, *((node.module or "").split(".") if node.module else [])]))
    return found


def files(folder: str):
    return sorted((ROOT / folder).rglob("*.py"))


def names(path, prefixes) -> list[str]:
    return sorted(n for n in imported(path) if n.split(".")[0] in prefixes)


@pytest.mark.parametrize("path", files("torchlite"), ids=lambda p: str(p.relative_to(ROOT)))
def test_front_end_knows_no_backend_and_no_runtime_but_numpy(path):
    assert not names(path, BACKENDS | RUNTIMES)


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
        assert not names(path, BACKENDS), path


@pytest.mark.parametrize("folder", ["nn", "optim", "utils"])
def test_layers_touch_no_raw_array(folder):
    for path in files(f"torchlite/{folder}"):
        touched = [
            node.attr
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Attribute) and node.attr in ("_data", "_table")
        ]
        assert not touched, path


@pytest.mark.parametrize("path", files("backends"), ids=lambda p: str(p.relative_to(ROOT / "backends")))
def test_backends_know_the_protocol_only(path):
    """Of the front end a backend may know the registry, dtypes, devices, shape rules, thread settings, switches and
    errors.
    """
    allowed = (
        "torchlite._dispatch",
        "torchlite._dtype",
        "torchlite._device",
        "torchlite._threads",
        "torchlite._switches",
        "torchlite_",
    )
    strangers = [n for n in imported(path) if n.startswith("torchlite.") and not n.startswith(allowed)]
    assert not strangers
    if "torchlite_array" in path.parts:
        # NumPy's dtypes are CuPy's too; the arrays' functions come through the global `xp`.
        assert not names(path, {"cupy"} | (BACKENDS - {"torchlite_array"}))


def test_importing_torchlite_loads_no_other_runtime():
    code = (
        "import sys, torchlite; print([m for m in ('cupy', 'pyopencl', 'torch', 'scipy', 'matplotlib', 'sklearn', "
        "'ml_dtypes', 'torchlite_numpy') if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    assert found == "[]"


def test_rooms_of_backends_know_those_before_them():
    """torchlite_kernels has all texts and knows nothing of launching; a room of torchlite_device knows those before it,
    and a runtime what they both have. No module of a backend comes back to itself through its imports, wherever they
    stand.
    """
    order = ("machinery", "elements", "linalg", "nn")
    below = {"torchlite_array": (), "torchlite_kernels": ("torchlite_array",), "torchlite_numpy": ("torchlite_array",)}
    below["torchlite_device"] = ("torchlite_array", "torchlite_kernels")
    below["torchlite_opencl"] = below["torchlite_cupy"] = ("torchlite_device", "torchlite_kernels")
    modules = {}
    for path in files("backends"):
        parts = path.relative_to(ROOT / "backends").with_suffix("").parts
        modules[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path

    def found_in(name: str, body: list[ast.stmt]) -> set[str]:
        """The modules that statements import, but for type checkers."""
        package = name.split(".") if modules[name].name == "__init__.py" else name.split(".")[:-1]
        found = set()
        for node in body:
            if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
                continue
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                base = package[: len(package) - node.level + 1] if node.level else []
                start = ".".join([*base, *((node.module or "").split(".") if node.module else [])])
                found |= {n if (n := f"{start}.{a.name}") in modules else start for a in node.names}
            else:
                found |= found_in(name, list(ast.iter_child_nodes(node)))
        return found & (modules.keys() - {name})

    known = {name: found_in(name, ast.parse(path.read_text()).body) for name, path in modules.items()}
    for name, others in known.items():
        package, room = (*name.split("."), "")[:2]
        for other in others:
            whose, where = (*other.split("."), "")[:2]
            assert whose == package or whose in below[package], (name, other)
            if package == whose == "torchlite_device" and room in order:
                assert where in order and order.index(where) <= order.index(room), (name, other)
    open_ends = dict(known)
    while ends := [name for name, others in open_ends.items() if not others & open_ends.keys()]:
        for name in ends:
            del open_ends[name]
    assert not open_ends, "in circles or above them"
    assert not [p for p in files("backends/torchlite_device") if "KERNEL void" in p.read_text()]
