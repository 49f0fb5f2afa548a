"""The patterns of PyTorch's own quantized kernels."""

from __future__ import annotations

from typing import Any

from ._native_dtypes import (
    DYNAMIC,
    DYNAMIC_HALF,
    HALF,
    NUMBERS_IN_WEIGHT,
    PLAIN,
    WEIGHT_ONLY,
    WEIGHT_ONLY_4_BITS,
    WEIGHTED,
    make_config,
    usual_dtypes,
)
from .backend_config import BackendConfig

__all__ = [
    "default_dynamic_float16_dtype_config", "default_dynamic_int8_dtype_config", "default_op_fp16_dtype_config",
    "default_op_quint8_dtype_config", "get_native_backend_config", "get_native_backend_config_dict",
    "get_test_only_legacy_native_backend_config", "get_test_only_legacy_native_backend_config_dict",
    "input_output_only_quint8_dtype_config", "weight_only_quint4x2_dtype_config", "weight_only_quint8_dtype_config",
]  # fmt: skip
weighted_op_quint8_dtype_config = WEIGHTED
default_op_quint8_dtype_config = PLAIN
default_op_fp16_dtype_config = HALF
default_dynamic_int8_dtype_config = DYNAMIC
default_dynamic_float16_dtype_config = DYNAMIC_HALF
input_output_only_quint8_dtype_config = NUMBERS_IN_WEIGHT
weight_only_quint8_dtype_config = WEIGHT_ONLY
weight_only_quint4x2_dtype_config = WEIGHT_ONLY_4_BITS


def get_native_backend_config() -> BackendConfig:
    """The patterns of PyTorch's own kernels: those of FBGEMM and QNNPACK.

    Example:
        >>> torch.ao.quantization.backend_config.get_native_backend_config().name
        'native'
    """
    return make_config("native", info=[PLAIN], ln=[NUMBERS_IN_WEIGHT], **usual_dtypes())


def get_native_backend_config_dict() -> dict[str, Any]:
    """The same as a dictionary.

    Example:
        >>> torch.ao.quantization.backend_config.get_native_backend_config_dict()["name"]
        'native'
    """
    return get_native_backend_config().to_dict()


def get_test_only_legacy_native_backend_config() -> BackendConfig:
    """The patterns of PyTorch's own kernels, with half precision for layers whose inputs and outputs have it.

    Example:
        >>> from torchlite.ao.quantization.backend_config.native import get_test_only_legacy_native_backend_config
        >>> get_test_only_legacy_native_backend_config().name
        '_native_and_fp16'
    """
    dtypes = usual_dtypes()
    dtypes |= {key: [PLAIN, HALF] for key in ("binary", "matmul", "fixed", "share")}
    dtypes["linear"] = [*dtypes["linear"], HALF]
    return make_config("_native_and_fp16", info=[PLAIN], ln=[NUMBERS_IN_WEIGHT], **dtypes)


def get_test_only_legacy_native_backend_config_dict() -> dict[str, Any]:
    """The same as a dictionary.

    Example:
        >>> from torchlite.ao.quantization.backend_config.native import get_test_only_legacy_native_backend_config_dict
        >>> get_test_only_legacy_native_backend_config_dict()["name"]
        '_native_and_fp16'
    """
    return get_test_only_legacy_native_backend_config().to_dict()
