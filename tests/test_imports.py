"""Imports between packages point downwards, and importing torchlite stays light."""

from __future__ import annotations

import ast
import functools
import subprocess
import sys
import textwrap

import pytest

from .import_graph import (
    BACKENDS,
    FACADES,
    FRONT,
    NAMES_OF_BACKENDS,
    ROOT,
    Graph,
    circles,
    files,
    module_graph,
    module_name,
    names_of,
    room,
    room_graph,
)

RUNTIMES = {"cupy", "pyopencl", "torch", "scipy", "jax", "mpi4py"}

# The rooms of torchlite from the ground up. A room imports those of lower floors alone: by statements, by
# `import_module`, by strings, and by attributes of the root, such as `torch.nn.Linear`.
FLOORS = (
    ("_settings", "__future__", "version"),
    ("_types", "futures", "torch_version"),
    ("_dispatch", "_symbolic_shapes"),
    ("_device", "_symbolic_expression_text", "fft", "masked", "return_types", "special"),
    ("_tensor", "mps", "mtia", "opencl", "random", "xpu"),
    ("autograd", "_ops", "_prims_common", "_serialization", "types"),
    ("amp", "linalg", "quasirandom", "serialization", "signal", "testing"),
    ("_interop", "_library", "_sparse", "cpu", "storage"),
    ("_extensions", "_lobpcg", "overrides", "sparse"),
    ("_aten", "cuda"),
    ("_decomp", "accelerator", "backends", "library"),
    ("utils",),
    ("_subclasses", "hub", "nn", "multiprocessing"),
    ("_losses", "_quantized", "distributions", "func", "nested", "optim"),
    ("fx", "profiler"),
    ("_functorch", "_higher_order_ops", "jit"),
    ("_dynamo", "ao", "package"),
    ("compiler", "export", "quantization"),
    ("distributed", "onnx"),
    ("__config__", "_alias", "functional"),
    ("_cli",),
    ("serve",),
    ("__main__",),
)
# PyTorch's private modules: names alone, which no room imports.
PRIVATE_NAMES = (
    "_C", "_VF", "_compile", "_custom_op", "_custom_ops", "_export", "_guards", "_inductor", "_jit_internal",
    "_linalg_utils", "_logging", "_tensor_str", "_utils", "_vmap_internals",
)  # fmt: skip
# Modules that import others by computed names, and the source of the names.
DYNAMIC = {
    "torchlite": "the tables of the root's attributes",
    "torchlite.__main__": "the table of commands",
    "torchlite._C": "the table of its names",
    "torchlite._alias": "names under `torch`",
    "torchlite._aten": "`torch.ops.import_module`",
    "torchlite._cli.bench.workloads.__main__": "a folder's package",
    "torchlite._cli.bench.workloads.worker": "the library that is measured",
    "torchlite._cli.demo": "packages that the demo needs",
    "torchlite._dispatch.callbacks": "tables of callbacks",
    "torchlite._serialization.pytorch_names": "names in a checkpoint, of a list",
    "torchlite._settings.entry_points": "the modules that installed packages name",
    "torchlite._settings.moved_modules": "old names of modules",
    "torchlite_backends.cc.kernel_distribution": "the package of compiled kernels",
    "torchlite.accelerator": "the module of a device type",
    "torchlite.fx.graph_module": "the module of a graph in a package",
    "torchlite.fx._naming": "the root, for names in a graph",
    "torchlite.hub": "packages that a repository needs",
    "torchlite.onnx._export.program_to_model": "a program's libraries",
    "torchlite.package._pickles": "modules that a trusted pickle names",
    "torchlite.package._trusted_modules": "external modules of a package",
    "torchlite.serve._code": "modules of a model's handler or factory",
    "torchlite.utils.data.datapipes.utils.decoder": "packages that decode files",
    "torchlite.utils._pytree_serialization": "classes in a serialised tree",
    "torchlite.utils.tensorboard._tensorboard_imports": "two packages that write events",
    "torchlite_backends.array": "its own modules",
    "torchlite_backends.cpu_engines.engine_selection": "the table of engines of torchlite_backends",
    "torchlite_backends.device_runtime.backend": "its own modules",
}


@functools.cache
def graph() -> Graph:
    return Graph()


