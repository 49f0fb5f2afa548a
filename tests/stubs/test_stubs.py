"""The stubs that editors and type checkers read say what there is: the generated ones are those that the records give
today, and those written by hand have the names and parameters of the code.
"""

import ast
import importlib
import importlib.util
import inspect
from pathlib import Path

import pytest

import torchlite as torch

ROOT = Path(__file__).resolve().parents[2]
TYPES = ROOT / "torchlite" / "_stubs"
# The owner of a stub's names; those of the other files in torchlite/_stubs are torchlite's.
OWNERS = {
    "fft": "fft",
    "linalg": "linalg",
    "special": "special",
    "functional": "nn.functional",
    "functional_pooling": "nn.functional",
}
BY_HAND = {
    "torchlite/_stubs/basic.pyi": ("",),
    "torchlite/_stubs/functions.pyi": ("",),
    "torchlite/_stubs/tensor.pyi": ("",),
    "torchlite/_stubs/accelerator.pyi": ("cuda", "opencl"),
    "torchlite/autograd/__init__.pyi": ("autograd",),
    "torchlite/cuda/__init__.pyi": ("cuda",),
    "torchlite/random.pyi": ("random",),
}


@pytest.fixture(scope="module")
def stubs():
    spec = importlib.util.spec_from_file_location("make_stubs", ROOT / "tools" / "make_stubs.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.stubs()


def _module(name: str):
    return importlib.import_module(f"torchlite.{name}") if name else torch


def test_stubs_are_not_stale(stubs):
    stale = [path.name for path, text in stubs.items() if not path.exists() or path.read_text() != text]
    assert not stale, f"{', '.join(stale)} do not match the op records: run python tools/make_stubs.py"


def test_stubs_name_existing_members(stubs):
    for path, text in stubs.items():
        if path.parent != TYPES or path.stem in {"results", "accelerator", "basic", "functions", "tensor"}:
            continue
        owner, missing = _module(OWNERS.get(path.stem, "")), []
        for node in ast.parse(text).body:
            if isinstance(node, ast.FunctionDef):
                missing += [] if hasattr(owner, node.name) else [node.name]
            elif isinstance(node, ast.ClassDef):
                inside = [item.name for item in node.body if isinstance(item, ast.FunctionDef)]
                missing += [name for name in inside if not hasattr(torch.Tensor, name)]
        assert not missing, (path.name, missing)


def _undocumented(path: Path, body, prefix: str = "") -> list[str]:
    """Public functions and methods without a docstring; one of several overloads, and a property's getter, have it."""
    found, seen = [], set()
    for node in body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            found += _undocumented(path, node.body, f"{node.name}.")
        elif isinstance(node, ast.FunctionDef) and not node.name.startswith("_") and node.name not in seen:
            seen.add(node.name)
            found += [] if ast.get_docstring(node) else [f"{path.stem}: {prefix}{node.name}"]
    return found


def test_editors_show_a_docstring_for_each_function_and_method():
    paths = [path for path in TYPES.glob("*.pyi") if path.stem not in ("results", "aliases")]
    paths += [ROOT / "torchlite" / name for name in ("autograd/__init__.pyi", "cuda/__init__.pyi", "random.pyi")]
    missing = [name for path in paths for name in _undocumented(path, ast.parse(path.read_text()).body)]
    assert not missing, "\n".join(missing)


def test_stubs_show_the_docstrings_of_the_records():
    def docstrings(name, kind=None):
        body = ast.parse((TYPES / f"{name}.pyi").read_text()).body
        if kind:
            body = next(node.body for node in body if isinstance(node, ast.ClassDef) and node.name == kind)
        return {node.name: ast.get_docstring(node) for node in reversed(body) if isinstance(node, ast.FunctionDef)}

    def words(text):
        return " ".join(text.split())

    record = torch._dispatch.NAMESPACES["torch"]["add"]
    first = words(inspect.cleandoc(record.doc).partition("\n\n")[0])
    assert first and words(docstrings("elementwise")["add"]).startswith(first)
    assert words(docstrings("elementwise", "ElementwiseMethods")["add"]).startswith(first)
    loss = torch._dispatch.NAMESPACES["nn.functional"]["cross_entropy"]
    first = words(inspect.cleandoc(loss.doc).partition("\n\n")[0])
    assert first and words(docstrings("functional")["cross_entropy"]).startswith(first)
    assert words(docstrings("functions")["save"]).startswith(words(torch.save.__doc__.partition("\n\n")[0]))


def test_module_stub_leaves_nothing_out():
    given = {"e", "inf", "nan", "pi"}
    for path in TYPES.glob("*.pyi"):
        if path.stem not in {*OWNERS, "accelerator", "aliases", "methods", "results", "__init__"}:
            given |= {
                n.name for n in ast.parse(path.read_text()).body if isinstance(n, (ast.FunctionDef, ast.ClassDef))
            }
            given |= {n.target.id for n in ast.parse(path.read_text()).body if isinstance(n, ast.AnnAssign)}
    for node in ast.parse((ROOT / "torchlite" / "__init__.pyi").read_text()).body:
        if isinstance(node, ast.ImportFrom):
            given |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.AnnAssign):
            given.add(node.target.id)
    assert {name for name in torch.__all__ if name not in given} == set()
    assert {name for name in [*torch._LAZY, *torch._MODULES] if name not in given} == set()


