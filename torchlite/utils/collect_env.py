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
# Parts of the names of packages that reports list.
COMMON_PATTERNS = ["torch", "numpy", "triton", "optree"]
CONDA_PATTERNS = ["cudatoolkit", "soumith", "mkl", "magma"]
NVIDIA_PATTERNS = [
    "cuda-cudart", "cuda-cupti", "cuda-libraries", "cuda-opencl", "cuda-nvrtc", "cuda-runtime", "cublas", "cudnn",
    "cufft", "curand", "cusolver", "cusparse", "nccl", "nvjitlink", "nvtx",
]  # fmt: skip
ONEAPI_PATTERNS = [
    "dpcpp-cpp-rt", "intel-cmplr-lib-rt", "intel-cmplr-lib-ur", "intel-cmplr-lic-rt", "intel-opencl-rt",
    "intel-sycl-rt", "mkl", "onemkl-sycl-blas", "onemkl-sycl-dft", "onemkl-sycl-lapack", "onemkl-sycl-rng",
    "onemkl-sycl-sparse", "intel-openmp", "tbb", "impi-rt", "impi-devel", "oneccl", "oneccl-devel", "intel-pti", "umf",
    "tcmlib",
]  # fmt: skip
PIP_PATTERNS = ["mypy", "flake8", "onnx", "pyopencl", "cupy", "scipy", "pocl"]

# The report's lines: a label, and a field in braces. A line without a field stands as it is.
env_info_fmt = """PyTorch version: {torch_version}
Is debug build: {is_debug_build}
CUDA used to build PyTorch: {cuda_compiled_version}
ROCM used to build PyTorch: {hip_compiled_version}

OS: {os}
GCC version: {gcc_version}
Clang version: {clang_version}
CMake version: {cmake_version}
Libc version: {libc_version}

Python version: {python_version}
Python platform: {python_platform}
Is CUDA available: {is_cuda_available}
CUDA runtime version: {cuda_runtime_version}
CUDA_MODULE_LOADING set to: {cuda_module_loading}
GPU models and configuration: {nvidia_gpu_models}
Nvidia driver version: {nvidia_driver_version}
cuDNN version: {cudnn_version}
Is XPU available: {is_xpu_available}
HIP runtime version: {hip_runtime_version}
MIOpen runtime version: {miopen_runtime_version}
Is XNNPACK available: {is_xnnpack_available}
Caching allocator config: {caching_allocator_config}
OpenCL devices: {opencl_devices}

CPU:
{cpu_info}

Versions of relevant libraries:
{pip_packages}
{conda_packages}"""


class SystemEnv(NamedTuple):
    """Facts about the environment, by PyTorch's names; `opencl_devices` is torchlite's own."""

    torch_version: str | None
    is_debug_build: str | None
    cuda_compiled_version: str | None
    gcc_version: str | None
    clang_version: str | None
    cmake_version: str | None
    os: str | None
    libc_version: str | None
    python_version: str | None
    python_platform: str | None
    is_cuda_available: str | None
    cuda_runtime_version: str | None
    cuda_module_loading: str | None
    nvidia_driver_version: str | None
    nvidia_gpu_models: str | None
    cudnn_version: str | None
    is_xpu_available: str | None
    pip_version: str | None
    pip_packages: str | None
    conda_packages: str | None
    hip_compiled_version: str | None
    hip_runtime_version: str | None
    miopen_runtime_version: str | None
    caching_allocator_config: dict[str, str] | None
    is_xnnpack_available: str | None
    cpu_info: str | None
    opencl_devices: str | None = None


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


def get_gcc_version(run_lambda: Any = run) -> str | None:
    """Returns the version of GCC, or None if it is not installed.

    Args:
        run_lambda: Function that runs a command, such as `run`.

    Example:
        >>> from torchlite.utils.collect_env import get_gcc_version
        >>> get_gcc_version(lambda command: (0, "gcc 14.2", ""))
        '14.2'
    """
    return run_and_parse_first_match(run_lambda, "gcc --version", r"gcc (.*)")


def get_clang_version(run_lambda: Any = run) -> str | None:
    """Returns the version of Clang, or None if it is not installed.

    Args:
        run_lambda: Function that runs a command, such as `run`.

    Example:
        >>> from torchlite.utils.collect_env import get_clang_version
        >>> get_clang_version(lambda command: (0, "clang version 19.1", ""))
        '19.1'
    """
    return run_and_parse_first_match(run_lambda, "clang --version", r"clang version (.*)")