def names(path, prefixes) -> list[str]:
    return sorted(name for name in names_of(path) if name.partition(".")[0] in prefixes)


def test_front_end_knows_no_backend_and_no_runtime_but_numpy():
    found = {module_name(path): names(path, {BACKENDS} | RUNTIMES) for path in files("torchlite")}
    assert not {name: imported for name, imported in found.items() if imported}


def test_front_end_names_no_backend():
    naming = {a.source for a in graph().arrows if a.source.startswith(FRONT) and a.target.startswith(BACKENDS)}
    assert {name for name in naming if room(name) != BACKENDS and not name.startswith(BACKENDS)} == NAMES_OF_BACKENDS


@pytest.mark.parametrize("folder", ["nn", "optim", "utils"])
def test_layers_touch_no_raw_array(folder):
    for path in files(f"torchlite/{folder}"):
        touched = [
            node.attr
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Attribute) and node.attr in ("_tl_array", "_tl_kernels")
        ]
        assert not touched, path


def test_backends_know_the_protocol_only():
    """Of the front end a backend may know the registry, dtypes, devices, shape rules, thread settings, switches and
    errors.
    """
    allowed = ("torchlite._dispatch", "torchlite._types", "torchlite._settings")
    for path in files("backends"):
        strangers = [n for n in names_of(path) if n.startswith("torchlite.") and not n.startswith(allowed)]
        assert not strangers, path
        if path.parent.name == "array":
            # NumPy's dtypes are CuPy's too; the arrays' functions come through the global `xp`.
            assert not names(path, {"cupy"}), path


def test_every_room_has_a_floor():
    rooms = {room(name) for name in graph().paths if name.partition(".")[0] == FRONT} - {FRONT}
    assert sorted(rooms) == sorted((*(name for floor in FLOORS for name in floor), *PRIVATE_NAMES))


@pytest.mark.parametrize("floor", range(len(FLOORS)), ids=lambda n: f"{n} {FLOORS[n][0]}")
def test_rooms_import_lower_floors(floor):
    below = {FRONT, *(name for lower in FLOORS[:floor] for name in lower)}
    up = {
        f"{a.source}:{a.line} imports {a.target}"
        for a in graph().arrows
        if room(a.source) in FLOORS[floor]
        and room(a.target) not in below | {room(a.source)}
        and (a.source, room(a.target)) not in FACADES
        and not (a.source in NAMES_OF_BACKENDS and a.target.startswith(BACKENDS))
    }
    assert not up


def test_facades_import_from_higher_floors():
    named = {(a.source, room(a.target)) for a in graph().arrows}
    assert set(FACADES) <= named


def test_private_names_of_pytorch_are_imported_by_none():
    arrows = [a for a in graph().arrows if room(a.target) in PRIVATE_NAMES and a.source != FRONT]
    assert not [a for a in arrows if room(a.source) not in PRIVATE_NAMES]


def test_modules_that_import_by_unknown_names():
    assert graph().dynamic == set(DYNAMIC)


@pytest.mark.parametrize(
    "whens", [("load",), ("load", "call", "attribute")], ids=["as modules load", "as functions run"]
)
def test_no_circles(whens):
    assert circles(module_graph(graph(), whens)) == []


def test_no_circles_of_rooms():
    assert circles(room_graph(graph())) == []


def test_circles_are_found():
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"e"}, "e": set()}) == [["a", "b", "c"]]


