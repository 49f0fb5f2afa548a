"""Build configuration of torchlite, as text."""

from __future__ import annotations

import platform

import numpy as np


def show() -> str:
    """The versions of torchlite, Python, NumPy and the BLAS under it.

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
    """How many threads CPU kernels use."""
    from . import get_num_interop_threads, get_num_threads

    return f"at::get_num_threads() : {get_num_threads()}\nat::get_num_interop_threads() : {get_num_interop_threads()}\n"


def _cxx_flags() -> str:
    """The flags of a C++ compiler: none, for torchlite itself has no compiled part."""
    return ""
