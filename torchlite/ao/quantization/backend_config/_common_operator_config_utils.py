"""The patterns that backends share, with dtypes that each backend chooses."""

from __future__ import annotations

import copy
import operator
from collections.abc import Iterable
from typing import Any

import torchlite as torch
from torchlite import nn
from torchlite.ao.nn import intrinsic as nni
from torchlite.ao.nn import qat as nnqat
from torchlite.ao.nn.intrinsic import qat as nniqat
from torchlite.ao.nn.quantized import reference as nnqr
from torchlite.nn import functional as F

from ..fuser_method_mappings import (
    _sequential_wrapper2,
    fuse_conv_bn,
    fuse_conv_bn_relu,
    fuse_convtranspose_bn,
    fuse_linear_bn,
)
from .backend_config import BackendPatternConfig, DTypeConfig, DTypeWithConstraints, ObservationType

__all__: list[str] = []
_SHARED = ObservationType.OUTPUT_SHARE_OBSERVER_WITH_INPUT
_PLACES = {"weight": 1, "bias": 2}
_BY_TENSORS = {
    0: ObservationType.OUTPUT_USE_DIFFERENT_OBSERVER_AS_INPUT,
    1: _SHARED,
    2: ObservationType.OUTPUT_USE_DIFFERENT_OBSERVER_AS_INPUT,
}
_FROM_0_TO_1 = DTypeWithConstraints(
    torch.quint8, quant_min_lower_bound=0, quant_max_upper_bound=255, scale_exact_match=1 / 256,
    zero_point_exact_match=0,
)  # fmt: skip
_FROM_NEG1_TO_1 = DTypeWithConstraints(
    torch.quint8, quant_min_lower_bound=0, quant_max_upper_bound=255, scale_exact_match=2 / 256,
    zero_point_exact_match=128,
)  # fmt: skip
_FIXED_QPARAMS_OP_TO_CONSTRAINTS: dict[Any, DTypeWithConstraints] = {
    **dict.fromkeys(
        (nn.Hardsigmoid, F.hardsigmoid, "hardsigmoid", "hardsigmoid_", nn.Sigmoid, torch.sigmoid, "sigmoid",
         "sigmoid_", nn.Softmax),
        _FROM_0_TO_1,
    ),
    **dict.fromkeys((nn.Tanh, torch.tanh, "tanh", "tanh_"), _FROM_NEG1_TO_1),
}  # fmt: skip


def _plain(pattern: Any, dtype_configs: list[DTypeConfig], **parts: Any) -> BackendPatternConfig:
    """A pattern with dtypes, and other attributes by name."""
    made = BackendPatternConfig(pattern).set_dtype_configs(dtype_configs)
    for name, value in parts.items():
        made._with(name, value)
    return made


def _each(patterns: Iterable[Any], dtype_configs: list[DTypeConfig], **parts: Any) -> list[BackendPatternConfig]:
    return [_plain(pattern, dtype_configs, **parts) for pattern in patterns]


def _weighted(root: Any, reference: Any, dtypes: list[DTypeConfig], kind: Any, qat: Any) -> list[BackendPatternConfig]:
    """A layer with a weight, or a container of it, and its form in quantization aware training."""
    parts = {"root_module": root, "reference_quantized_module": reference}
    return [_plain(kind, dtypes, qat_module=qat, **parts), _plain(qat, dtypes, **parts)]


def _fused(patterns: Iterable[Any], dtypes: list[DTypeConfig], fuse: Any, kind: Any) -> list[BackendPatternConfig]:
    return _each(patterns, dtypes, fuser_method=fuse, fused_module=kind)


def _get_binary_op_configs(
    dtype_configs: list[DTypeConfig], ops: tuple = (operator.add, torch.add, operator.mul, torch.mul)
) -> list[BackendPatternConfig]:
    patterns = [pattern for op in ops for pattern in ((op, nn.ReLU), (op, F.relu), (op, torch.relu), op)]
    return _each(patterns, dtype_configs, _num_tensor_args_to_observation_type=_BY_TENSORS)


def _get_matmul_configs(dtype_configs: list[DTypeConfig]) -> list[BackendPatternConfig]:
    return [_plain(torch.matmul, dtype_configs)]


