"""C++ extensions, which torchlite cannot build: `load` finds its own modules in place of known ones."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from torchlite._extensions import find_source_extension
from torchlite._settings.module_dir import make_module_dir

__all__ = [
    "BuildExtension", "CUDAExtension", "CppExtension", "check_compiler_ok_for_platform", "include_paths",
    "is_ninja_available", "load", "load_inline",
]  # fmt: skip

CUDA_HOME: str | None = None
ROCM_HOME: str | None = None
IS_HIP_EXTENSION = False


def is_ninja_available() -> bool:
    """Returns whether the build tool ninja is found.

    Example:
        >>> torch.utils.cpp_extension.is_ninja_available() in (True, False)
        True
    """
    return shutil.which("ninja") is not None


def check_compiler_ok_for_platform(compiler: str) -> bool:
    """Returns whether a compiler is of the kind for the platform: GCC on Linux, Clang on macOS, any on Windows.

    Args:
        compiler: Name or path of the program.

    Example:
        >>> torch.utils.cpp_extension.check_compiler_ok_for_platform("no such program")
        False
    """
    if sys.platform == "win32":
        return True
    path = shutil.which(compiler)
    if path is None:
        return False
    wanted = ("clang++", "clang") if sys.platform == "darwin" else ("g++", "gcc", "gnu-c++", "gnu-cc")
    if any(name in os.path.realpath(path) for name in wanted):
        return True
    # A wrapper, such as one that caches objects, names the compiler behind it.
    for option in ("-v", "--version"):
        found = subprocess.run(
            [compiler, option],
            capture_output=True,
            check=False,
            text=True,
            errors="replace",
            env={**os.environ, "LC_ALL": "C"},
        )
        if found.returncode == 0:
            text = found.stdout + found.stderr
            if sys.platform == "darwin":
                return "Apple" in text
            return any(name in line for line in text.splitlines() for name in wanted if line.startswith("COLLECT_GCC="))
    return False


def _make_unsupported_function(name: str) -> Any:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(
            f"torch.utils.cpp_extension.{name}: extensions are built against PyTorch's C++ libraries, and torchlite "
            "has none"
        )

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = """Raises NotImplementedError: there are no C++ libraries to build against.

Args:
    *args: No effect.
    **kwargs: No effect.

Raises:
    NotImplementedError: Always.
"""
    return refuse


load_inline, CppExtension, CUDAExtension, include_paths = map(
    _make_unsupported_function, ("load_inline", "CppExtension", "CUDAExtension", "include_paths")
)


def load(name: str, sources: str | Sequence[str], *args: Any, **kwargs: Any) -> Any:
    """Returns torchlite's module in place of a known extension. Nothing is compiled.

    Args:
        name: Name of the extension.
        sources: Its source files.
        *args: No effect.
        **kwargs: No effect.

    Raises:
        NotImplementedError: The extension is not known. There are no C++ libraries to build against.

    Example:
        >>> import torchlite as torch
        >>> found = torch.utils.cpp_extension.load("quanto_cpp", ["unpack.cpp", "pybind_module.cpp"])
        >>> found.unpack(torch.tensor([0x21], dtype=torch.uint8), 4)
        tensor([1, 2], dtype=torch.uint8)
    """
    found = find_source_extension(name, (sources,) if isinstance(sources, str) else sources)
    return _make_unsupported_function("load")() if found is None else found


class BuildExtension:
    """Command of setup scripts, which raises NotImplementedError: there are no C++ libraries to build against.

    Args:
        *args: No effect.
        **kwargs: No effect.

    Raises:
        NotImplementedError: Always.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> NoReturn:
        _make_unsupported_function("BuildExtension")()

    @classmethod
    def with_options(cls, **options: Any) -> type[BuildExtension]:
        """Returns the class itself.

        Args:
            **options: No effect.
        """
        return cls


__dir__ = make_module_dir(globals(), "CUDA_HOME IS_HIP_EXTENSION ROCM_HOME")
