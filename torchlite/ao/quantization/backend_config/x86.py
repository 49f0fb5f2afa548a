"""The patterns of the backend that chooses between FBGEMM and oneDNN."""

from __future__ import annotations

from ._native_dtypes import PLAIN, WEIGHTED, make_config, usual_dtypes
from .backend_config import BackendConfig

__all__ = ["get_x86_backend_config"]


def get_x86_backend_config() -> BackendConfig:
    """The patterns of the backend ``"x86"``.

    Example:
        >>> from torchlite.ao.quantization.backend_config.x86 import get_x86_backend_config
        >>> get_x86_backend_config().name
        'x86'
    """
    dtypes = usual_dtypes() | {key: [WEIGHTED] for key in ("binary", "matmul", "fixed")}
    return make_config("x86", info=[PLAIN], **dtypes)
