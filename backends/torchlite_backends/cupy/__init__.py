"""CUDA backend: the kernels of `torchlite_backends.device_runtime` on CuPy's memory, streams and modules.

Importing this package does not import CuPy.
"""

from .backend import backend

__all__ = ["backend"]
