"""The engine `opencl`: a driver for CPUs whose kernels read and write NumPy's own memory."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import torchlite as torch
from torchlite._dispatch.backend_registry import backend_of, table_of
from torchlite_backends.cpu_engines import kernel_overrides, ndarray_bridge
from torchlite_backends.opencl.cpu_engine import Engine, _index, engine


@pytest.fixture(scope="module")
def cores():
    from torchlite_backends.opencl import driver_discovery

    return driver_discovery.devices()[_index()].max_compute_units


@pytest.fixture(autouse=True)
def all_cores(opencl, cores):
    """As many threads as the driver takes."""
    assert engine.why_not() == ""
    before = torch.get_num_threads()
    torch.set_num_threads(cores)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def x(rng):
    return rng.standard_normal((33, 130)).astype(np.float32)


def run_on_device(name, *args, **options):
    """Return the result of the engine's kernel of an op for ndarrays."""
    return ndarray_bridge.run_on_device(engine.device(), name, args, options)


def test_results_own_their_memory(x):
    out = run_on_device("exp", x)
    assert out.__class__ is np.ndarray and out.flags.owndata and out.base is None
    np.testing.assert_allclose(out, np.exp(x), rtol=1e-6)
    x[:] = 0  # no stale contents of a buffer are read
    assert np.all(run_on_device("exp", x) == 1)


def test_views_of_all_kinds(x):
    for view in (x[3:20, 5:77], x.T, x[::-1, ::-2], x[::3, 1::2], x[:0], np.broadcast_to(x[:, :1], x.shape)):
        np.testing.assert_array_equal(run_on_device("add", view, view), view + view)
        np.testing.assert_allclose(run_on_device("sum", view, 0), view.sum(0), rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(run_on_device("contiguous", view), view)


def test_writing_in_place_where_operands_overlap(x):
    expected = x.copy()
    expected[1:] += expected[:-1].copy()
    run_on_device("add_", x[1:], x[:-1])
    np.testing.assert_array_equal(x, expected)
    half = x[:, 1::2]
    expected = half * 3
    run_on_device("mul_", half, 3.0)
    np.testing.assert_array_equal(x[:, 1::2], expected)


def test_memory_that_may_not_be_written(x):
    protected = np.frombuffer(x.tobytes(), np.float32).reshape(x.shape)
    np.testing.assert_array_equal(run_on_device("neg", protected), -x)


def test_two_results_and_integers(x):
    values, indices = run_on_device("sort", x, 1)
    np.testing.assert_array_equal(values, np.sort(x, 1))
    assert indices.dtype == np.int64
    np.testing.assert_array_equal(run_on_device("gather", x, 1, indices), values)


def test_an_index_that_does_not_fit_is_numpys_error(x):
    plain = backend_of("cpu").kernels(0)["gather"]
    kernel = ndarray_bridge.make_engine_kernel(engine, "gather", plain, {x.dtype: 1})
    bad = np.full((33, 4), 500)
    with pytest.raises(RuntimeError, match="index 500 is out of bounds for dimension 1 with size 130"):
        kernel(x, 1, bad)
    np.testing.assert_array_equal(kernel(x, 1, bad // 100), x[:, 5:6].repeat(4, 1))  # and nothing is left of it


@pytest.mark.parametrize("columns", [1, 5, 64, 700])
def test_gather_along_rows(x, columns, rng):
    for source in (x, x[:, 3:90], x[::2]):
        index = rng.integers(0, source.shape[1], (source.shape[0], columns))
        expected = np.take_along_axis(source, index, 1)
        np.testing.assert_array_equal(run_on_device("gather", source, 1, index), expected)
        np.testing.assert_array_equal(run_on_device("gather", source, 1, index.astype(np.int32)), expected)


def test_a_table_that_the_engine_serves(x, monkeypatch):
    monkeypatch.setattr(Engine, "least", dict.fromkeys(Engine.least, 1))
    served = []
    real = ndarray_bridge.run_on_device
    monkeypatch.setattr(ndarray_bridge, "run_on_device", lambda *args: served.append(args[1]) or real(*args))
    table = table_of(torch.device("cpu"))
    before = table.add, table.cumsum
    kernels = kernel_overrides.engine_kernels(backend_of("cpu").kernels(0), engine)
    np.testing.assert_allclose(kernels["_softmax"](x, 1).sum(1), 1, rtol=1e-5)
    np.testing.assert_allclose(kernels["cumsum"](x, 1), np.cumsum(x, 1), rtol=1e-3, atol=1e-4)
    assert served == ["_softmax", "cumsum"] and (table.add, table.cumsum) == before  # the CPU's own are as they were


def test_results_are_the_same_for_any_number_of_threads(cores, rng):
    x = rng.standard_normal((301, 1009)).astype(np.float32)
    found = []
    for threads in (cores, 1, 2, cores + 1):
        torch.set_num_threads(threads)
        driver = engine.device()
        if driver is not None:  # one that would take more threads than are granted does not run_on_device
            assert driver.cl_device.max_compute_units <= threads
            found.append([run_on_device("sum", x, 0), run_on_device("sum", x), run_on_device("cumsum", x, 1)])
    assert len(found) > 1
    for each in found[1:]:
        for one, other in zip(found[0], each, strict=True):
            np.testing.assert_array_equal(one, other)


def test_threads_of_a_program(rng):
    arrays = [rng.standard_normal((64, 500 + k)).astype(np.float32) for k in range(4)]
    expected = [run_on_device("erf", x) for x in arrays]
    wrong = []

    def work(k):
        for _ in range(20):
            if not np.array_equal(run_on_device("erf", arrays[k]), expected[k]):
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


PROGRAM = """
import os
import numpy as np
import torchlite as torch
from torchlite_backends.opencl.cpu_engine import engine

torch.set_num_threads(os.cpu_count())
x = torch.arange(1 << 19).reshape(512, 1024) / 1e5
before = x.exp()
assert torch.backends.cpu.get_kernel_engine() == "opencl" and engine.device() is not None
child = os.fork()
if child == 0:
    os._exit(0 if engine.device() is None and torch.allclose(x.exp(), before) else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), torch.equal(x.exp(), before))
try:
    x.gather(1, torch.full((512, 1024), 5000))
except RuntimeError as error:
    print(error)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_program_on_the_engine_and_its_forked_child():
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM],
        env={**os.environ, "TORCHLITE_CPU_KERNELS": "opencl"},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert done.stdout.split("\n")[:2] == ["0 True", "index 5000 is out of bounds for dimension 1 with size 1024"]
