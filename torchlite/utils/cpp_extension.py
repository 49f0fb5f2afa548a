"""C++ extensions, which torchlite does not support: building one raises NotImplementedError."""

from __future__ import annotations

import shutil
from typing import Any, NoReturn

from torchlite._settings.module_dir import make_module_dir

__all__ = [
    "BuildExtension", "CUDAExtension", "CppExtension", "include_paths", "is_ninja_available", "load", "load_inline",
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


load, load_inline, CppExtension, CUDAExtension, include_paths = map(
    _make_unsupported_function, ("load", "load_inline", "CppExtension", "CUDAExtension", "include_paths")
)


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
