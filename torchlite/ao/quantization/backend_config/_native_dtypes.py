"""The dtypes of PyTorch's own kernels, and a configuration of the patterns that most backends share."""

from __future__ import annotations

from typing import Any

import torchlite as torch

from ._common_operator_config_utils import (
    _get_binary_op_configs,
    _get_bn_configs,
    _get_cat_config,
    _get_conv_configs,
    _get_default_op_configs,
    _get_embedding_op_configs,
    _get_fixed_qparams_op_configs,
    _get_linear_configs,
    _get_ln_configs,
    _get_matmul_configs,
    _get_rnn_op_configs,
    _get_share_qparams_op_configs,
    _get_tensor_info_op_configs,
)
from .backend_config import BackendConfig, DTypeConfig, DTypeWithConstraints

WEIGHTED = DTypeConfig(torch.quint8, torch.quint8, torch.qint8, torch.float)
PLAIN = DTypeConfig(torch.quint8, torch.quint8)
HALF = DTypeConfig(torch.float16, torch.float16, torch.float16, torch.float16)
DYNAMIC = DTypeConfig(torch.quint8, torch.float, torch.qint8, torch.float, is_dynamic=True)
DYNAMIC_HALF = DTypeConfig(torch.float16, torch.float, torch.float16, torch.float, is_dynamic=True)
NUMBERS_IN_WEIGHT = DTypeConfig(torch.quint8, torch.quint8, torch.float, torch.float)
WEIGHT_ONLY = DTypeConfig(torch.float, torch.float, torch.quint8)
WEIGHT_ONLY_4_BITS = DTypeConfig(torch.float, torch.float, torch.quint4x2)
# Signed bytes of kernels that shift by powers of two.
SIGNED = DTypeWithConstraints(torch.qint8, scale_min_lower_bound=2**-12)
SIGNED_WEIGHT = DTypeWithConstraints(
    torch.qint8, quant_min_lower_bound=-127, quant_max_upper_bound=127, scale_min_lower_bound=2**-12
)
SIGNED_WEIGHTED = DTypeConfig(SIGNED, SIGNED, SIGNED_WEIGHT, torch.float)
SIGNED_PLAIN = DTypeConfig(SIGNED, SIGNED)


def _single(make: Any) -> Any:
    return lambda dtypes: [make(dtypes)]


_FAMILIES = {
    "conv": _get_conv_configs, "linear": _get_linear_configs, "binary": _get_binary_op_configs,
    "matmul": _get_matmul_configs, "cat": _single(_get_cat_config), "default": _get_default_op_configs,
    "fixed": _get_fixed_qparams_op_configs, "share": _get_share_qparams_op_configs,
    "info": _get_tensor_info_op_configs, "bn": _get_bn_configs, "ln": _get_ln_configs, "rnn": _get_rnn_op_configs,
    "embedding": _get_embedding_op_configs,
}  # fmt: skip


def make_config(name: str, **dtypes: list[DTypeConfig]) -> BackendConfig:
    """Return a configuration with the families of patterns that have dtypes."""
    made = BackendConfig(name)
    for family, make in _FAMILIES.items():
        if family in dtypes:
            made.set_backend_pattern_configs(make(dtypes[family]))
    return made


def usual_dtypes(
    plain: list[DTypeConfig] | None = None, weighted: list[DTypeConfig] | None = None
) -> dict[str, list[DTypeConfig]]:
    """Return the dtypes of the families, for given ones of layers without and with a weight."""
    plain, weighted = plain or [PLAIN], weighted or [WEIGHTED]
    return {
        "conv": weighted, "linear": [*weighted, DYNAMIC, DYNAMIC_HALF], "rnn": [DYNAMIC, DYNAMIC_HALF],
        "embedding": [WEIGHT_ONLY, WEIGHT_ONLY_4_BITS],
        **dict.fromkeys(("binary", "matmul", "cat", "default", "fixed", "share", "bn"), plain),
    }  # fmt: skip
