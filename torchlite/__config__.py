"""Build configuration of torchlite, as text."""

from __future__ import annotations

import platform

import numpy as np


def show() -> str:
    """Returns the versions of torchlite, Python, NumPy and its BLAS.

    Example:
        >>> import torchlite as torch
        >>> print(torch.__config__.show().splitlines()[0])
        torchlite built with:
    """
    from . import __version__

    blas = np.show_config(mode="dicts").get("Build Dependencies", {}).get("blas", {})  # type: ignore[union-attr]
    return "\n".join(
        [
            "torchlite built with:",
            f"  - torchlite {__version__}, Python {platform.python_version()}, NumPy {np.__version__}",
            f"  - BLAS: {blas.get('name', 'unknown')} {blas.get('version', '')}".rstrip(),
        ]
    )


def parallel_info() -> str:
    """Returns how many threads CPU kernels use, as text.

    Example:
        >>> "at::get_num_threads()" in torch.__config__.parallel_info()
        True
    """
    from . import get_num_interop_threads, get_num_threads

    return f"at::get_num_threads() : {get_num_threads()}\nat::get_num_interop_threads() : {get_num_interop_threads()}\n"


def _cxx_flags() -> str:
    """The flags of a C++ compiler: none, for torchlite itself has no compiled part."""
    return ""
