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
    """Runs a command and returns its exit code, output and errors.

    Args:
        command: List of the program and its arguments, or a line for the shell.

    Example:
        >>> import sys
        >>> from torchlite.utils.collect_env import run
        >>> run([sys.executable, "-c", "print(2)"])
        (0, '2', '')
    """
    found = subprocess.run(command, capture_output=True, shell=isinstance(command, str), check=False)
    encoding = locale.getpreferredencoding()
    out, error = (text.decode(encoding, "replace").strip() for text in (found.stdout, found.stderr))
    return found.returncode, out, error


def run_and_read_all(run_lambda: Any, command: Any) -> str | None:
    """Returns the output of a command, or None if it fails.

    Args:
        run_lambda: Function that runs a command, such as `run`.
        command: The command.

    Example:
        >>> from torchlite.utils.collect_env import run_and_read_all
        >>> run_and_read_all(lambda command: (0, "gcc 14.2", ""), "gcc --version")
        'gcc 14.2'
    """
    code, out, _ = run_lambda(command)
    return out if code == 0 else None


def run_and_parse_first_match(run_lambda: Any, command: Any, regex: str) -> str | None:
    """Returns the first group that a regular expression finds in a command's output, or None.

    Args:
        run_lambda: Function that runs a command, such as `run`.
        command: The command.
        regex: The expression, with a group.

    Example:
        >>> from torchlite.utils.collect_env import run_and_parse_first_match
        >>> run_and_parse_first_match(lambda command: (0, "gcc 14.2", ""), "gcc --version", r"gcc (.*)")
        '14.2'
    """
    text = run_and_read_all(run_lambda, command)
    found = None if text is None else re.search(regex, text)
    return None if found is None else found.group(1)


def run_and_return_first_line(run_lambda: Any, command: Any) -> str | None:
    """Returns the first line of a command's output, or None if it fails.

    Args:
        run_lambda: Function that runs a command, such as `run`.
        command: The command.

    Example:
        >>> from torchlite.utils.collect_env import run_and_return_first_line
        >>> run_and_return_first_line(lambda command: (1, "", "not found"), "nosuch") is None
        True
    """
    text = run_and_read_all(run_lambda, command)
    return None if text is None else text.split("\n")[0]


def _version_of_program(program: str) -> str | None:
    try:
        return run_and_parse_first_match(run, [program, "--version"], r"(\d+\.\d+[\d.]*)")
    except OSError:
        return None


def get_python_platform() -> str:
    """Returns Python's name of the platform.

    Example:
        >>> from torchlite.utils.collect_env import get_python_platform
        >>> get_python_platform() != ""
        True
    """
    return platform.platform()


def get_os(run_lambda: Any = run) -> str:
    """Returns the name of the operating system.

    Args:
        run_lambda: No effect: Python reads the system.

    Example:
        >>> from torchlite.utils.collect_env import get_os
        >>> get_os() != ""
        True
    """
    if sys.platform.startswith("linux") and os.path.exists("/etc/os-release"):
        with open("/etc/os-release") as file:
            found = re.search(r'PRETTY_NAME="(.*)"', file.read())
        if found is not None:
            return f"{found[1]} ({platform.machine()})"
    return f"{platform.system()} {platform.release()} ({platform.machine()})"


def get_libc_version() -> str:
    """Returns the name and version of the C library, or "N/A".

    Example:
        >>> from torchlite.utils.collect_env import get_libc_version
        >>> get_libc_version() != ""
        True
    """
    return "-".join(platform.libc_ver()) or "N/A"


def get_cpu_info(run_lambda: Any = run) -> str:
    """Returns the name of the processor and the number of its CPUs.

    Args:
        run_lambda: No effect: Python reads the system.

    Example:
        >>> from torchlite.utils.collect_env import get_cpu_info
        >>> "CPUs" in get_cpu_info()
        True
    """
    if os.path.exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo") as file:
            found = re.search(r"model name\s*:\s*(.*)", file.read())
        if found is not None:
            return f"{found[1]} ({os.cpu_count()} CPUs)"
    return f"{platform.processor() or platform.machine()} ({os.cpu_count()} CPUs)"


def get_pip_packages(run_lambda: Any = run, patterns: Any = None) -> tuple[str, str]:
    """Returns pip's name, and the packages that matter with their versions, one a line.

    Args:
        run_lambda: No effect: Python reads the packages.
        patterns: Parts of the names that matter. Default: NumPy, PyTorch and what works with them.

    Example:
        >>> from torchlite.utils.collect_env import get_pip_packages
        >>> get_pip_packages(patterns=["numpy"])[1].startswith("numpy==")
        True
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
    """Collects what bug reports need to say of the environment.

    Returns:
        A `SystemEnv`. `python -m torchlite.utils.collect_env` prints it.
    """
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
    """Returns the text of a `SystemEnv`, one fact a line.

    Args:
        envinfo: A `SystemEnv`.

    Example:
        >>> from torchlite.utils.collect_env import SystemEnv, pretty_str
        >>> print(pretty_str(SystemEnv("2.13", *[None] * (len(SystemEnv._fields) - 1))).splitlines()[0])
        PyTorch version: 2.13
    """

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
    """Collects the facts of the environment and returns them as text."""
    return pretty_str(get_env_info())


def main() -> None:
    """Prints the facts of the environment."""
    print("Collecting environment information...")
    print(get_pretty_env_info())


if __name__ == "__main__":
    main()


__dir__ = make_module_dir(globals(), "TORCH_AVAILABLE")
