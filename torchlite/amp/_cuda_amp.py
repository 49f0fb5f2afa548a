"""`torch.cuda.amp`: `torch.amp` for CUDA, deprecated in favour of it."""

from __future__ import annotations

from importlib.util import find_spec

from ._deprecated_forms import make_deprecated_forms
from .autocast_mode import _cuda_is_available

__all__ = ["GradScaler", "amp_definitely_not_available", "autocast", "custom_bwd", "custom_fwd"]

autocast, GradScaler, custom_fwd, custom_bwd = make_deprecated_forms("cuda")


def amp_definitely_not_available() -> bool:
    """Returns whether mixed precision on CUDA is not available.

    Example:
        >>> torch.cuda.amp.amp_definitely_not_available() and torch.cuda.is_available()
        False
    """
    return not (_cuda_is_available() or find_spec("torch_xla"))
