"""Discrete Fourier transforms under PyTorch's names: `torch.fft.fft`, `torch.fft.irfft`, ... Each is an op declared in
`torchlite/_ops/fft.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._dispatch import NAMESPACES, namespace_function

if TYPE_CHECKING:
    from ._stubs.fft import *
else:

    def __getattr__(name):
        if name in NAMESPACES["fft"]:
            found = globals()[name] = namespace_function("fft", name)
            return found
        if name == "__all__":
            return list(NAMESPACES["fft"])
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(NAMESPACES["fft"])
