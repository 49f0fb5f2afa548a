"""Which engine serves the CPU's large arrays, and the way from ndarrays to its kernels and back."""

from __future__ import annotations

import contextlib
import warnings
from typing import Any, ClassVar

import numpy as np
import pytest

import torchlite as torch
from torchlite._cli.info import format_report
from torchlite_backends.array.storage import data_pointer
from torchlite_backends.cpu_engines import engine_selection, kernel_overrides, ndarray_bridge
from torchlite_backends.device_runtime.core.array import Array, make_view
from torchlite_backends.device_runtime.core.host_memory import HostMemory
from torchlite_backends.numpy import backend


class Held:
    def __init__(self, array):
        self.array = array


class Host(HostMemory):
    """A device on NumPy's memory whose kernels are Python functions."""

    waiting: Any = None
    steps: Any = ()
    state: ClassVar[dict] = {}

    def __init__(self):
        self.using, self.waiting, self.calls = contextlib.nullcontext(), self, 0

    def buffer_of(self, array):
        return Held(array)

    def done(self):
        self.calls += 1


class Engine:
    name, by_default, least = "host", False, dict.fromkeys(kernel_overrides.COSTS, 8)
    run_and_keep = None  # launches are not kept

    def __init__(self, served: Host | None):
        self.served = served

    def why_not(self):
        return ""

    def describe(self):
        return "Python functions"

    def device(self):
        return self.served

    products = None

    def own(self, plain):
        return {}


@pytest.fixture
def host(monkeypatch):
    """A device whose kernels, by op, the test puts into its `kernels`."""
    device: Any = Host()
    device.kernels = {}
    monkeypatch.setattr(ndarray_bridge, "kernels", lambda of: of.kernels)
    return device


@pytest.fixture
def asked(monkeypatch):
    """The choice for a value of the variable."""

    def select_engine(value):
        if value is None:
            monkeypatch.delenv(engine_selection.VARIABLE, raising=False)
        else:
            monkeypatch.setenv(engine_selection.VARIABLE, value)
        return engine_selection.select_engine.__wrapped__()

    return select_engine


# --- the choice ----------------------------------------------------------------------------------------


@pytest.fixture
def engines(monkeypatch):
    """Engines by their names, in the place of the installed ones; an absent one is a sentence."""
    there: dict[str, Any] = {"cc": "no compiler: install one", "opencl": "no driver: install one"}

    class Absent(Engine):
        by_default = True

        def __init__(self, why):
            self.why_not = lambda: why

    def load(name):
        return Absent(there[name]) if isinstance(there[name], str) else there[name]

    monkeypatch.setattr(engine_selection, "load_engine", load)
    return there


def named(name, **more):
    made = Engine(None)
    vars(made).update(name=name, **more)
    return made


@pytest.fixture
def prepared(monkeypatch, tmp_path):
    """Notes that kernels of an engine were built in advance."""
    monkeypatch.setenv("TORCHLITE_CACHE_DIR", str(tmp_path))

    def note(name):
        folder = tmp_path / "torchlite" / name
        folder.mkdir(parents=True)
        (folder / "0.built").touch()

    return note


def test_numpy_is_the_default_engine(asked, engines, prepared):
    engines["opencl"], engines["cc"] = named("opencl"), named("cc", by_default=True)
    assert asked(None).name == asked("").name == "numpy"
    prepared("opencl")
    assert asked(None).name == "numpy"


def test_an_engine_that_serves_by_default(asked, engines, prepared):
    engines["cc"] = named("cc", by_default=True)
    prepared("cc")
    assert asked(None).name == "cc" and asked("numpy").name == "numpy"
    engines["cc"] = "built by another compiler"
    assert asked(None).name == "numpy"


def test_the_first_engine_that_is_there_serves(asked, engines):
    engines["opencl"] = named("opencl")
    assert asked(" CC , OpenCL").name == "opencl"
    assert asked("cc,opencl").missing == {"cc": "no compiler: install one"}
    assert asked("numpy,opencl").name == "numpy"


def test_an_engine_that_is_not_there(asked, engines):
    with pytest.warns(UserWarning, match="but NumPy's kernels serve. cc: no compiler: install one; opencl: no driver"):
        assert asked("cc,opencl").name == "numpy"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert asked("cc,numpy").name == "numpy"  # said to be as good