def get_cmake_version(run_lambda: Any = run) -> str | None:
    """Returns the version of CMake, or None if it is not installed.

    Args:
        run_lambda: Function that runs a command, such as `run`.

    Example:
        >>> from torchlite.utils.collect_env import get_cmake_version
        >>> get_cmake_version(lambda command: (0, "cmake version 3.31", ""))
        'version 3.31'
    """
    return run_and_parse_first_match(run_lambda, "cmake --version", r"cmake (.*)")


def get_running_cuda_version(run_lambda: Any = run) -> str | None:
    """Returns the version of CUDA's compiler, or None if it is not installed.

    Args:
        run_lambda: Function that runs a command, such as `run`.

    Example:
        >>> from torchlite.utils.collect_env import get_running_cuda_version
        >>> get_running_cuda_version(lambda command: (0, "release 12.4, V12.4.131", ""))
        '12.4.131'
    """
    return run_and_parse_first_match(run_lambda, "nvcc --version", r"release .+ V(.*)")


def get_platform() -> str:
    """Returns the kind of system: "linux", "win32", "cygwin", "darwin", or Python's name of another one.

    Example:
        >>> import sys
        >>> from torchlite.utils.collect_env import get_platform
        >>> sys.platform.startswith(get_platform())
        True
    """
    known = (kind for kind in ("linux", "win32", "cygwin", "darwin") if sys.platform.startswith(kind))
    return next(known, sys.platform)


def get_nvidia_smi() -> str:
    """Returns the command of NVIDIA's program that describes GPUs.

    Example:
        >>> from torchlite.utils.collect_env import get_nvidia_smi
        >>> "nvidia-smi" in get_nvidia_smi()
        True
    """
    if get_platform() != "win32":
        return "nvidia-smi"
    folders = [os.environ.get("SYSTEMROOT", r"C:\Windows"), os.environ.get("PROGRAMFILES", r"C:\Program Files")]
    places = [
        os.path.join(folders[0], "System32", "nvidia-smi.exe"),
        os.path.join(folders[1], "NVIDIA Corporation", "NVSMI", "nvidia-smi.exe"),
    ]
    return next((f'"{place}"' for place in places if os.path.exists(place)), "nvidia-smi")


def get_nvidia_driver_version(run_lambda: Any = run) -> str | None:
    """Returns the version of NVIDIA's driver, or None without one.

    Args:
        run_lambda: Function that runs a command, such as `run`.

    Example:
        >>> from torchlite.utils.collect_env import get_nvidia_driver_version
        >>> get_nvidia_driver_version(lambda command: (1, "", "not found")) is None
        True
    """
    if get_platform() == "darwin":
        found = run_and_read_all(run_lambda, "kextstat | grep -i cuda")
        return None if found is None else found.partition("(")[2].partition(")")[0]
    return run_and_parse_first_match(run_lambda, get_nvidia_smi(), r"Driver Version: (.*?) ")


def get_gpu_info(run_lambda: Any = run) -> str | None:
    """Returns the models of NVIDIA's GPUs, one a line, or None without one.

    Args:
        run_lambda: Function that runs a command, such as `run`.

    Example:
        >>> from torchlite.utils.collect_env import get_gpu_info
        >>> get_gpu_info(lambda command: (0, "GPU 0: H100 (UUID: GPU-7)", ""))
        'GPU 0: H100'
    """
    listed = run_and_read_all(run_lambda, f"{get_nvidia_smi()} -L")
    if listed is not None:
        return re.sub(r" \(UUID: .+?\)", "", listed)  # it names one machine
    if torch.cuda.is_available():
        return "\n".join(torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count()))
    return None


def get_cudnn_version(run_lambda: Any = run) -> str | None:
    """Returns the files of cuDNN, one a line, or None if there are none.

    Args:
        run_lambda: Function that runs a command, such as `run`.

    Example:
        >>> from torchlite.utils.collect_env import get_cudnn_version
        >>> get_cudnn_version(lambda command: (1, "", "not found")) is None
        True
    """
    commands = {"win32": 'where "%CUDA_PATH%\\bin":cudnn*.dll', "darwin": "ls /usr/local/cuda/lib/libcudnn*"}
    found = run_and_read_all(
        run_lambda, commands.get(get_platform(), "ldconfig -p | grep libcudnn | rev | cut -d' ' -f1 | rev")
    )
    files = {os.path.realpath(name.strip()) for name in (found or "").split("\n") if name.strip()}
    there = sorted(name for name in files if os.path.exists(name))
    if len(there) < 2:
        return there[0] if there else None
    return "Probably one of the following:\n" + "\n".join(there)


