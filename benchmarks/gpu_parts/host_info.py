"""What the measurements were made on, and what is missing for some of them."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
from typing import Any

from . import Options, Result, here, library, output_of, reason_not, say

# A module, what is installed for it, and what is left out without it.
WANTED = (
    ("array_api_compat", "array-api-compat", "everything: torchlite needs it"),
    ("pytest", "pytest", "the device tests"),
    ("xdist", "pytest-xdist", "the device tests on several cores"),
    ("hypothesis", "hypothesis", "device tests that use it"),
    ("ml_dtypes", "ml_dtypes", "bfloat16 in NumPy, which tests use"),
    ("torch", "torch", "the conformance tables and every comparison with torch"),
    ("expecttest", "expecttest", "the conformance tables, which torch's own test tables need it for"),
)
WANTED_ON_CUDA = (
    ("cupy", "cupy-cuda12x or cupy-cuda13x", "everything on cuda"),
    (
        "cudnn",
        "nvidia-cudnn-frontend",
        "convolution and attention through cuDNN (without it torchlite's own kernels are measured)",
    ),
)


def version_of(*names: str) -> str:
    """The version of the first of some distributions that is installed, with its name where there are several."""
    for name in names:
        try:
            found = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        return found if len(names) == 1 else f"{found} ({name})"
    return "absent"


def line_of(*command: str) -> str:
    """What a command prints, on one line; empty where it fails."""
    if shutil.which(command[0]) is None:
        return ""
    status, text = output_of(list(command), 20)
    return " | ".join(text.split("\n")[:8]).strip(" |") if status == 0 else ""


def missing(options: Options) -> list[str]:
    """A line for each thing that is not installed, with what is left out for it."""
    wanted = WANTED + (WANTED_ON_CUDA if options.kind == "cuda" else ())
    lines = [f"{package}: {without}" for module, package, without in wanted if not here(module)]
    for names, without in (
        (("conformance", "opdb.py"), "the conformance tables"),
        (("bench", "ratio.py"), "the workloads against torch"),
    ):
        if options.shared_file(*names) is None:
            lines.append(f"{os.path.join(options.shared, *names)}: {without}")
    return lines


def of_torch() -> dict[str, str]:
    """The versions of PyTorch and of what it brings."""
    if not here("torch"):
        return {"torch": "absent"}
    torch = library("torch")
    found = {"torch": torch.__version__, "torch's CUDA": str(torch.version.cuda)}
    if torch.cuda.is_available():
        found["torch's cuDNN"] = str(torch.backends.cudnn.version())
        found["torch's TF32"] = (
            f"matmul {torch.backends.cuda.matmul.allow_tf32}, cuDNN {torch.backends.cudnn.allow_tf32}"
        )
    return found


def of_cuda(torch: Any, options: Options) -> dict[str, str]:
    """The device's properties, the driver and CuPy."""
    properties = torch.cuda.get_device_properties(options.device)
    found = {
        "compute capability": f"{properties.major}.{properties.minor}",
        "memory": f"{properties.total_memory / 2**30:.1f} GiB",
        "multiprocessors": str(properties.multi_processor_count),
        "CuPy": version_of("cupy-cuda13x", "cupy-cuda12x", "cupy"),
        "cuDNN frontend": version_of("nvidia-cudnn-frontend"),
        "cuDNN": version_of("nvidia-cudnn-cu13", "nvidia-cudnn-cu12"),
    }
    smi = line_of(
        "nvidia-smi",
        "--query-gpu=driver_version,clocks.max.sm,clocks.max.memory,power.limit,ecc.mode.current",
        "--format=csv,noheader",
    )
    found["driver (nvidia-smi)"] = smi or "nvidia-smi says nothing"
    if here("cupy"):
        import cupy

        for name, call in (("CUDA of the driver", "driverGetVersion"), ("CUDA runtime", "runtimeGetVersion")):
            number = getattr(cupy.cuda.runtime, call)()
            found[name] = f"{number // 1000}.{number % 1000 // 10}"
    return found


def run(options: Options, result: Result) -> None:
    absent = missing(options)
    result.put(missing=absent)
    for line in absent:
        say(f"missing: {line}")
    reason = reason_not(options.device)
    result.put(why_not=reason)
    if reason:
        return
    torch = library()
    module = getattr(torch, options.kind, None)
    facts = {
        "device": module.get_device_name(options.device)
        if hasattr(module, "get_device_name")
        else platform.processor() or platform.machine()
    }
    if options.kind == "cuda":
        facts |= of_cuda(torch, options)
    facts |= {
        "cores": str(os.cpu_count()),
        "system": platform.platform(),
        "Python": platform.python_version(),
        "NumPy": version_of("numpy"),
        "torchlite": f"{torch.__version__} {line_of('git', 'rev-parse', '--short', 'HEAD')}".strip(),
    }
    facts |= of_torch()
    result.put(facts=facts)
    for name, value in facts.items():
        say(f"{name}: {value}")
