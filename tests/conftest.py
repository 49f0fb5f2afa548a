"""Fixtures of all tests: the device that they run on, and a seed that a failure prints."""

from __future__ import annotations

import os
import zlib

import numpy as np
import pytest

import torchlite as torch
from tests.case_names import case_name

os.environ["TORCHLITE_KERNEL_HINT"] = "0"  # also of the programs that tests start


def pytest_addoption(parser):
    parser.addoption(
        "--device",
        action="append",
        default=[],
        help="device for tests with the `device` fixture; may be given several times (default: cpu)",
    )
    parser.addoption(
        "--device-only",
        action="store_true",
        help="leave out the tests without the `device` fixture: another run has them",
    )
    parser.addoption("--seed", type=int, default=0, help="base seed of the tests' random numbers")
    parser.addoption(
        "--large",
        action="store_true",
        help="the CPU's kernels for large arrays serve small ones too: those of the engine that TORCHLITE_CPU_KERNELS "
        "names",
    )
    parser.addoption(
        "--simulate-cuda",
        action="store_true",
        help="the device 'cuda' is a simulator on the CPU that g++ compiles its kernels for (tests/cuda_simulator)",
    )
    parser.addoption(
        "--cuda-schedule",
        type=int,
        default=0,
        help="the order in which the simulator runs the threads of a block: 0 ascending, 1 descending, others permuted",
    )
    parser.addoption(
        "--without-cublas",
        action="store_true",
        help="the simulator has no cuBLAS: our own kernels compute all products",
    )


def pytest_configure(config):
    if config.getoption("--large"):
        from torchlite._dispatch.dispatch_state import GLOBALS
        from torchlite_backends.cpu_engines.engine_selection import select_engine

        GLOBALS["LARGE"] = 1
        if select_engine().engine is not None:
            select_engine().engine.least = dict.fromkeys(select_engine().engine.least, 1)
    if config.getoption("--simulate-cuda"):
        from tests.cuda_simulator.driver import Simulated
        from torchlite._dispatch.backend_registry import register_backend
        from torchlite_backends.cupy.backend import CUDABackend

        register_backend(
            "cuda",
            CUDABackend(
                Simulated(config.getoption("--cuda-schedule"), libraries=not config.getoption("--without-cublas"))
            ),
        )

    if "cc" in config.getoption("--device"):  # the CPU's compiled kernels, as a separate device
        from torchlite._dispatch.backend_registry import register_backend
        from torchlite_backends.cc.backend import CompiledBackend

        register_backend("cc", CompiledBackend())

    if "toy" in config.getoption("--device"):  # the backend of docs/backend.md
        from tests.toy_backend import register_for_tests

        register_for_tests()


def pytest_generate_tests(metafunc):
    if "device" in metafunc.fixturenames:
        metafunc.parametrize("device", metafunc.config.getoption("--device") or ["cpu"], scope="session")


def pytest_make_parametrize_id(config, val, argname):
    """Cases are named for their arguments."""
    return case_name(val, argname)


def pytest_collection_modifyitems(config, items):
    """Deselect what another run has: with --device-only tests without a
    device, and tests of OpenCL on other devices.
    """

    def wanted(item):
        if "opencl" in item.fixturenames and not item.callspec.params["device"].startswith("opencl"):
            return False
        return "device" in item.fixturenames or not config.getoption("--device-only")

    if "toy" in config.getoption("--device"):
        from tests.toy_backend import lacked_files, lacked_tests

        reasons, files = lacked_tests(), lacked_files()
        for item in items:
            file = next((path for path in files if item.nodeid.startswith(path)), None)
            if file is not None and "device" in item.fixturenames:
                item.add_marker(pytest.mark.skip(reason=files[file]))
            if item.nodeid in reasons:
                item.add_marker(pytest.mark.xfail(reason=reasons[item.nodeid], strict=True))
    others = [item for item in items if not wanted(item)]
    items[:] = [item for item in items if wanted(item)]
    config.hook.pytest_deselected(items=others)


def pytest_report_header(config):
    devices = ", ".join(config.getoption("--device") or ["cpu"])
    return f"torchlite {torch.__version__}, NumPy {np.__version__}, device {devices}, seed {config.getoption('--seed')}"


@pytest.fixture
def opencl(device):
    """The test's device, an OpenCL one: on others tests with this fixture are left out."""
    return device


@pytest.fixture
def on_device(device):
    """Run the test with its device as the default (`pytestmark = pytest.mark.usefixtures("on_device")` for a file)."""
    with torch.device(device):
        yield


@pytest.fixture
def seed(request) -> int:
    """A seed of this test alone: the same in every run, in any order, with any number of workers."""
    value = zlib.crc32(request.node.nodeid.encode()) ^ request.config.getoption("--seed")
    print(f"seed {value} (change it with --seed)")  # pytest shows it with a failure
    return value


@pytest.fixture
def rng(seed) -> np.random.Generator:
    """NumPy's generator, seeded for this test."""
    return np.random.default_rng(seed)


@pytest.fixture
def errors_at_once(monkeypatch):
    """Devices that work on their own while the host goes on raise the errors of an index at the op, not when the host
    next waits for them.
    """
    monkeypatch.setenv("TORCHLITE_OPENCL_BLOCKING", "1")
    monkeypatch.setenv("CUDA_LAUNCH_BLOCKING", "1")


@pytest.fixture(autouse=True)
def _as_found(request):
    """Every test starts from the same seed and leaves the global switches as they were."""
    before = torch.get_default_dtype(), torch.is_grad_enabled()
    if hasattr(torch, "manual_seed"):
        torch.manual_seed(request.config.getoption("--seed"))
    cuda = "device" in request.fixturenames and request.getfixturevalue("device").startswith("cuda")
    if cuda:  # values are compared with float32's; TF32 has 10 bits
        torch.backends.cudnn.allow_tf32 = False
    yield
    if cuda:
        torch.backends.cudnn.allow_tf32 = True
    after = torch.get_default_dtype(), torch.is_grad_enabled()
    assert after == before, "the test changed the default dtype or the grad mode and did not put it back"


@pytest.fixture(scope="session", autouse=True)
def _one_blas_thread_each():
    """With several pytest workers on one machine, BLAS must not start a thread per core in each of them."""
    if os.environ.get("PYTEST_XDIST_WORKER"):
        try:
            from threadpoolctl import threadpool_limits
        except ImportError:
            yield
            return
        with threadpool_limits(1):
            yield
    else:
        yield
