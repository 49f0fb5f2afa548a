"""Contestants of a benchmark: torchlite's engines and other installed libraries."""

from __future__ import annotations

import argparse
import atexit
import dataclasses
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from typing import Any

from ..device_argument import check_device
from .workloads.workload_names import OTHER_LIBRARIES

WORKLOADS = pathlib.Path(__file__).with_name("workloads")
RIVALS = ("torch", *OTHER_LIBRARIES)
ENGINE = "TORCHLITE_CPU_KERNELS"
# Environment variables by which libraries limit their threads.
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "POCL_MAX_PTHREAD_COUNT")


class ContestantError(Exception):
    """A worker process failed; the message says why."""


@dataclasses.dataclass(frozen=True)
class Contestant:
    """A module under an interpreter; for torchlite also an engine ("" for its default)."""

    label: str
    module: str
    python: str = sys.executable
    engine: str = ""
    device: str = "cpu"
    variables: tuple[tuple[str, str], ...] = ()


def check_device_and_engine(options: argparse.Namespace) -> None:
    """Exit with a message if torchlite cannot compute on the device, or an engine is named for another than the CPU."""
    if options.engine and options.device != "cpu":
        options.bench.error(f"--engine chooses among kernels for cpu tensors, not for those of {options.device}")
    check_device(options.device, with_data=True)


def torchlite_contestants(engines: Sequence[str], device: str) -> list[Contestant]:
    """Return torchlite as it runs here, once for each engine."""
    return [
        Contestant(f"torchlite {engine}" if engine else "torchlite", "torchlite", engine=engine, device=device)
        for engine in engines or [""]
    ]


def find_rivals(wanted: Sequence[str] | None, pythons: Sequence[str], device: str) -> list[Contestant]:
    """Return the libraries to compare with: each module in `wanted` (None: all known) under the first interpreter that
    has it.

    `torchlite` means that of another interpreter, or the same again. ContestantError if a requested one is not found.
    """
    theirs = device if device.startswith("cuda") else "cpu"
    found = []
    for name in RIVALS if wanted is None else wanted:
        own = [] if name == "torchlite" and pythons else [sys.executable]
        python = find_interpreter(name, [*own, *pythons])
        if python:
            label = "torchlite, the other" if name == "torchlite" else name
            variables = tuple(_device_environment(name, device).items())
            found.append(Contestant(label, name, python, "", "" if name in OTHER_LIBRARIES else theirs, variables))
        elif wanted is not None:
            where = " or ".join([*own, *pythons])
            raise ContestantError(
                f"{where} has no {name}: install it, or name an interpreter that has it by --reference-python"
            )
    return found


def find_interpreter(module: str, pythons: Sequence[str]) -> str | None:
    """Return the first interpreter that has a module. ContestantError if one cannot be run."""
    return next((python for python in pythons if _has_module(python, module)), None)


def _device_environment(name: str, device: str) -> dict[str, str]:
    """Return environment variables that select torchlite's device for a library without device arguments."""
    kind, _, index = device.partition(":")
    if name == "jax":
        return {"JAX_PLATFORMS": "cuda" if kind == "cuda" else "cpu"}
    if name != "tinygrad":
        return {}
    if kind != "opencl":
        return {"DEV": "CUDA" if kind == "cuda" else "CPU", "TRAINING": "1"}
    from ..._dispatch.backend_registry import backend_of

    folder = tempfile.mkdtemp(prefix="torchlite-bench-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    backend: Any = backend_of("opencl")
    return {"DEV": "CL", "TRAINING": "1", **backend.icd_environment(int(index or 0), folder)}


def _has_module(python: str, module: str) -> bool:
    """True if an interpreter has a module, as far as visible without importing it; a `torch` that is torchlite does not
    count.
    """
    code = (
        "import importlib.util as u, os, sys; s = u.find_spec(sys.argv[1]); o = s and s.origin;"
        "print(bool(o) and not (sys.argv[1] == 'torch' and 'torchlite' in open(o).read(5000)))"
    )
    try:
        done = subprocess.run(
            [python, "-c", code, module], capture_output=True, text=True, env=_environment(python), check=False
        )
    except OSError as error:
        raise ContestantError(f"--reference-python {python}: {error.strerror or error}")
    return done.stdout.strip() == "True"


def _environment(python: str) -> dict[str, str]:
    """Return this process's environment; for this interpreter also its path, so that the same torchlite is found."""
    environment = dict(os.environ)
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed library has its byte code
    if python == sys.executable:
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    return environment
