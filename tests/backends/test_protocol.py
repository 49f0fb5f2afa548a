"""The backend contract: each hook that the front end calls is a member of a Protocol of `torchlite.backends.protocol`,
each member is called, and each backend's methods have the Protocols' parameters.
"""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest

import torchlite as torch
from tests.toy_backend import load_page
from torchlite._dispatch import REGISTRY, backend_registry
from torchlite._dispatch.backend import REQUIRED_MEMBERS, KernelTable
from torchlite._dispatch.meta_backend import MetaBackend
from torchlite._types import devices
from torchlite.backends import protocol
from torchlite_backends.cc.backend import CompiledBackend
from torchlite_backends.cupy.backend import CUDABackend
from torchlite_backends.numpy import NumpyBackend
from torchlite_backends.opencl.backend import OpenCLBackend

SOURCES = sorted(Path(torch.__file__).parent.rglob("*.py"))
BACKENDS = (NumpyBackend, OpenCLBackend, CUDABackend, CompiledBackend, MetaBackend)


def members(*protocols: type) -> set[str]:
    """The names of Protocols' members, inherited ones included."""
    bases = (base for one in protocols for base in one.__mro__ if getattr(base, "_is_protocol", False))
    return {name for base in bases for name in vars(base) if not name.startswith("_")}


class Uses(ast.NodeVisitor):
    """The attributes that a file reads of some objects: of expressions that are such an object, and of variables that
    are assigned one or are annotated with its type.

    attributes: `x.NAME` is such an object; calls: so is the result of `NAME(...)` or `x.NAME(...)`; types: names of
    annotations.
    """

    def __init__(self, attributes=(), calls=(), types=()):
        self.attributes, self.calls, self.types = attributes, calls, types
        self.variables: set[str] = set()
        self.found: set[str] = set()

    def is_one(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Name):
            return node.id in self.variables
        if isinstance(node, ast.Attribute):
            return node.attr in self.attributes
        if isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            return called in self.calls
        return False

    def visit_FunctionDef(self, node):
        outside, self.variables = self.variables, set(self.variables)
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        for one in arguments:
            self.variables.discard(one.arg)
            if one.annotation is not None and ast.unparse(one.annotation) in self.types:
                self.variables.add(one.arg)
        self.generic_visit(node)
        self.variables = outside

    def assigned(self, target: ast.AST, value: ast.AST) -> None:
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            for one, other in zip(target.elts, value.elts, strict=True):
                self.assigned(one, other)
        elif isinstance(target, ast.Name):
            (self.variables.add if self.is_one(value) else self.variables.discard)(target.id)

    def visit_Assign(self, node):
        self.generic_visit(node)
        for target in node.targets:
            self.assigned(target, node.value)

    def visit_AnnAssign(self, node):
        self.generic_visit(node)
        if node.value is not None:
            self.assigned(node.target, node.value)

    def visit_Attribute(self, node):
        if self.is_one(node.value):
            self.found.add(node.attr)
        self.generic_visit(node)

    def visit_Call(self, node):
        named = isinstance(node.func, ast.Name) and node.func.id in ("getattr", "hasattr")
        if named and self.is_one(node.args[0]) and isinstance(node.args[1], ast.Constant):
            self.found.add(node.args[1].value)
        # `runtime_of(device, what, "method")` tests for a method of a runtime.
        if isinstance(node.func, ast.Name) and node.func.id == "runtime_of" and "runtime_of" in self.calls:
            self.found.add(node.args[2].value)
        self.generic_visit(node)


def uses(skip=(), **objects) -> dict[str, set[str]]:
    """{attribute: files that read it} over the front end."""
    found: dict[str, set[str]] = {}
    for path in SOURCES:
        name = path.relative_to(Path(torch.__file__).parent).as_posix()
        text = path.read_text()
        if not name.startswith(skip) and any(word in text for words in objects.values() for word in words):
            visitor = Uses(**objects)
            visitor.visit(ast.parse(text))
            for attribute in visitor.found:
                found.setdefault(attribute, set()).add(name)
    return found


# `torch.distributed`'s and `torch.compile`'s backends are other things of the same name.
BACKEND = {"attributes": ("backend",), "calls": ("backend_of",), "types": ("AnyBackend", "Backend")}
OTHER_BACKENDS = ("distributed/_process", "distributed/_backend_config", "distributed/_sync", "distributed/_world",
                  "distributed/_device_comm", "_dynamo/backends/")  # fmt: skip
RUNTIME = {"attributes": ("_runtime",), "calls": ("runtime", "_runtime", "runtime_of")}
TABLE = {"attributes": ("_tl_kernels",), "calls": ("table_of",), "types": ("KernelTable",)}


def test_each_hook_in_use_is_a_member():
    unknown = {
        n: files for n, files in uses(OTHER_BACKENDS, **BACKEND).items() if n not in members(protocol.AnyBackend)
    }
    assert not unknown


def test_each_member_is_in_use():
    assert members(protocol.AnyBackend) == set(uses(OTHER_BACKENDS, **BACKEND))


