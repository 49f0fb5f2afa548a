"""The patterns of QNNPACK's kernels."""

from __future__ import annotations

from ._native_dtypes import (
    PLAIN,
    SIGNED,
    SIGNED_PLAIN,
    SIGNED_WEIGHT,
    SIGNED_WEIGHTED,
    WEIGHTED,
    make_config,
    usual_dtypes,
)
from .backend_config import BackendConfig

__all__ = ["get_qnnpack_backend_config"]
qnnpack_act_qint8_scale_min_2_neg_12 = SIGNED
qnnpack_weight_qint8_neg_127_to_127_scale_min_2_neg_12 = SIGNED_WEIGHT
qnnpack_weighted_op_qint8_symmetric_dtype_config = SIGNED_WEIGHTED
qnnpack_default_op_qint8_symmetric_dtype_config = SIGNED_PLAIN
qnnpack_weighted_op_quint8_dtype_config = WEIGHTED
qnnpack_default_op_quint8_dtype_config = PLAIN


def get_qnnpack_backend_config() -> BackendConfig:
    """The patterns of QNNPACK, a library for phones, which has signed bytes too.

    Example:
        >>> torch.ao.quantization.backend_config.get_qnnpack_backend_config().name
        'qnnpack'
    """
    return make_config("qnnpack", **usual_dtypes([SIGNED_PLAIN, PLAIN], [SIGNED_WEIGHTED, WEIGHTED]))
