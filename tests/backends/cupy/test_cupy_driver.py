"""The CuPy functions that `torchlite_backends/cupy/cupy_driver.py` calls exist with these names and parameters.
CuPy imports without a driver; nothing here needs a GPU.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import pathlib
import types

import pytest

cupy = pytest.importorskip("cupy", reason="CuPy is not installed")

import torchlite_backends.cupy
from torchlite_backends.cupy import cupy_driver as module
from torchlite_backends.kernel_sources.preamble import CUDA
from torchlite_backends.kernel_sources.preamble import dtype_macros_source as types_text

FILE = pathlib.Path(torchlite_backends.cupy.__file__).with_name("driver.py")
ROOTS = ("cupy", "function", "memory", "stream", "driver", "runtime", "nvrtc")


def chains():
    """The dotted names in the driver's text that begin at a module of CuPy."""
    found = set()
    for node in ast.walk(ast.parse(FILE.read_text())):
        names, at = [], node
        while isinstance(at, ast.Attribute):
            names.insert(0, at.attr)
            at = at.value
        if names and isinstance(at, ast.Name) and at.id in ROOTS:
            found.add((at.id, *names))
    return sorted(found)


def calls():
    """(line, dotted name, number of arguments by position, names of the others) of the calls of CuPy's functions in the
    driver's text.
    """
    for node in ast.walk(ast.parse(FILE.read_text())):
        if isinstance(node, ast.Call):
            names, at = [], node.func
            while isinstance(at, ast.Attribute):
                names.insert(0, at.attr)
                at = at.value
            if (
                names
                and isinstance(at, ast.Name)
                and at.id in ROOTS
                and not any(isinstance(a, ast.Starred) for a in node.args)
            ):
                yield node.lineno, ".".join((at.id, *names)), len(node.args), [k.arg for k in node.keywords]


# Functions that are called by position, and what they take in CuPy's own words.
SIGNATURES = {
    "driver.launchKernel": "f, grid_dim_x, grid_dim_y, grid_dim_z, block_dim_x, block_dim_y, block_dim_z, "
    "shared_mem_bytes, stream, kernel_params, extra",
    "driver.funcGetAttribute": "attribute, f", "runtime.memcpyAsync": "dst, src, size, kind, stream",
    "runtime.getDeviceProperties": "device", "runtime.deviceCanAccessPeer": "device, peerDevice",
    "runtime.streamQuery": "stream", "runtime.streamWaitEvent": "stream, event, flags",
    "runtime.eventRecord": "event, stream", "runtime.eventElapsedTime": "start, end",
    "nvrtc.createProgram": "src, name, headers, include_names", "nvrtc.compileProgram": "prog, options",
    "nvrtc.getProgramLog": "prog", "memory.alloc": "size", "memory.MemoryPool.malloc": "self, size",
    "memory.MemoryPool.used_bytes": "self", "memory.MemoryPool.total_bytes": "self",
    "memory.MemoryPool.free_all_blocks": "self, stream", "memory.MemoryPool.set_limit": "self, size, fraction",
    "function.Module.load": "self, cubin", "function.Module.get_function": "self, name",
    "stream.get_current_stream": "device_id", "stream.Stream.begin_capture": "self, mode",
    "stream.Stream.end_capture": "self", "stream.Stream.use": "self", "cupy.cuda.Graph.launch": "self, stream",
    "cupy.cuda.alloc_pinned_memory": "size", "cupy.cuda.using_allocator": "allocator",
}  # fmt: skip


def test_transforms():
    for name, wanted in (
        ("fftn", "a, s, axes, norm"),
        ("ifftn", "a, s, axes, norm"),
        ("rfftn", "a, s, axes, norm"),
        ("irfft", "a, n, axis, norm"),
    ):
        assert ", ".join(inspect.signature(getattr(cupy.fft, name)).parameters) == wanted


def found(chain):
    at = getattr(module, chain[0])
    for name in chain[1:]:
        at = getattr(at, name)
    return at


@pytest.mark.parametrize("chain", chains(), ids=".".join)
def test_name_exists(chain):
    if chain == ("stream", "ExternalStream"):  # what CuPy before 14 has instead of from_external
        assert hasattr(module.stream.Stream, "from_external") or hasattr(module.stream, "ExternalStream")
    else:
        found(chain)


@pytest.mark.parametrize("name", SIGNATURES)
def test_parameters(name):
    """Cython writes the signature in the first line of the docstring: types, names, defaults."""
    function = found(name.split("."))
    if isinstance(function, types.FunctionType):
        assert ", ".join(inspect.signature(function).parameters) == SIGNATURES[name]
        return
    said = function.__doc__.splitlines()[0]
    parameters = said[said.index("(") + 1 : said.rindex(")")].split(", ")
    assert ", ".join(p.split("=")[0].split()[-1] for p in parameters) == SIGNATURES[name]


