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
    allowed = ("torchlite._dispatch", "torchlite._types", "torchlite._settings", "torchlite_")
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