def get_linux_pkg_version(run_lambda: Any, pkg_name: str) -> str:
    """Returns the version of a system package by `dpkg`, `dnf`, `yum` or `zypper`, "N/A" if it is not installed.

    Args:
        run_lambda: Function that runs a command, such as `run`.
        pkg_name: Name of the package.

    Example:
        >>> from torchlite.utils.collect_env import get_linux_pkg_version
        >>> get_linux_pkg_version(lambda command: (1, "", "not found"), "intel-opencl-icd")
        'N/A'
    """
    managers = (("dpkg", "dpkg -l", 2), ("dnf", "dnf list", 1), ("yum", "yum list", 1), ("zypper", "zypper info", 2))
    for manager, listing, column in managers:
        if run_and_read_all(run_lambda, f"which {manager}") is None:
            continue
        line = run_and_read_all(run_lambda, f"{listing} | grep -w {pkg_name}")
        words = (line or "").split("\n")[0].split()
        return words[column] if len(words) > column else "N/A"
    return "N/A"


def get_intel_gpu_onboard(run_lambda: Any = run) -> str | None:
    """Returns the Intel GPUs that the system's bus lists, one a line, or "N/A".

    Args:
        run_lambda: Function that runs a command, such as `run`.

    Example:
        >>> from torchlite.utils.collect_env import get_intel_gpu_onboard
        >>> get_intel_gpu_onboard(lambda command: (1, "", "not found"))
        'N/A'
    """
    if get_platform() == "linux":
        found = run_and_read_all(run_lambda, "lspci -nn | grep -E 'VGA|Display|3D' | grep Intel")
    elif get_platform() in ("win32", "cygwin"):
        found = run_and_read_all(
            run_lambda, 'powershell.exe "Get-CimInstance Win32_VideoController | Select-Object -ExpandProperty Name"'
        )
        found = "\n".join(line for line in (found or "").split("\n") if "Intel" in line)
    else:
        found = None
    return found or "N/A"


def get_intel_gpu_detected(run_lambda: Any = run) -> str:
    """Returns "N/A": torchlite has no XPU backend. OpenCL drives Intel's GPUs.

    Args:
        run_lambda: No effect.

    Example:
        >>> from torchlite.utils.collect_env import get_intel_gpu_detected
        >>> get_intel_gpu_detected()
        'N/A'
    """
    return "N/A"


def get_intel_gpu_driver_version(run_lambda: Any = run) -> str | None:
    """Returns the versions of the packages of Intel's GPU driver, one a line.

    Args:
        run_lambda: Function that runs a command, such as `run`.

    Example:
        >>> from torchlite.utils.collect_env import get_intel_gpu_driver_version
        >>> get_intel_gpu_driver_version(lambda command: (1, "", "not found")) in ("", None)
        True
    """
    if get_platform() != "linux":
        return run_and_read_all(
            run_lambda,
            'powershell.exe "Get-CimInstance Win32_VideoController | Select-Object -ExpandProperty DriverVersion"',
        )
    names = ("intel-opencl-icd", "libze1", "level-zero", "intel-level-zero-gpu")
    found = {name: get_linux_pkg_version(run_lambda, name) for name in names}
    return "\n".join(f"* {name}:\t{version}" for name, version in found.items() if version != "N/A")


def get_mac_version(run_lambda: Any = run) -> str | None:
    """Returns the version of macOS, or None on another system.

    Args:
        run_lambda: Function that runs a command, such as `run`.

    Example:
        >>> from torchlite.utils.collect_env import get_mac_version
        >>> get_mac_version(lambda command: (1, "", "not found")) is None
        True
    """
    return run_and_parse_first_match(run_lambda, "sw_vers -productVersion", r"(.*)")


