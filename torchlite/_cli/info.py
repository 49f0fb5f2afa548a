"""`python -m torchlite info`: versions, devices, drivers, BLAS and threads, cache folders, missing packages."""

from __future__ import annotations

import argparse
import os
import platform
import sys
from typing import Any

import numpy as np

from .command_line import print_json

_PACKAGES = (
    "numpy", "array-api-compat", "ml_dtypes", "pyopencl", "intel-opencl-rt", "pocl-binary-distribution", "cupy-cuda12x",
    "cupy-cuda13x", "nvidia-cudnn-frontend", "onednn-cpu-gomp", "torchlite-nd-kernels",
    "scikit-learn", "matplotlib",
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
    from .._types.devices import list_known_device_types

    return {name: _why_not(name) for name in list_known_device_types()}


def why_not_usable(kind: str) -> str | None:
    """Return "" for a usable device type, else the reason; None for a type that has no backend."""
    from .._types.devices import list_known_device_types

    return _why_not(kind) if kind in list_known_device_types() else None


def _why_not(name: str) -> str:
    from .. import __torchlite_version__
    from .._dispatch.backend_registry import table_of
    from .._types.devices import PIP_EXTRAS, REGISTERED, device, installed_backends

    runtime = f"pip install 'torchlite-nd[{PIP_EXTRAS[name]}]' and {_DRIVERS[name]}" if PIP_EXTRAS.get(name) else ""
    if name not in installed_backends() and name not in REGISTERED:
        if runtime:
            return (
                f"torchlite-nd {__torchlite_version__} has no {name} backend, and no other package brings one. "
                f"What it will run on: {runtime}"
            )
        return "torchlite is not installed (its backends are found by entry point): pip install ."
    try:
        table_of(device(name))
    except Exception as error:  # a broken driver must not break the report
        message = str(error) or type(error).__name__
        return message + (f"; it needs {runtime}" if runtime and "install" not in message else "")
    return ""


def usable_devices() -> list[str]:
    """Return usable devices by name: "cpu", then "cuda:0", "opencl:0" …"""
    from .._dispatch.backend_registry import backend_of

    out = []
    for name, missing in find_devices().items():
        if not missing and name != "meta":
            out += [name] if name == "cpu" else [f"{name}:{i}" for i in range(backend_of(name).device_count())]
    return out


def _find_package_version(package: str) -> str | None:
    import importlib.metadata  # here: a check of a device does not need it

    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


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


def _list_devices() -> list[dict[str, Any]]:
    """Return each device, and each device type without one: its name, whether it can be used, and a description or
    reason.
    """
    from .._dispatch.backend_registry import backend_of

    left_out = _unusable_devices()  # first: it retries earlier failures
    devices = []
    for name, missing in find_devices().items():
        problems = [what for what in left_out.get(name, []) if what != missing]
        devices += [{"name": name, "status": "left out", "detail": what} for what in problems]
        if missing:
            devices.append({"name": name, "status": "absent", "detail": missing})
            continue
        backend = backend_of(name)
        describe = getattr(backend, "describe", None)
        plain = {"cpu": platform.processor() or platform.machine(), "meta": "shapes without data"}.get(name, "ready")
        for index in range(backend.device_count()):
            what = describe(index) if callable(describe) else plain
            label = name if name in ("cpu", "meta") else f"{name}:{index}"
            devices.append({"name": label, "status": "ready", "detail": what})
    return devices


def _format_device_lines(devices: list[dict[str, Any]] | None = None) -> list[tuple[str, str]]:
    """Return name and state of devices; of all without an argument."""
    devices = _list_devices() if devices is None else devices
    return [(one["name"], f"{one['status']}: {one['detail']}") for one in devices]


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


def collect() -> dict[str, Any]:
    """Return the report of `info --json`. docs/commands.md lists the keys."""
    import torchlite

    from .._dispatch.backend_registry import backend_of

    return {
        "torchlite": {"version": torchlite.__torchlite_version__, "path": os.path.dirname(torchlite.__file__)},
        "python": sys.version.split()[0],
        "system": platform.platform(),
        "packages": {name: _find_package_version(name) for name in _PACKAGES},
        "devices": _list_devices(),
        "cpu_kernels": [{"name": name, "detail": detail} for name, detail in backend_of("cpu").engines()],
        "threads": {
            "cores": os.cpu_count(),
            "torchlite": torchlite.get_num_threads(),
            "blas": _describe_blas(),
            "blas_threads": _describe_blas_threads(),
            "onednn": _describe_onednn(),
            "environment": {name: os.environ[name] for name in _THREAD_VARIABLES if name in os.environ},
        },
        "cache_folders": [
            {"name": name, "path": path, "exists": os.path.isdir(path)} for name, path in cache_folders().items()
        ],
    }


def format_report() -> str:
    """Return the text of `python -m torchlite info`."""
    found = collect()
    threads = found["threads"]
    sections: list[tuple[str, list[tuple[str, str]]]] = [
        (
            "versions",
            [
                ("torchlite", f"{found['torchlite']['version']} in {found['torchlite']['path']}"),
                ("Python", found["python"]),
                ("system", found["system"]),
                *((name, version or "not installed") for name, version in found["packages"].items()),
            ],
        ),
        ("devices", _format_device_lines(found["devices"])),
        (
            "kernels for large tensors on the CPU (TORCHLITE_CPU_KERNELS)",
            [(one["name"], one["detail"]) for one in found["cpu_kernels"]],
        ),
        (
            "threads",
            [
                ("cores", str(threads["cores"])),
                ("torchlite", str(threads["torchlite"])),
                ("BLAS", threads["blas"]),
                ("BLAS threads", threads["blas_threads"]),
                ("oneDNN", threads["onednn"]),
                *threads["environment"].items(),
            ],
        ),
        (
            "cache folders",
            [
                (one["name"], one["path"] + ("" if one["exists"] else " (not there yet)"))
                for one in found["cache_folders"]
            ],
        ),
    ]
    width = max(len(name) for _, rows in sections for name, _ in rows)
    return "\n".join(
        f"{title}\n" + "\n".join(f"  {name:<{width}}  {value}" for name, value in rows) for title, rows in sections
    )


def add_parser(commands: Any) -> None:
    """Add the command's arguments."""
    parser = commands.add_parser(
        "info",
        help="print versions, devices, drivers, BLAS and cache folders, and what is missing",
        description="Prints the versions, the devices that can be used, and for each other one what to install.",
        epilog="examples:\n  torchlite info\n  torchlite info --json | jq '.devices[].name'",
    )
    parser.add_argument("--json", action="store_true", help="print JSON; docs/commands.md lists the keys")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run the command; return the exit status."""
    if options.json:
        print_json(collect())
    else:
        print(format_report())
    return 0
