"""Fourier transforms under the names of PyTorch's library."""

from ._namespaces import library_functions

__getattr__, __dir__ = library_functions("fft")
