"""OpenCL backend: the kernels of `torchlite_backends.device_runtime` on PyOpenCL's buffers, queues and programs.

Importing this package does not import PyOpenCL.
"""

from .backend import backend

__all__ = ["backend"]
