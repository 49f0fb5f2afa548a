"""The patterns of FBGEMM's kernels."""

from __future__ import annotations

from ._native_dtypes import PLAIN, make_config, usual_dtypes
from .backend_config import BackendConfig

__all__ = ["get_fbgemm_backend_config"]


def get_fbgemm_backend_config() -> BackendConfig:
    """The patterns of FBGEMM, a library for servers' processors.

    Example:
        >>> torch.ao.quantization.backend_config.get_fbgemm_backend_config().name
        'fbgemm'
    """
    return make_config("fbgemm", info=[PLAIN], **usual_dtypes())