def _get_linear_configs(dtype_configs: list[DTypeConfig]) -> list[BackendPatternConfig]:
    relu, with_norm = nni.LinearReLU, nni.LinearBn1d  # type: ignore[attr-defined]
    return [
        *_weighted(nn.Linear, nnqr.Linear, dtype_configs, nn.Linear, nnqat.Linear),
        _plain(F.linear, dtype_configs, _input_type_to_index=_PLACES),
        *_fused(((nn.Linear, nn.ReLU), (nn.Linear, F.relu)), dtype_configs, _sequential_wrapper2(relu), relu),
        *_weighted(nn.Linear, nnqr.Linear, dtype_configs, relu, nniqat.LinearReLU),
        *_each(((F.linear, nn.ReLU), (F.linear, F.relu)), dtype_configs),
        *_fused(((nn.Linear, nn.BatchNorm1d),), dtype_configs, fuse_linear_bn, with_norm),
        *_weighted(nn.Linear, nnqr.Linear, dtype_configs, with_norm, nniqat.LinearBn1d),
    ]


def _conv_configs(dtypes: list[DTypeConfig], d: int) -> list[BackendPatternConfig]:
    conv, norm, reference = getattr(nn, f"Conv{d}d"), getattr(nn, f"BatchNorm{d}d"), getattr(nnqr, f"Conv{d}d")
    function = getattr(F, f"conv{d}d")
    relu, with_norm, with_both = (getattr(nni, f"{name}{d}d") for name in ("ConvReLU", "ConvBn", "ConvBnReLU"))
    relu_qat, norm_qat, both_qat = (getattr(nniqat, f"{name}{d}d") for name in ("ConvReLU", "ConvBn", "ConvBnReLU"))
    parts = {"root_module": conv, "reference_quantized_module": reference}
    patterns = ((conv, norm, nn.ReLU), (conv, norm, F.relu))
    both = _fused(patterns, dtypes, fuse_conv_bn_relu, with_both)
    both[1].set_root_module(conv)
    return [
        *_weighted(conv, reference, dtypes, conv, getattr(nnqat, f"Conv{d}d")),
        _plain(function, dtypes, _input_type_to_index=_PLACES),
        *_fused(((conv, nn.ReLU), (conv, F.relu)), dtypes, _sequential_wrapper2(relu), relu),
        *_each(((function, nn.ReLU), (function, F.relu)), dtypes),
        _plain(relu, dtypes, qat_module=relu_qat),
        *_fused(((conv, norm),), dtypes, fuse_conv_bn, with_norm),
        *both,
        _plain(with_norm, dtypes, qat_module=norm_qat),
        _plain(with_both, dtypes, qat_module=both_qat),
        *_each((relu_qat, norm_qat, both_qat), dtypes, **parts),
    ]


def _transposed_configs(dtypes: list[DTypeConfig], d: int) -> list[BackendPatternConfig]:
    conv, norm = getattr(nn, f"ConvTranspose{d}d"), getattr(nn, f"BatchNorm{d}d")
    parts = {"root_module": conv, "reference_quantized_module": getattr(nnqr, f"ConvTranspose{d}d")}
    return [
        _plain(conv, dtypes, **parts),
        _plain((conv, norm), dtypes, fuser_method=fuse_convtranspose_bn, **parts),
        _plain(getattr(F, f"conv_transpose{d}d"), dtypes, _input_type_to_index=_PLACES),
    ]


def _get_conv_configs(dtype_configs: list[DTypeConfig]) -> list[BackendPatternConfig]:
    made = (_conv_configs(dtype_configs, d) + _transposed_configs(dtype_configs, d) for d in (1, 2, 3))
    return [config for configs in made for config in configs]


def _get_cat_config(dtype_configs: list[DTypeConfig]) -> BackendPatternConfig:
    return _plain(torch.cat, dtype_configs, observation_type=_SHARED)


def _get_ln_configs(dtype_configs: list[DTypeConfig]) -> list[BackendPatternConfig]:
    places = {"weight": 2, "bias": 3}
    return [_plain(nn.LayerNorm, dtype_configs), _plain(F.layer_norm, dtype_configs, _input_type_to_index=places)]


def _get_default_op_configs(dtype_configs: list[DTypeConfig]) -> list[BackendPatternConfig]:
    ops = (
        nn.ELU, nn.LeakyReLU, nn.Hardswish, nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d, nn.Dropout,
        nn.PReLU, F.elu, F.hardswish, F.leaky_relu, F.dropout,
    )  # fmt: skip
    return [
        *_each(ops, dtype_configs),
        _plain(F.group_norm, dtype_configs, _input_type_to_index={"weight": 2, "bias": 3}),
        _plain(F.instance_norm, dtype_configs, _input_type_to_index={"weight": 3, "bias": 4}),
    ]


