"""Discrete Fourier transforms: the names of `torch.fft`."""

from ._stubs.fft import *