def _parameters(function: ast.FunctionDef) -> list[str]:
    arguments = function.args
    names = [*arguments.posonlyargs, *arguments.args, arguments.vararg, *arguments.kwonlyargs, arguments.kwarg]
    return [argument.arg for argument in names if argument is not None]


def _overloaded(function: ast.FunctionDef) -> bool:
    return any(isinstance(mark, ast.Name) and mark.id == "overload" for mark in function.decorator_list)


def _mismatch(where: str, function: ast.FunctionDef, found) -> list[str]:
    if _overloaded(function) or isinstance(found, (property, type)) or not callable(found):
        return []
    try:
        have = list(inspect.signature(found, follow_wrapped=False).parameters)
    except (TypeError, ValueError):
        return []
    want = _parameters(function)
    loose = {"args", "kwargs", "exc", "options"}  # `*exc` stands for three; `**options` for those that are seldom used
    if loose & {*want, *have} or function.name.startswith("__"):
        return []
    return [] if want == have else [f"{where}{function.name}: {want} for {have}"]


@pytest.mark.parametrize("path", BY_HAND)
def test_stubs_by_hand_have_the_parameters_of_the_code(path):
    wrong = []
    for owner in map(_module, BY_HAND[path]):
        for node in ast.parse((ROOT / path).read_text()).body:
            if isinstance(node, ast.FunctionDef):
                found = getattr(owner, node.name, None)
                wrong += [f"no {node.name}"] if found is None else _mismatch("", node, found)
            elif isinstance(node, ast.ClassDef) and not node.name.startswith("_") and hasattr(owner, node.name):
                kind = getattr(owner, node.name)
                for item in node.body:
                    if isinstance(item, ast.FunctionDef):
                        found = inspect.getattr_static(kind, item.name, None) or getattr(kind, item.name, None)
                        found = getattr(found, "__func__", found)
                        wrong += [] if found is None else _mismatch(f"{node.name}.", item, found)
    assert not wrong, "\n".join(wrong)


def test_stubs_import_names_that_exist():
    missing = []
    for path in sorted((ROOT / "torchlite").rglob("*.pyi")):
        package = list(path.relative_to(ROOT).with_suffix("").parts[:-1])
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.ImportFrom) or not node.level or path.parent.name == "_stubs":
                continue
            home = ".".join([*package[: len(package) - node.level + 1], *([node.module] if node.module else [])])
            if "_stubs" in home:
                continue
            try:
                module = importlib.import_module(home)
            except ModuleNotFoundError:
                missing.append(f"{path.relative_to(ROOT)}: {home}")
                continue
            for alias in node.names:
                if alias.name != "*" and not hasattr(module, alias.name):
                    try:
                        importlib.import_module(f"{home}.{alias.name}")
                    except ModuleNotFoundError:
                        missing.append(f"{path.relative_to(ROOT)}: {home}.{alias.name}")
    assert not missing, "\n".join(missing)
