"""The patterns of oneDNN's kernels, which add a second input and activations to products."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from typing import Any

import torchlite as torch
from torchlite import nn
from torchlite.ao.nn import intrinsic as nni
from torchlite.ao.nn.quantized import reference as nnqr
from torchlite.nn import functional as F
from torchlite.nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval

from ..fuser_method_mappings import _sequential_wrapper2
from ..utils import MatchAllNode
from ._common_operator_config_utils import _each, _fused, _plain
from ._native_dtypes import DYNAMIC, NUMBERS_IN_WEIGHT, PLAIN, WEIGHTED, make_config
from .backend_config import BackendConfig, BackendPatternConfig, DTypeConfig

__all__ = ["get_onednn_backend_config"]
_CONV, _LINEAR = [WEIGHTED], [WEIGHTED, DYNAMIC]


def _refuse_training(is_qat: bool, modules: tuple) -> None:
    if is_qat:
        raise NotImplementedError(f"Cannot fuse train modules: {modules}")


def _fuse_linear_bn_leaky_relu(is_qat: bool, linear: Any, bn: Any, leaky_relu: Any) -> Any:
    _refuse_training(is_qat, (linear, bn, leaky_relu))
    if type(linear) is not nn.Linear:
        raise NotImplementedError(f"Cannot fuse eval modules: {(linear, bn, leaky_relu)}")
    return nni.LinearLeakyReLU(fuse_linear_bn_eval(linear, bn), leaky_relu)  # type: ignore[attr-defined]


def _sum_config(add: Callable, with_bn: bool, is_left: bool, with_relu: bool) -> BackendPatternConfig:
    """A convolution, perhaps with a batch norm, that is one argument of a sum, perhaps with ReLU after it."""

    def parts(matched: Any) -> tuple[Any, Any, Any, Any]:
        """The ReLU or None, the sum, the convolution with what follows it, and the other argument of the sum."""
        relu, (total, left, right) = matched if with_relu else (None, matched)
        return (relu, total, left, right) if is_left else (relu, total, right, left)

    def fuse(is_qat: bool, *matched: Any) -> Any:
        relu, total, conv, _ = parts(matched)
        if with_bn:
            bn, conv = conv
            _refuse_training(is_qat, (conv, bn, total, *([relu] if with_relu else [])))
            conv = fuse_conv_bn_eval(conv, bn)
        return nni.ConvAddReLU2d(conv, total, relu) if with_relu else nni.ConvAdd2d(conv, total)

    def root(matched: Any) -> Any:
        conv = parts(matched)[2]
        return conv[1] if with_bn else conv

    def others(matched: Any) -> list[Any]:
        return [parts(matched)[3]]

    conv: Any = (nn.BatchNorm2d, nn.Conv2d) if with_bn else nn.Conv2d
    pattern: Any = (add, conv, MatchAllNode) if is_left else (add, MatchAllNode, conv)
    made = BackendPatternConfig()._set_pattern_complex_format((nn.ReLU, pattern) if with_relu else pattern)
    made.set_dtype_configs(_CONV).set_fuser_method(fuse)._set_root_node_getter(root)._set_extra_inputs_getter(others)
    return made.set_fused_module(nni.ConvAddReLU2d if with_relu else nni.ConvAdd2d)


def _sums() -> list[BackendPatternConfig]:
    found = []
    parts = {"root_module": nn.Conv2d, "reference_quantized_module": nnqr.Conv2d}
    for with_relu, kind in ((False, nni.ConvAdd2d), (True, nni.ConvAddReLU2d)):
        for is_left, with_bn, add in itertools.product((True, False), (True, False), (torch.add, operator.add)):
            found.append(_sum_config(add, with_bn, is_left, with_relu))
        found.append(_plain(kind, _CONV, **parts))
    return found


def _linear_with(module: Any, function: Any, kind: Any, dtypes: list[DTypeConfig]) -> list[BackendPatternConfig]:
    """A linear layer and an activation."""
    patterns = ((nn.Linear, module), (nn.Linear, function))
    parts = {"root_module": nn.Linear, "reference_quantized_module": nnqr.Linear}
    return [
        *_fused(patterns, dtypes, _sequential_wrapper2(kind), kind),
        _plain(kind, dtypes, **parts),
        *_each(((F.linear, module), (F.linear, function)), dtypes),
    ]


def get_onednn_backend_config() -> BackendConfig:
    """The patterns of oneDNN.

    Example:
        >>> torch.ao.quantization.backend_config.get_onednn_backend_config().name
        'onednn'
    """
    made = make_config(
        "onednn", conv=_CONV, linear=_LINEAR, ln=[NUMBERS_IN_WEIGHT], rnn=[DYNAMIC],
        embedding=[DTypeConfig(torch.float, torch.float, torch.qint8)],
        **{key: [PLAIN] for key in ("binary", "matmul", "cat", "default", "fixed", "share", "bn")},
    )  # fmt: skip
    leaky, tanh = nni.LinearLeakyReLU, nni.LinearTanh  # type: ignore[attr-defined]
    made.set_backend_pattern_configs(_sums())
    made.set_backend_pattern_configs(_linear_with(nn.LeakyReLU, F.leaky_relu, leaky, _LINEAR))
    pattern = (nn.Linear, nn.BatchNorm1d, nn.LeakyReLU)
    made.set_backend_pattern_configs(_fused((pattern,), _LINEAR, _fuse_linear_bn_leaky_relu, leaky))
    return made.set_backend_pattern_configs(_linear_with(nn.Tanh, torch.tanh, tanh, _LINEAR))
