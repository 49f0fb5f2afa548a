"""The patterns of ExecuTorch."""

from __future__ import annotations

import operator

import torchlite as torch
from torchlite import nn
from torchlite.ao.nn import qat as nnqat
from torchlite.ao.nn.quantized import reference as nnqr
from torchlite.nn import functional as F

from ._common_operator_config_utils import (
    _PLACES,
    _SHARED,
    _conv_configs,
    _each,
    _get_binary_op_configs,
    _get_embedding_op_configs,
    _plain,
    _weighted,
)
from ._native_dtypes import (
    DYNAMIC,
    DYNAMIC_HALF,
    PLAIN,
    SIGNED,
    SIGNED_PLAIN,
    SIGNED_WEIGHT,
    SIGNED_WEIGHTED,
    WEIGHT_ONLY,
    WEIGHTED,
)
from .backend_config import BackendConfig, BackendPatternConfig, DTypeConfig

__all__ = ["get_executorch_backend_config"]
_DYNAMIC_SIGNED = DTypeConfig(SIGNED, torch.float, SIGNED_WEIGHT, torch.float, is_dynamic=True)


def _linear_configs() -> list[BackendPatternConfig]:
    dtypes = [SIGNED_WEIGHTED, WEIGHTED, DYNAMIC, _DYNAMIC_SIGNED, DYNAMIC_HALF]
    made = _weighted(nn.Linear, nnqr.Linear, dtypes, nn.Linear, nnqat.Linear)
    return [*made, _plain(F.linear, dtypes, _input_type_to_index=_PLACES)]


def _share_configs(dtypes: list[DTypeConfig]) -> list[BackendPatternConfig]:
    modules = "Flatten AdaptiveAvgPool2d ConstantPad2d ELU MaxPool2d ReLU6 Hardtanh LeakyReLU"
    functions = "adaptive_avg_pool2d elu hardtanh max_pool2d pad relu relu6 leaky_relu leaky_relu_"
    plain = "clamp flatten mean permute permute_copy squeeze cat concat concatenate"
    methods = "clamp mean permute reshape relu relu_ squeeze squeeze_ leaky_relu"
    ops = [
        *(getattr(nn, name) for name in modules.split()), *(getattr(F, name) for name in functions.split()),
        *(getattr(torch, name) for name in plain.split()), *methods.split(),
    ]  # fmt: skip
    return _each(ops, dtypes, observation_type=_SHARED)


def get_executorch_backend_config() -> BackendConfig:
    """The patterns of ExecuTorch, which runs programs on small machines.

    Example:
        >>> torch.ao.quantization.backend_config.get_executorch_backend_config().name
        'executorch'
    """
    plain = [SIGNED_PLAIN, PLAIN]
    ops = (operator.add, torch.add, operator.sub, torch.sub, operator.mul, torch.mul)
    made = BackendConfig("executorch").set_backend_pattern_configs(_linear_configs())
    made.set_backend_pattern_configs(_conv_configs([SIGNED_WEIGHTED, WEIGHTED], 2))
    made.set_backend_pattern_configs(_get_binary_op_configs([SIGNED_PLAIN, WEIGHTED], ops))
    made.set_backend_pattern_configs(_share_configs(plain)).set_backend_pattern_config(_plain(nn.BatchNorm2d, plain))
    made.set_backend_pattern_configs(_get_embedding_op_configs([WEIGHT_ONLY]))
    return made.set_backend_pattern_config(_plain(F.embedding, [WEIGHT_ONLY], _input_type_to_index={"weight": 1}))