# Programs that load a model and compute with it, and beginnings of names of modules that they do not need.
FIRST_RESULTS = {
    "state dict": (
        """
        model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
        model.load_state_dict(torch.load("model.pt"))
        """,
        """
        torchlite._aten torchlite._dynamo torchlite._functorch torchlite._higher_order_ops torchlite._interop
        torchlite._library torchlite._sparse torchlite._symbolic_shapes torchlite.amp torchlite.compiler
        torchlite.distributed torchlite.export torchlite.func torchlite.fx torchlite.jit torchlite.multiprocessing
        torchlite.onnx torchlite.optim torchlite.nn.modules.conv torchlite.nn.modules.loss torchlite.nn.modules.rnn
        json dataclasses
        """,
    ),
    "onnx": (
        'model = torch.onnx.load("model.onnx")',
        """
        torchlite._aten torchlite._dynamo torchlite._functorch torchlite._higher_order_ops torchlite._interop
        torchlite._sparse torchlite.compiler torchlite.distributed torchlite.export torchlite.func._forward_mode
        torchlite.func._vmap torchlite.fx.passes torchlite.jit torchlite.multiprocessing torchlite.nn.modules.loss
        torchlite.onnx._export torchlite.onnx._import.ai_onnx_ml torchlite.onnx._import.conv_pool
        torchlite.onnx._import.recurrent torchlite.onnx._import.strings torchlite.optim
        json secrets zipfile
        """,
    ),
    "torchscript": (
        'model = torch.jit.load("model.ts")',
        """
        torchlite._dynamo torchlite._functorch torchlite._higher_order_ops torchlite._interop torchlite._sparse
        torchlite._symbolic_shapes torchlite.compiler torchlite.distributed torchlite.export torchlite.func
        torchlite.fx torchlite.multiprocessing torchlite.nn.modules.conv torchlite.nn.modules.loss torchlite.onnx
        torchlite.optim json
        """,
    ),
}
# No first result needs these.
NEVER_FIRST = """
    torchlite._cli torchlite.distributions torchlite.profiler torchlite.serve torchlite.testing torchlite.utils.data
    torchlite_backends.cc torchlite_backends.cupy torchlite_backends.opencl
    importlib.metadata email multiprocessing subprocess tempfile socket asyncio unittest
"""


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A folder with a small network in each format."""
    import torchlite as torch

    folder = tmp_path_factory.mktemp("models")
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2)).eval()
    example = torch.ones(1, 3)
    torch.save(model.state_dict(), folder / "model.pt")
    torch.onnx.export(model, (example,), folder / "model.onnx", external_data=False)
    torch.jit.save(torch.jit.trace(model, example), folder / "model.ts")
    return folder


@pytest.mark.parametrize("name", FIRST_RESULTS)
def test_a_first_result_loads_what_it_needs(models, name):
    load, absent = FIRST_RESULTS[name]
    program = f"""
import sys
before = set(sys.modules)
import torchlite as torch
{textwrap.dedent(load).strip()}
with torch.no_grad():
    assert model(torch.ones(1, 3)).shape == (1, 2)
print(*{{*sys.modules}} - before)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=models)
    loaded = done.stdout.split()
    kept_out = [*absent.split(), *NEVER_FIRST.split()]
    found = [m for m in loaded if any(m == other or m.startswith(f"{other}.") for other in kept_out)]
    assert not found


def test_names_are_loaded_from_where_they_are():
    """The tables of `torch.nn.modules`, `torch.func` and the ONNX ops name each module's classes and functions."""
    import torchlite as torch
    from torchlite.onnx import _import
    from torchlite.onnx._import import op_registry

    for package in (torch.nn.modules, torch.func):
        tables = {name: names.split() for name, names in package._HOMES.items()}
        assert set(package.__all__) <= {name for names in tables.values() for name in names}
        for home, names in tables.items():
            for name in names:
                found = getattr(package, name)
                assert found is getattr(sys.modules[f"{package.__name__}.{home}"], name)
                assert package is torch.func or found.__module__ == f"{package.__name__}.{home}"
    _import.register_all()
    homes: dict[str, set[str]] = {}
    for (domain, name), entries in op_registry._TABLE.items():
        if domain in _import.DOMAINS:
            continue
        homes.setdefault(name, set()).update(e.function.__module__.rpartition(".")[2] for e in entries)
    assert homes == {name: {home} for home, names in _import.FAMILIES.items() for name in names.split()}


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
    "cpu_engines": ("array", "device_runtime", "kernel_sources"),  # engines by the table of torchlite_backends
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
    for name, others in module_graph(graph(), ("load", "call", "attribute")).items():
        if name.split(".")[:2] == [BACKENDS, package]:
            yield name, [o.split(".") for o in others if o.startswith(f"{BACKENDS}.")]


@pytest.mark.parametrize("package", BELOW)
def test_packages_of_backends_know_those_below(package):
    for name, others in packages_imported(package):
        above = {o[1] for o in others} - {package, *BELOW[package]}
        assert not above, f"{name} imports {sorted(above)}"


def test_device_packages_import_only_lower_floors():
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
