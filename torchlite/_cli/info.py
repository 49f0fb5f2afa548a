"""`python -m torchlite info`: versions, devices, drivers, BLAS and threads, cache folders, missing packages."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sys

import numpy as np

_PACKAGES = (
    "numpy", "array-api-compat", "ml_dtypes", "pyopencl", "intel-opencl-rt", "pocl-binary-distribution", "cupy-cuda12x",
    "cupy-cuda13x", "nvidia-cudnn-frontend", "onednn-cpu-gomp", "scikit-learn",
    "matplotlib",
)  # fmt: skip
_DRIVERS = {
    "cuda": "an NVIDIA driver",
    "opencl": (
        "an OpenCL driver (the extra brings one for x86-64 CPUs on Linux; Debian has pocl-opencl-icd; "
        "or your GPU vendor's)"
    ),
}
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "TORCHLITE_NUM_THREADS")


def find_devices() -> dict[str, str]:
    """Return {device type: ""}, or the reason why it cannot be used and the package to install. Never raises."""
    from .. import __torchlite_version__
    from .._dispatch.backend_registry import table_of
    from .._types.devices import PIP_EXTRAS, REGISTERED, device, installed_backends, list_known_device_types

    out = {}
    for name in list_known_device_types():
        runtime = f"pip install 'torchlite-nd[{PIP_EXTRAS[name]}]' and {_DRIVERS[name]}" if PIP_EXTRAS.get(name) else ""
        if name not in installed_backends() and name not in REGISTERED:
            out[name] = "torchlite is not installed (its backends are found by entry point): pip install -e ."
            if runtime:
                out[name] = (
                    f"torchlite-nd {__torchlite_version__} has no {name} backend, and no other package brings one. "
                    f"What it will run on: {runtime}"
                )
            continue
        try:
            table_of(device(name))
            out[name] = ""
        except Exception as error:  # a broken driver must not break the report
            message = str(error) or type(error).__name__
            out[name] = message + (f"; it needs {runtime}" if runtime and "install" not in message else "")
    return out


def usable_devices() -> list[str]:
    """Return usable devices by name: "cpu", then "cuda:0", "opencl:0" …"""
    from .._dispatch.backend_registry import backend_of

    out = []
    for name, missing in find_devices().items():
        if not missing and name != "meta":
            out += [name] if name == "cpu" else [f"{name}:{i}" for i in range(backend_of(name).device_count())]
    return out


def _find_package_version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _describe_blas() -> str:
    found = np.show_config(mode="dicts")
    blas = (found or {}).get("Build Dependencies", {}).get("blas", {})
    return f"{blas.get('name', 'unknown')} {blas.get('version', '')}".strip()


def _describe_onednn() -> str:
    from .._dispatch.backend_registry import backend_of

    found = backend_of("cpu").onednn()
    return f"{found.library.version} in {found.library.path}" if found.library else f"absent: {found.why_not}"


def _describe_blas_threads() -> str:
    try:
        from threadpoolctl import threadpool_info
    except ImportError:
        return "unknown (pip install threadpoolctl to see it)"
    return ", ".join(f"{pool['internal_api']} {pool['num_threads']}" for pool in threadpool_info()) or "none found"


def _format_device_lines() -> list[tuple[str, str]]:
    from .._dispatch.backend_registry import backend_of

    left_out = _unusable_devices()  # first: it retries earlier failures
    lines = []
    for name, missing in find_devices().items():
        lines += [(name, f"left out: {what}") for what in left_out.get(name, []) if what != missing]
        if missing:
            lines.append((name, f"absent: {missing}"))
            continue
        backend = backend_of(name)
        describe = getattr(backend, "describe", None)
        count = backend.device_count()
        for index in range(count):
            what = (
                describe(index)
                if callable(describe)
                else {"cpu": platform.processor() or platform.machine(), "meta": "shapes without data"}.get(
                    name, "ready"
                )
            )
            lines.append((name if name in ("cpu", "meta") else f"{name}:{index}", f"ready: {what}"))
    return lines


def _unusable_devices() -> dict[str, list[str]]:
    """Return the drivers and devices that backends found but cannot use."""
    from .._dispatch.backend_registry import backend_of
    from .._types.devices import REGISTERED, installed_backends

    out = {}
    for name in {**installed_backends(), **REGISTERED}:
        try:
            problems = getattr(backend_of(name), "problems", None)
            out[name] = problems() if callable(problems) else []
        except Exception as error:  # a broken driver must not break the report
            out[name] = [str(error) or type(error).__name__]
    return out


def cache_folders() -> dict[str, str]:
    """Return the cache folders of compiled kernels."""
    home = os.path.expanduser("~")
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(home, ".cache")
    return {
        "torchlite (TORCHLITE_CACHE_DIR)": os.path.join(os.environ.get("TORCHLITE_CACHE_DIR") or base, "torchlite"),
        "CuPy (CUPY_CACHE_DIR)": os.environ.get("CUPY_CACHE_DIR") or os.path.join(home, ".cupy", "kernel_cache"),
        "PyOpenCL (PYOPENCL_CACHE_DIR)": os.environ.get("PYOPENCL_CACHE_DIR") or os.path.join(base, "pyopencl"),
    }


def format_report() -> str:
    """Return the text of `python -m torchlite info`."""
    import torchlite

    from .._dispatch.backend_registry import backend_of

    sections: list[tuple[str, list[tuple[str, str]]]] = [
        (
            "versions",
            [
                ("torchlite", f"{torchlite.__torchlite_version__} in {os.path.dirname(torchlite.__file__)}"),
                ("Python", sys.version.split()[0]),
                ("system", platform.platform()),
                *((name, _find_package_version(name)) for name in _PACKAGES),
            ],
        ),
        ("devices", _format_device_lines()),
        ("kernels for large tensors on the CPU (TORCHLITE_CPU_KERNELS)", backend_of("cpu").engines()),
        (
            "threads",
            [
                ("cores", str(os.cpu_count())),
                ("torchlite", str(torchlite.get_num_threads())),
                ("BLAS", _describe_blas()),
                ("BLAS threads", _describe_blas_threads()),
                ("oneDNN", _describe_onednn()),
                *((name, os.environ[name]) for name in _THREAD_VARIABLES if name in os.environ),
            ],
        ),
        (
            "cache folders",
            [
                (name, path + ("" if os.path.isdir(path) else " (not there yet)"))
                for name, path in cache_folders().items()
            ],
        ),
    ]
    width = max(len(name) for _, rows in sections for name, _ in rows)
    return "\n".join(
        f"{title}\n" + "\n".join(f"  {name:<{width}}  {value}" for name, value in rows) for title, rows in sections
    )
