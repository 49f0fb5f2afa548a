"""Environment information for bug reports: `python -m torchlite.utils.collect_env`."""

from __future__ import annotations

import locale
import os
import platform
import re
import subprocess
import sys
from importlib import metadata
from typing import Any, NamedTuple

import torchlite as torch
from torchlite._settings.module_dir import make_module_dir

TORCH_AVAILABLE = True
_PACKAGES = re.compile("torch|numpy|pyopencl|cupy|scipy|onnx|triton|optree|pocl", re.IGNORECASE)


class SystemEnv(NamedTuple):
    """Information about the environment."""

    torch_version: str
    is_debug_build: str
    cuda_compiled_version: str
    gcc_version: str | None
    clang_version: str | None
    cmake_version: str | None
    os: str
    libc_version: str
    python_version: str
    python_platform: str
    is_cuda_available: str
    nvidia_gpu_models: str | None
    nvidia_driver_version: str | None
    cpu_info: str
    pip_version: str
    pip_packages: str
    opencl_devices: str


def run(command: Any) -> tuple[int, str, str]:
    """(return code, output, errors) of a command, a list or a line for the shell."""
    found = subprocess.run(command, capture_output=True, shell=isinstance(command, str), check=False)
    encoding = locale.getpreferredencoding()
    out, error = (text.decode(encoding, "replace").strip() for text in (found.stdout, found.stderr))
    return found.returncode, out, error


def run_and_read_all(run_lambda: Any, command: Any) -> str | None:
    """Return the output of a command, or None if it fails."""
    code, out, _ = run_lambda(command)
    return out if code == 0 else None


def run_and_parse_first_match(run_lambda: Any, command: Any, regex: str) -> str | None:
    """Return the first regex group in the output of a command, or None if it fails or does not match."""
    text = run_and_read_all(run_lambda, command)
    found = None if text is None else re.search(regex, text)
    return None if found is None else found.group(1)


def run_and_return_first_line(run_lambda: Any, command: Any) -> str | None:
    """Return the first line of a command's output, or None if it fails."""
    text = run_and_read_all(run_lambda, command)
    return None if text is None else text.split("\n")[0]


def _version_of_program(program: str) -> str | None:
    try:
        return run_and_parse_first_match(run, [program, "--version"], r"(\d+\.\d+[\d.]*)")
    except OSError:
        return None


def get_python_platform() -> str:
    """Python's name of the platform."""
    return platform.platform()


def get_os(run_lambda: Any = run) -> str:
    """The operating system. `run_lambda` has no effect: Python reads the system."""
    if sys.platform.startswith("linux") and os.path.exists("/etc/os-release"):
        with open("/etc/os-release") as file:
            found = re.search(r'PRETTY_NAME="(.*)"', file.read())
        if found is not None:
            return f"{found[1]} ({platform.machine()})"
    return f"{platform.system()} {platform.release()} ({platform.machine()})"


def get_libc_version() -> str:
    """The C library."""
    return "-".join(platform.libc_ver()) or "N/A"


def get_cpu_info(run_lambda: Any = run) -> str:
    """The processor. `run_lambda` has no effect: Python reads the system."""
    if os.path.exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo") as file:
            found = re.search(r"model name\s*:\s*(.*)", file.read())
        if found is not None:
            return f"{found[1]} ({os.cpu_count()} CPUs)"
    return f"{platform.processor() or platform.machine()} ({os.cpu_count()} CPUs)"


def get_pip_packages(run_lambda: Any = run, patterns: Any = None) -> tuple[str, str]:
    """(pip's name, the packages that matter with their versions). patterns: parts of the names that matter.
    `run_lambda` has no effect: Python reads the packages.
    """
    found = {d.metadata["Name"]: d.version for d in metadata.distributions() if d.metadata["Name"]}
    wanted = _PACKAGES.search if patterns is None else lambda name: any(pattern in name for pattern in patterns)
    lines = [f"{name}=={version}" for name, version in sorted(found.items()) if wanted(name)]
    return "pip3", "\n".join(lines)


def _list_opencl_devices() -> str:
    if not torch.opencl.is_available():
        return "none"
    return "\n".join(torch.opencl.get_device_name(i) for i in range(torch.opencl.device_count()))


def get_env_info() -> SystemEnv:
    """Collect the environment information."""
    pip, packages = get_pip_packages()
    cuda = torch.cuda.is_available()
    return SystemEnv(
        torch_version=str(torch.__version__),
        is_debug_build="False",
        cuda_compiled_version="None",
        gcc_version=_version_of_program("gcc"),
        clang_version=_version_of_program("clang"),
        cmake_version=_version_of_program("cmake"),
        os=get_os(),
        libc_version=get_libc_version(),
        python_version=f"{sys.version} ({sys.maxsize.bit_length() + 1}-bit runtime)".replace("\n", " "),
        python_platform=get_python_platform(),
        is_cuda_available=str(cuda),
        nvidia_gpu_models="\n".join(torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count()))
        if cuda
        else None,
        nvidia_driver_version=_version_of_program("nvidia-smi"),
        cpu_info=get_cpu_info(),
        pip_version=pip,
        pip_packages=packages,
        opencl_devices=_list_opencl_devices(),
    )


def pretty_str(envinfo: SystemEnv) -> str:
    """Format the environment information."""

    def shown(value: Any) -> str:
        if value is None or value == "":
            return "Could not collect"
        text = str(value)
        return "\n" + text if "\n" in text else text

    labels = {
        "torch_version": "PyTorch version", "is_debug_build": "Is debug build",
        "cuda_compiled_version": "CUDA used to build PyTorch", "gcc_version": "GCC version",
        "clang_version": "Clang version", "cmake_version": "CMake version", "os": "OS", "libc_version": "Libc version",
        "python_version": "Python version", "python_platform": "Python platform",
        "is_cuda_available": "Is CUDA available", "nvidia_gpu_models": "GPU models and configuration",
        "nvidia_driver_version": "Nvidia driver version", "cpu_info": "CPU",
        "pip_version": "Versions of relevant libraries", "pip_packages": "[pip3]", "opencl_devices": "OpenCL devices",
    }  # fmt: skip
    return "\n".join(f"{labels[name]}: {shown(value)}" for name, value in envinfo._asdict().items())


def get_pretty_env_info() -> str:
    """Collect and format the environment information."""
    return pretty_str(get_env_info())


def main() -> None:
    """Print it."""
    print("Collecting environment information...")
    print(get_pretty_env_info())


if __name__ == "__main__":
    main()


__dir__ = make_module_dir(globals(), "TORCH_AVAILABLE")