def test_a_name_of_no_engine(asked, engines):
    with pytest.raises(RuntimeError, match="names 'mkl', and there are numpy, cc and opencl"):
        asked("cc,mkl")


def test_a_level_that_is_none(asked, engines, monkeypatch):
    monkeypatch.setenv("TORCHLITE_CPU_LEVEL", "widest")
    with pytest.raises(RuntimeError, match="TORCHLITE_CPU_LEVEL names 'widest', and there are native"):
        asked("")


def test_a_broken_package_warns_and_falls_back_to_numpy(asked, monkeypatch):
    def load(name):
        raise OSError(f"lib{name}.so: cannot open")

    monkeypatch.setattr(engine_selection, "load_engine", load)
    with pytest.warns(UserWarning, match="opencl: libopencl.so: cannot open"):
        assert asked("opencl").name == "numpy"


def test_the_report_names_each_engine(engines, monkeypatch):
    engines["opencl"] = named("opencl")
    monkeypatch.setattr(engine_selection, "select_engine", lambda: engine_selection.Selection(None, {}))
    assert engine_selection.report_engines() == [
        ("numpy", "serves"),
        ("cc", "absent: no compiler: install one"),
        ("opencl", "ready, not chosen; TORCHLITE_CPU_KERNELS=opencl chooses it"),
    ]
    monkeypatch.setattr(engine_selection, "select_engine", lambda: engine_selection.Selection(engines["opencl"], {}))
    assert ("opencl", "serves: Python functions") in engine_selection.report_engines()


def test_report_names_the_engine():
    assert torch.backends.cpu.get_kernel_engine() == engine_selection.select_engine().name == backend.engine()
    assert "TORCHLITE_CPU_KERNELS" in format_report()


# --- ndarrays and Arrays -------------------------------------------------------------------------------

whole = np.arange(60.0, dtype=np.float32).reshape(5, 12)
FORMS = {
    "whole": whole,
    "transposed": whole.T,
    "part": whole[1:4, 2:9],
    "steps": whole[::2, 1::3],
    "backwards": whole[::-1, ::-2],
    "repeated": np.broadcast_to(whole[:, :1], (5, 7)),
    "number": whole[2, 3:4].reshape(()),
    "empty": whole[:0],
    "protected": np.frombuffer(whole.tobytes(), np.float32),
    "as integers": whole.view(np.int32)[:, 3:],
}


@pytest.mark.parametrize("form", FORMS)
def test_wrapped_arrays_lie_on_the_same_memory(host, form):
    x = FORMS[form]
    call = ndarray_bridge.KernelCall(host)
    wrapped = call.wrap(x)
    assert wrapped.shape == x.shape and wrapped.dtype == x.dtype and wrapped.contiguous == x.flags.c_contiguous
    assert call.unwrap_result(wrapped) is x
    again = call.unwrap_result(make_view(wrapped, wrapped.shape, wrapped.steps, wrapped.offset))  # as another array
    assert np.array_equal(again, x) and (not x.size or data_pointer(again) == data_pointer(x))


def test_arrays_that_share_memory_share_a_buffer(host):
    call = ndarray_bridge.KernelCall(host)
    one, other, apart = call.wrap_all((whole[:2], whole[1:].T, whole.copy()))
    assert one.buffer is other.buffer and one.buffer is not apart.buffer


@pytest.mark.parametrize(
    "x", [whole.astype(">f4"), np.zeros(9, "S3"), np.frombuffer(b"x" * 41, np.uint8)[1:].view(np.float32)[1:]]
)
def test_unsupported_arrays_raise(host, x):
    if x.dtype == np.float32 and x.dtype.isnative:
        x = np.lib.stride_tricks.as_strided(x, (3,), (6,))
    with pytest.raises(ndarray_bridge.UnsupportedArray):
        ndarray_bridge.KernelCall(host).wrap(x)


def new(device, array):
    out = object.__new__(Array)
    wrapped = ndarray_bridge.KernelCall(device).wrap(array)
    for name in Array.__slots__[:-1]:
        setattr(out, name, getattr(wrapped, name))
    return out