def test_runtimes():
    found = set(uses(**RUNTIME))
    assert found == members(protocol.StreamRuntime)


def test_random_engines():
    found = set(uses(OTHER_BACKENDS, attributes=("_engine",), calls=("_engine_with_offset",)))
    assert found == members(protocol.CounterBasedEngine)


def test_raw_arrays():
    """`pytest --device toy` runs on an array that has the Protocol's members alone."""
    own = {name for name in vars(load_page().ToyArray) if not name.startswith("_")}
    assert own - {"cells", "owner", "offset"} == members(protocol.DeviceArray)


def test_attributes_read_from_tables_are_ops_or_members():
    table = torch.ones(1)._tl_kernels
    own = {*dir(KernelTable), *(name for name in vars(table) if name not in REGISTRY)}
    unknown = {
        name: files
        for name, files in uses(**TABLE).items()
        if name not in REGISTRY and name.removesuffix("_") not in REGISTRY and name not in own
    }
    assert not unknown


def test_in_place_kernels_are_optional():
    """`getattr(table, "NAME_", None)`: a backend need not have a kernel in place."""
    read = [
        f"{path.name}:{node.lineno}"
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr.endswith("_") and not node.attr.endswith("__")
        and isinstance(node.value, ast.Attribute) and node.value.attr == "_tl_kernels"
    ]  # fmt: skip
    assert not read


def test_uses_are_found():
    text = "def f(x, b: Backend):\n    y = x.backend\n    y.one\n    getattr(b, 'two', None)\n    backend_of(1).three\n"
    visitor = Uses(**BACKEND)
    visitor.visit(ast.parse(text))
    assert visitor.found == {"one", "two", "three"}


def test_each_member_has_a_docstring():
    for name in protocol.__all__:
        one = getattr(protocol, name)
        if getattr(one, "_is_protocol", False):
            assert one.__doc__, name
    for one in protocol.AnyBackend.__mro__:
        for name in members(one) & set(vars(one)) - {"device_count"}:
            member = vars(one)[name]
            assert inspect.getdoc(member), f"{one.__name__}.{name}"


def test_required_members():
    assert set(REQUIRED_MEMBERS) == members(protocol.Backend)


@pytest.mark.parametrize("backend", [*BACKENDS, "toy"])
def test_parameters_of_implementations(backend):
    backend = load_page().ToyBackend if backend == "toy" else backend
    for one in protocol.AnyBackend.__mro__:
        for name in set(vars(one)) & set(dir(backend)) & members(protocol.AnyBackend):
            wanted, found = vars(one)[name], getattr(backend, name)
            if inspect.isfunction(wanted) and inspect.isfunction(found):
                want = list(inspect.signature(wanted).parameters)
                # Beyond those of the Protocol only parameters with defaults.
                more = [p for p in inspect.signature(found).parameters.values() if p.name not in want]
                assert all(p.default is not p.empty for p in more), f"{backend.__name__}.{name}"
                have = [p for p in inspect.signature(found).parameters if p in want]
                if isinstance(inspect.getattr_static(backend, name), staticmethod):
                    want = want[1:]
                assert have == want, f"{backend.__name__}.{name}"


def test_an_incomplete_backend_is_an_error():
    before = dict(backend_registry.REGISTERED)
    with pytest.raises(
        TypeError, match="the backend of 'half' lacks array, .*why_not: torchlite.backends.protocol.Backend describes"
    ):
        protocol.register_backend("half", object())
    assert backend_registry.REGISTERED == before


def test_modules_of_backends(monkeypatch):
    """Those of `torchlite_backends`, and those that a registered backend is defined in or below; never a program."""
    names = (
        "torchlite_backends.array.shape",
        "toy_backend",
        "toy_backend.kernels",
        "toy_backends",
        "torchlite._dispatch",
    )
    known = [devices.is_backend_module(name) for name in names]
    monkeypatch.setattr(devices, "REGISTERED", {**devices.REGISTERED, "other": load_page().backend})
    assert [devices.is_backend_module(name) for name in names] == [True, True, True, False, False]
    assert known[0] and not any(known[3:])
    program = type("Program", (load_page().ToyBackend,), {"__module__": "__main__"})
    monkeypatch.setattr(devices, "REGISTERED", {"other": program()})
    assert not devices.is_backend_module("__main__")


def test_optional_hooks_that_are_absent():
    name, toy = "without_hooks", load_page().ToyBackend
    required = {member: inspect.getattr_static(toy, member) for member in REQUIRED_MEMBERS}
    protocol.register_backend(name, type("Minimal", (), required)())
    try:
        x = torch.ones(2, device=name)
        assert (x + 1).tolist() == [2, 2]
        with pytest.raises(NotImplementedError, match="device 'without_hooks:0' has no random numbers"):
            torch.Generator(name)
        with pytest.raises(NotImplementedError, match="device 'without_hooks:0' has no random numbers"):
            torch.rand(2, device=name)
    finally:
        del backend_registry.REGISTERED[name]
        backend_registry._tables.pop(torch.device(name, 0))