def _add_fixed_qparams_to_dtype_configs(
    dtype_configs: list[DTypeConfig], constraints: DTypeWithConstraints
) -> list[DTypeConfig]:
    """Copies of dtypes whose inputs and outputs of the same dtype have the one scale and zero point."""
    found = copy.deepcopy(dtype_configs)
    for config, original in zip(found, dtype_configs, strict=True):
        for part in (config.input_dtype_with_constraints, config.output_dtype_with_constraints):
            if part.dtype != constraints.dtype:
                continue
            for name in ("scale_min_lower_bound", "scale_max_upper_bound"):
                if getattr(part, name) is not None:
                    raise ValueError(f"{name} is invalid for fixed qparams ops: {original}")
            for name in ("quant_min_lower_bound", "quant_max_upper_bound", "scale_exact_match"):
                setattr(part, name, getattr(constraints, name))
            part.zero_point_exact_match = constraints.zero_point_exact_match
    return found


def _get_fixed_qparams_op_configs(dtype_configs: list[DTypeConfig]) -> list[BackendPatternConfig]:
    entries = _FIXED_QPARAMS_OP_TO_CONSTRAINTS.items()
    return [_plain(op, _add_fixed_qparams_to_dtype_configs(dtype_configs, limits)) for op, limits in entries]


def _share_qparams_ops() -> list[Any]:
    modules = """AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AvgPool1d AvgPool2d AvgPool3d Hardtanh Identity
        MaxPool1d MaxPool2d MaxPool3d PixelShuffle PixelUnshuffle ReLU ReLU6"""
    functions = """adaptive_avg_pool2d adaptive_avg_pool3d hardtanh hardtanh_ interpolate max_pool1d max_pool2d
        max_pool3d pixel_shuffle pixel_unshuffle relu relu6 avg_pool2d avg_pool3d"""
    plain = """adaptive_avg_pool1d avg_pool1d clamp flatten mean narrow repeat_interleave transpose squeeze stack
        unsqueeze"""
    methods = """contiguous clamp detach detach_ mean permute repeat repeat_interleave reshape resize_ relu relu_
        squeeze squeeze_ transpose unsqueeze unsqueeze_ view"""
    return [
        *(getattr(nn, name) for name in modules.split()), *(getattr(F, name) for name in functions.split()),
        *(getattr(torch, name) for name in plain.split()), operator.floordiv, *methods.split(),
    ]  # fmt: skip


def _get_share_qparams_op_configs(dtype_configs: list[DTypeConfig]) -> list[BackendPatternConfig]:
    return _each(_share_qparams_ops(), dtype_configs, observation_type=_SHARED)


def _get_bn_configs(dtype_configs: list[DTypeConfig]) -> list[BackendPatternConfig]:
    pairs = ((nn.BatchNorm2d, nni.BNReLU2d), (nn.BatchNorm3d, nni.BNReLU3d))  # type: ignore[attr-defined]
    found = []
    for norm, fused in pairs:
        found += _fused(((norm, nn.ReLU), (norm, F.relu)), dtype_configs, _sequential_wrapper2(fused), fused)
        found += _each((norm, fused), dtype_configs)
    return found


def _get_rnn_op_configs(dtype_configs: list[DTypeConfig]) -> list[BackendPatternConfig]:
    names = ("GRUCell", "LSTMCell", "RNNCell", "LSTM", "GRU")
    pairs = ((getattr(nn, name), getattr(nnqr, name)) for name in names)
    return [_plain(kind, dtype_configs, root_module=kind, reference_quantized_module=ref) for kind, ref in pairs]


def _get_embedding_op_configs(dtype_configs: list[DTypeConfig]) -> list[BackendPatternConfig]:
    found = []
    for name in ("Embedding", "EmbeddingBag"):
        kind = getattr(nn, name)
        found += _weighted(kind, getattr(nnqr, name), dtype_configs, kind, getattr(nnqat, name))
    return found


def _get_tensor_info_op_configs(dtype_configs: list[DTypeConfig]) -> list[BackendPatternConfig]:
    return _each(("shape", "size"), dtype_configs, observation_type=ObservationType.INPUT_OUTPUT_NOT_OBSERVED)