def get_windows_version(run_lambda: Any = run) -> str | None:
    """Returns the name of Windows, or None on another system.

    Args:
        run_lambda: Function that runs a command, such as `run`.

    Example:
        >>> from torchlite.utils.collect_env import get_windows_version
        >>> get_windows_version(lambda command: (1, "", "not found")) is None
        True
    """
    command = 'powershell.exe "(Get-CimInstance Win32_OperatingSystem).Caption"'
    return run_and_read_all(run_lambda, command)


def get_lsb_version(run_lambda: Any = run) -> str | None:
    """Returns the distribution's name by `lsb_release`, or None without that program.

    Args:
        run_lambda: Function that runs a command, such as `run`.

    Example:
        >>> from torchlite.utils.collect_env import get_lsb_version
        >>> get_lsb_version(lambda command: (1, "", "not found")) is None
        True
    """
    return run_and_parse_first_match(run_lambda, "lsb_release -a", r"Description:\t(.*)")


def check_release_file(run_lambda: Any = run) -> str | None:
    """Returns the distribution's name by the files `/etc/*-release`, or None.

    Args:
        run_lambda: Function that runs a command, such as `run`.

    Example:
        >>> from torchlite.utils.collect_env import check_release_file
        >>> check_release_file(lambda command: (1, "", "not found")) is None
        True
    """
    return run_and_parse_first_match(run_lambda, "cat /etc/*-release", r'PRETTY_NAME="(.*)"')


def get_python_platform() -> str:
    """Returns Python's name of the platform.

    Example:
        >>> from torchlite.utils.collect_env import get_python_platform
        >>> get_python_platform() != ""
        True
    """
    return platform.platform()


def get_os(run_lambda: Any = run) -> str | None:
    """Returns the name of the operating system and the machine's architecture.

    Args:
        run_lambda: Function that runs a command, such as `run`.

    Example:
        >>> from torchlite.utils.collect_env import get_os
        >>> get_os() != ""
        True
    """
    kind = get_platform()
    if kind in ("win32", "cygwin"):
        return get_windows_version(run_lambda)
    if kind == "darwin":
        version = get_mac_version(run_lambda)
        return None if version is None else f"macOS {version} ({platform.machine()})"
    if kind == "linux":
        name = get_lsb_version(run_lambda) or check_release_file(run_lambda)
        return f"{name or kind} ({platform.machine()})"
    return kind


def get_libc_version() -> str:
    """Returns the name and version of the C library, or "N/A".

    Example:
        >>> from torchlite.utils.collect_env import get_libc_version
        >>> get_libc_version() != ""
        True
    """
    return "-".join(platform.libc_ver()) or "N/A"


def get_cpu_info(run_lambda: Any = run) -> str:
    """Returns the system's description of the processor; where it has none, Python's.

    Args:
        run_lambda: Function that runs a command, such as `run`.

    Example:
        >>> from torchlite.utils.collect_env import get_cpu_info
        >>> get_cpu_info() != ""
        True
    """
    commands = {
        "linux": "lscpu",
        "darwin": "sysctl -n machdep.cpu.brand_string",
        "win32": 'powershell.exe "Get-CimInstance Win32_Processor | Select-Object -ExpandProperty Name"',
    }
    found = run_and_read_all(run_lambda, commands[get_platform()]) if get_platform() in commands else None
    return found or f"{platform.processor() or platform.machine()} ({os.cpu_count()} CPUs)"


def get_cuda_module_loading_config() -> str:
    """Returns the environment variable `CUDA_MODULE_LOADING`, "N/A" without CUDA.

    Example:
        >>> from torchlite.utils.collect_env import get_cuda_module_loading_config
        >>> get_cuda_module_loading_config() != ""
        True
    """
    return os.environ.get("CUDA_MODULE_LOADING", "LAZY") if torch.cuda.is_available() else "N/A"


def get_cachingallocator_config() -> dict[str, str]:
    """Returns the environment variables that set CUDA's allocator up, without those that are not set.

    Example:
        >>> from torchlite.utils.collect_env import get_cachingallocator_config
        >>> type(get_cachingallocator_config())
        <class 'dict'>
    """
    names = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
    return {name: os.environ[name] for name in names if os.environ.get(name)}


def is_xnnpack_available() -> str:
    """Returns "False": torchlite has no XNNPACK.

    Example:
        >>> from torchlite.utils.collect_env import is_xnnpack_available
        >>> is_xnnpack_available()
        'False'
    """
    return "False"


