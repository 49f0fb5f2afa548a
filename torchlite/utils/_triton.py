"""Questions about Triton. No kernel of torchlite is written in it, so a device is never one for Triton."""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util


@functools.cache
def has_triton_package() -> bool:
    """Return whether the package triton is installed."""
    return importlib.util.find_spec("triton") is not None


@functools.cache
def get_triton_version(fallback: tuple[int, int] = (0, 0)) -> tuple[int, int]:
    """Return the first two numbers of the version of triton, or the fallback without the package."""
    if not has_triton_package():
        return fallback
    major, minor = importlib.metadata.version("triton").split(".")[:2]
    return int(major), int(minor)


def has_triton() -> bool:
    """Return whether `torch.compile` writes Triton kernels for a device here: False.

    >>> from torchlite.utils._triton import has_triton
    >>> has_triton()
    False
    """
    return False


def has_triton_tma() -> bool:
    """Return whether Triton kernels can move tensors by TMA: False, as there are none."""
    return False


def has_triton_tma_device() -> bool:
    """Return whether Triton kernels can make descriptors of TMA: False, as there are none."""
    return False
