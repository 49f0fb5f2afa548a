"""OpenCL devices: whether there are any. Their backend is an extra of its own."""
from __future__ import annotations

from . import _accelerator


def is_available() -> bool:
    """Whether a device can be used. Never raises and asks no question.

    >>> import torchlite as torch
    >>> device = "opencl" if torch.opencl.is_available() else "cpu"
    """
    return _accelerator.is_available("opencl")


def device_count() -> int:
    """The number of devices; 0 when none can be used."""
    return _accelerator.device_count("opencl")


def why_not() -> str:
    """"" when a device can be used, else one sentence saying what is missing and what to install."""
    return _accelerator.why_not("opencl")
