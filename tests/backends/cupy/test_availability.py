"""Without a usable device, `device="cuda"` raises one sentence that names the missing part."""

from __future__ import annotations

import ctypes

import pytest

from torchlite_backends.cupy import availability


class Library:
    """A driver's library."""

    def __init__(self, version=12080, status=0, count=1):
        self.version, self.status, self.count = version, status, count

    def cuDriverGetVersion(self, at):
        ctypes.cast(at, ctypes.POINTER(ctypes.c_int))[0] = self.version

    def cuInit(self, flags):
        return self.status

    def cuDeviceGetCount(self, at):
        ctypes.cast(at, ctypes.POINTER(ctypes.c_int))[0] = self.count
        return 0


@pytest.fixture
def machine(monkeypatch):
    """Says what a machine has."""

    def has(library, wheel=("cupy-cuda12x", 12), missing="", hidden=None):
        monkeypatch.setattr(availability, "_load_driver", lambda: library)
        monkeypatch.setattr(availability, "has_cupy", lambda: wheel is not None)
        monkeypatch.setattr(availability, "_installed_cupy_wheel", lambda: wheel)
        monkeypatch.setattr(availability, "_compiler_unavailability_reason", lambda name: missing)
        if hidden is None:
            monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        else:
            monkeypatch.setenv("CUDA_VISIBLE_DEVICES", hidden)
        return availability.why_not()

    return has


def test_a_device_that_can_be_used(machine):
    assert machine(Library()) == "" and availability.problems() == []


def test_no_driver(machine):
    said = machine(None)
    assert said.startswith("device 'cuda' needs an NVIDIA driver, and this machine has none (")
    assert said.endswith(
        "install NVIDIA's driver, and CuPy (which is there already) with pip install 'torchlite-nd[cuda12]'"
    )
    assert availability.problems() == [said]
    assert machine(None, wheel=None).endswith(
        "install NVIDIA's driver, and CuPy with pip install 'torchlite-nd[cuda12]'"
    )
    assert availability.problems() == []


@pytest.mark.parametrize("version, extra", [(12040, "cuda12"), (13000, "cuda13"), (11080, "cuda12")])
def test_no_cupy(machine, version, extra):
    assert (
        machine(Library(version), wheel=None)
        == f"device 'cuda' needs CuPy, which is not installed: pip install 'torchlite-nd[{extra}]'"
    )


def test_a_driver_that_is_too_old(machine):
    assert machine(Library(12080), wheel=("cupy-cuda13x", 13)) == (
        "the NVIDIA driver is too old: it knows CUDA 12.8, and cupy-cuda13x needs CUDA 13: install a newer driver, or "
        "install the CuPy for it: pip uninstall cupy-cuda13x, then pip install 'torchlite-nd[cuda12]'"
    )
    assert (
        machine(Library(11040))
        == "the NVIDIA driver is too old: it knows CUDA 11.4, and cupy-cuda12x needs CUDA 12: install a newer driver"
    )
    assert machine(Library(12000), wheel=("cupy", 0)) == ""


@pytest.mark.parametrize("library", [Library(status=100), Library(count=0)])
def test_no_device(machine, library):
    assert machine(library) == "the NVIDIA driver finds no CUDA device on this machine: nvidia-smi shows what it sees"
    assert (
        machine(library, hidden="")
        == "no CUDA device is visible: the environment variable CUDA_VISIBLE_DEVICES is ''; name a device there or "
        "unset it"
    )


def test_a_driver_that_does_not_start(machine):
    assert (
        machine(Library(status=999))
        == "the NVIDIA driver does not start (cuInit gives error 999): nvidia-smi shows more"
    )


def test_no_compiler(machine):
    assert machine(Library(), missing="CUDA's compiler NVRTC is not found") == "CUDA's compiler NVRTC is not found"


def test_a_missing_nvrtc_is_explained(monkeypatch):
    import sys
    import types

    def absent():
        raise RuntimeError("libnvrtc.so:\n  cannot open")

    monkeypatch.setitem(sys.modules, "torchlite_backends.cupy.cupy_driver", types.SimpleNamespace(nvrtc_version=absent))
    availability._compiler_unavailability_reason.cache_clear()
    assert availability._compiler_unavailability_reason("cupy-cuda12x") == (
        "CUDA's compiler NVRTC is not found (libnvrtc.so: cannot open): pip install 'cupy-cuda12x[ctk]', "
        "or install the CUDA Toolkit"
    )
    availability._compiler_unavailability_reason.cache_clear()
    monkeypatch.setitem(sys.modules, "torchlite_backends.cupy.cupy_driver", None)
    assert availability._compiler_unavailability_reason("cupy").startswith("CuPy is installed and cannot be imported: ")
    availability._compiler_unavailability_reason.cache_clear()