def test_results_are_base_arrays(host):
    made = np.empty((4, 3), np.float32)
    host.kernels["neg"] = lambda x: make_view(new(host, np.negative(host.unwrap(x), out=made)), (12,), (1,), 0)
    out = ndarray_bridge.run_on_device(host, "neg", (whole[:4, :3],), {})
    assert out.base is None and out.shape == (12,) and out is made
    assert np.array_equal(out.reshape(4, 3), -whole[:4, :3])


def serving(host, plain):
    return ndarray_bridge.make_engine_kernel(Engine(host), "neg", plain, {np.dtype("f4"): 8})


def test_unsupported_calls_fall_back_to_numpy(host):
    host.kernels["neg"] = lambda x, *rest: x  # tells who served
    kernel = serving(host, np.negative)
    x = np.ones(8, np.float32)
    assert kernel(x) is x
    for other in (x[:7], x.astype(np.float64), np.float32(1)):
        assert kernel(other) is not other and np.all(kernel(other) == -1)
    assert np.all(serving(None, np.negative)(x) == -1)  # no device: in a forked child


def test_errors_are_numpys(host):
    def fails(x):
        raise IndexError("the engine's words")

    host.kernels["neg"] = fails
    assert np.all(serving(host, np.negative)(np.ones(8, np.float32)) == -1)
    assert host.calls == 1

    def refuses(x):
        raise ValueError("NumPy's words")

    with pytest.raises(ValueError, match="NumPy's words"):
        serving(host, refuses)(np.ones(8, np.float32))


def test_lists_and_numbers_are_wrapped(host):
    def kernel(xs, number, *, dim):
        assert [x.__class__ for x in xs] == [Array, Array] and number.shape == () and dim == 1
        return xs[1], (xs[0],)

    host.kernels["neg"] = kernel
    a, b = np.ones(9, np.float32), np.ones(3, np.float32)
    second, (first,) = serving(host, None)([a, b], np.float32(2), dim=1)
    assert first is a and second is b


# --- the table -----------------------------------------------------------------------------------------


def test_the_table_names_kernels_that_numpy_and_devices_have(host):
    small = backend.kernels(0)
    offered = kernel_overrides.engine_kernels(small, Engine(host))
    assert {name.removesuffix("_") for name in offered} <= set(small) and len(offered) > 100
    assert {cost for costs in kernel_overrides.COST_TABLE.values() for cost in costs.values()} == set(
        kernel_overrides.COSTS
    )


def test_writing_in_place_where_the_engine_does_not(host):
    kernels = kernel_overrides.engine_kernels(
        {"relu": lambda x: np.maximum(x, 0), "exp": np.exp, "exp_": None}, Engine(host)
    )
    assert "relu_" in kernels and "exp_" in kernels
    x = np.array([-1.0, 2.0], np.float32)
    assert kernels["relu_"](x) is None and x.tolist() == [0, 2]  # too few for the engine


def test_the_elements_that_count(host):
    host.kernels["gather"] = lambda x, dim, index: index
    kernel = ndarray_bridge.make_engine_kernel(Engine(host), "gather", lambda *args: "NumPy's", {np.dtype("f4"): 8}, 2)
    x = np.ones(9, np.float32)
    assert kernel(x, 0, np.zeros(3, np.int64)) == "NumPy's"
    index = np.zeros(8, np.int64)
    assert kernel(x[:2], 0, index) is index


def test_the_key_of_a_launch_tells_its_arguments_apart():
    def key(*args, read=True):
        return ndarray_bridge._key_of_flat_call("device", args, read)

    x, y = np.ones(3, np.float32), np.ones(3, np.float32)
    calls = [(x, None), (x, True), (x, False), (x, 1), (x, 1.0), (x, 0.0), (x, -0.0), (x, x), (x, y), (x, np.ones(2))]
    keys = [key(*args) for args in calls]
    assert None not in keys and len(set(keys)) == len(calls)
    assert key(x, y, 2.0) == key(y, x, 2.0) != key(x, x, 2.0)
    assert key(x[1:]) is not None and key(x[1:], read=False) is None
    assert key(np.ones((2, 3)).T) is None and key(np.ones(0)) is None and key(x, "floor") is None
