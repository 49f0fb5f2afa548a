"""The OpenCL backend: a strided array over PyOpenCL's buffers and the generators of its kernels. Importing this package
does not import PyOpenCL.
"""

from .backend import backend

__all__ = ["backend"]