def get_conda_packages(run_lambda: Any, patterns: Any = None) -> str | None:
    """Returns the packages of conda that matter, one a line, or None without conda.

    Args:
        run_lambda: Function that runs a command, such as `run`.
        patterns: Parts of the names that matter. Default: PyTorch, NumPy, CUDA's and Intel's libraries.

    Example:
        >>> from torchlite.utils.collect_env import get_conda_packages
        >>> get_conda_packages(lambda command: (0, "# packages\\nnumpy 2.4\\nzlib 1.3", ""))
        'numpy 2.4'
    """
    wanted = [*CONDA_PATTERNS, *COMMON_PATTERNS, *NVIDIA_PATTERNS, *ONEAPI_PATTERNS] if patterns is None else patterns
    listed = run_and_read_all(run_lambda, f"{os.environ.get('CONDA_EXE', 'conda')} list")
    if listed is None:
        return None
    lines = (line for line in listed.splitlines() if not line.startswith("#"))
    return "\n".join(line for line in lines if any(part in line for part in wanted))


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
    wanted = [*PIP_PATTERNS, *COMMON_PATTERNS, *NVIDIA_PATTERNS, *ONEAPI_PATTERNS] if patterns is None else patterns
    lines = [f"{name}=={found[name]}" for name in sorted(found) if any(part in name for part in wanted)]
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
    pip, packages = get_pip_packages(run)
    return SystemEnv(
        torch_version=str(torch.__version__),
        is_debug_build="False",
        cuda_compiled_version=torch.version.cuda,
        gcc_version=get_gcc_version(run),
        clang_version=get_clang_version(run),
        cmake_version=get_cmake_version(run),
        os=get_os(run),
        libc_version=get_libc_version(),
        python_version=f"{sys.version} ({sys.maxsize.bit_length() + 1}-bit runtime)".replace("\n", " "),
        python_platform=get_python_platform(),
        is_cuda_available=str(torch.cuda.is_available()),
        cuda_runtime_version=get_running_cuda_version(run),
        cuda_module_loading=get_cuda_module_loading_config(),
        nvidia_driver_version=get_nvidia_driver_version(run),
        nvidia_gpu_models=get_gpu_info(run),
        cudnn_version=get_cudnn_version(run),
        is_xpu_available=str(torch.xpu.is_available()),  # type: ignore[attr-defined]
        pip_version=pip,
        pip_packages=packages,
        conda_packages=get_conda_packages(run),
        hip_compiled_version="N/A",
        hip_runtime_version="N/A",
        miopen_runtime_version="N/A",
        caching_allocator_config=get_cachingallocator_config(),
        is_xnnpack_available=is_xnnpack_available(),
        cpu_info=get_cpu_info(run),
        opencl_devices=_list_opencl_devices(),
    )


def _shown(name: str, value: Any) -> str:
    """The text of a fact: lists of packages with the manager's name before each line."""
    if name in ("pip_packages", "conda_packages") and value:
        manager = "[pip3]" if name == "pip_packages" else "[conda]"
        return "\n".join(f"{manager} {line}" for line in str(value).split("\n"))
    if value is None and name == "conda_packages":
        return "[conda] Could not collect"
    text = "Could not collect" if value is None else str(value) or "No relevant packages"
    return f"\n{text}" if "\n" in text and name != "cpu_info" else text


def pretty_str(envinfo: SystemEnv) -> str:
    """Returns the text of a `SystemEnv`, one fact a line.

    Args:
        envinfo: A `SystemEnv`.

    Example:
        >>> from torchlite.utils.collect_env import SystemEnv, pretty_str
        >>> print(pretty_str(SystemEnv("2.13", *[None] * (len(SystemEnv._fields) - 1))).splitlines()[0])
        PyTorch version: 2.13
    """
    return env_info_fmt.format(**{name: _shown(name, value) for name, value in envinfo._asdict().items()})


def get_pretty_env_info() -> str:
    """Collects the facts of the environment and returns them as text."""
    return pretty_str(get_env_info())


def main() -> None:
    """Prints the facts of the environment."""
    print("Collecting environment information...")
    print(get_pretty_env_info())


__dir__ = make_module_dir(
    globals(),
    "TORCH_AVAILABLE COMMON_PATTERNS CONDA_PATTERNS NVIDIA_PATTERNS ONEAPI_PATTERNS PIP_PATTERNS env_info_fmt",
)


if __name__ == "__main__":
    main()