def test_calls_have_as_many_arguments_as_the_functions_take():
    checked = 0
    for line, name, count, keywords in calls():
        function = found(name.split("."))
        said = (getattr(function, "__doc__", None) or "").splitlines()[:1]
        if isinstance(function, (type, types.FunctionType)) or not said or "(" not in said[0]:
            continue
        parameters = [
            p.strip()
            for p in said[0][said[0].index("(") + 1 : said[0].rindex(")")].split(",")
            if p.strip() not in ("", "*", "self", "cls")
        ]
        least = sum("=" not in p for p in parameters)
        names = {p.split("=")[0].split()[-1] for p in parameters}
        assert least <= count + len(keywords) <= len(parameters) and set(keywords) <= names, (
            f"line {line}: {name} takes {parameters}"
        )
        checked += 1
    assert checked > 30


def test_properties_are_those_that_the_runtime_shows():
    from torchlite_backends.cupy.device_api import DeviceProperties

    assert {*module._PROPERTIES, "name", "uuid"} == {field.name for field in dataclasses.fields(DeviceProperties)}


def test_cupy_objects_have_the_attributes_that_the_driver_reads():
    assert {"ptr", "device_id", "mem"} <= set(dir(cupy.cuda.MemoryPointer))
    assert "ptr" in dir(cupy.cuda.Function) and {"data", "strides", "device", "__dlpack__"} <= set(dir(cupy.ndarray))
    assert module.stream.Stream.null.ptr == 0
    assert issubclass(module.Driver.out_of_memory[0], MemoryError)
    assert issubclass(module.driver.CUDADriverError, RuntimeError) and issubclass(module.nvrtc.NVRTCError, RuntimeError)


def test_foreign_streams_are_passed_by_address():
    made = module.Driver.stream_from(object.__new__(module.Driver), 0x1230)
    assert made.ptr == 0x1230
    assert module.Driver.stream_from(object.__new__(module.Driver), 0) is module.stream.Stream.null


def test_programs_compile_without_flushing_small_numbers():
    """CuPy's RawModule adds `-ftz=true`; our way through NVRTC does not, and the code for the same text differs."""
    try:
        module.nvrtc_version()
    except RuntimeError as error:
        pytest.skip(f"NVRTC is not installed: {error}")
    ours = object.__new__(module.Driver)
    ours._options = ("--std=c++17", "-arch=compute_80")
    text = (
        CUDA
        + types_text((), "cuda", T="f32")
        + "KERNEL void scale(IN(T, x), OUT(T, y), const int n) { if (ITEM < n) AT(y)[ITEM] = 0.5f * AT(x)[ITEM]; }"
    )
    code = ours._compile_source(text)
    assert b".visible .entry scale(" in code and b"mul.f32" in code and b"ftz" not in code
    ours._options += ("-ftz=true",)
    assert b"mul.ftz.f32" in ours._compile_source(text)
    with pytest.raises(RuntimeError, match=r'"nonsense" is undefined'):
        ours._compile_source("KERNEL void scale() { nonsense; }".replace("KERNEL", 'extern "C" __global__'))


@pytest.mark.parametrize(
    "capability, wanted", [(90, "sm_90"), (87, "sm_87"), (121, "compute_120"), (103, "compute_100")]
)
def test_compiler_options_name_the_architecture(capability, wanted):
    assert module.compiler_options(capability, (75, 80, 86, 87, 89, 90, 100, 120)) == ("--std=c++17", f"-arch={wanted}")


def test_calls_select_the_current_device(monkeypatch):
    """A difference: CuPy's functions work on the thread's current device, whatever the memory they are given belongs
    to.
    """
    order = []

    class Device:
        def __init__(self, index):
            self.index = index

        def __enter__(self):
            order.append(f"device {self.index}")

        def __exit__(self, *exc):
            order.append("back")

    monkeypatch.setattr(
        module,
        "cupy",
        types.SimpleNamespace(cuda=types.SimpleNamespace(Device=Device), get_default_memory_pool=lambda: None),
    )
    monkeypatch.setattr(
        module, "runtime", types.SimpleNamespace(getDeviceCount=lambda: 2, memGetInfo=lambda: order.append("context"))
    )
    monkeypatch.setattr(module, "driver", types.SimpleNamespace(launchKernel=lambda *a: order.append(("launch", *a))))
    monkeypatch.setattr(module, "memory", types.SimpleNamespace(alloc=lambda n: order.append(("allocate", n))))
    monkeypatch.setattr(module.Driver, "_compiler_options", lambda self: ())
    one = module.Driver(1)
    assert order == ["device 1", "context", "back"]
    order.clear()
    one.allocate(64)
    one.launch(7, 1, 1, 1, 32, 1, 1, 0, 0, 99, 0)
    assert order == [
        "device 1",
        ("allocate", 64),
        "back",
        "device 1",
        ("launch", 7, 1, 1, 1, 32, 1, 1, 0, 0, 99, 0),
        "back",
    ]
    order.clear()
    failed = RuntimeError("no context")
    failed.status = 201  # CUDA_ERROR_INVALID_CONTEXT: a thread's first launch
    one.launch_again(failed, 7)
    assert order == ["device 1", "context", ("launch", 7), "back"]
    with pytest.raises(RuntimeError, match="another"):
        one.launch_again(RuntimeError("another"), 7)
