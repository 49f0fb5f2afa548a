"""The patterns of TensorRT."""

from __future__ import annotations

from typing import Any

import torchlite as torch

from ._common_operator_config_utils import _plain
from ._native_dtypes import make_config
from .backend_config import BackendConfig, DTypeConfig

__all__ = ["get_tensorrt_backend_config", "get_tensorrt_backend_config_dict"]


def get_tensorrt_backend_config() -> BackendConfig:
    """The patterns of TensorRT, whose integers are signed bytes.

    Example:
        >>> torch.ao.quantization.backend_config.get_tensorrt_backend_config().name
        'tensorrt'
    """
    weighted = [DTypeConfig(torch.qint8, torch.qint8, torch.qint8, torch.float)]
    plain = [DTypeConfig(torch.qint8, torch.qint8)]
    dtypes = {"conv": weighted, "linear": weighted, "binary": weighted, "matmul": weighted}
    made = make_config("tensorrt", cat=plain, share=plain, info=plain, **dtypes)
    places = {"bias": 0, "input": 1, "weight": 2}
    return made.set_backend_pattern_config(_plain(torch.addmm, weighted, _input_type_to_index=places))


def get_tensorrt_backend_config_dict() -> dict[str, Any]:
    """The same as a dictionary.

    Example:
        >>> torch.ao.quantization.backend_config.get_tensorrt_backend_config_dict()["name"]
        'tensorrt'
    """
    return get_tensorrt_backend_config().to_dict()
