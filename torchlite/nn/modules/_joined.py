"""Modules in a row that are computed in one op where nothing is recorded: a convolution with the batch norm behind it,
and the limits behind that.

What is joined gives what its modules would one after the other: only modules of these very classes are, without hooks,
in evaluation mode, on plain tensors.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import torchlite as torch
from torchlite._dispatch import F
from torchlite.nn.parameter import Parameter

from . import module as base
from .activation import Hardtanh, ReLU, ReLU6
from .batchnorm import BatchNorm1d, BatchNorm2d, BatchNorm3d
from .conv import Conv1d, Conv2d, Conv3d

_NORMS = {BatchNorm1d: (2, 3), BatchNorm2d: (4,), BatchNorm3d: (5,)}
_CONVOLUTIONS = {Conv1d: BatchNorm1d, Conv2d: BatchNorm2d, Conv3d: BatchNorm3d}
_LIMITS: dict[type, Any] = {
    ReLU: lambda module: (0.0, math.inf),
    ReLU6: lambda module: (module.min_val, module.max_val),
    Hardtanh: lambda module: (module.min_val, module.max_val),
}
_KINDS: tuple[Any, ...] = (*_NORMS, *_CONVOLUTIONS, *_LIMITS)
_FORWARDS: dict[Any, Any] = {kind: kind.forward for kind in _KINDS}
_FIRST = {*_NORMS, *_CONVOLUTIONS}
_CALL = base.Module.__call__
_HOOKS = "_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks"
_FLOATS = torch.float32, torch.float64


def through(modules: Iterable, x: Any) -> Any:
    """`x` through modules, one after the other."""
    if _FIRST.isdisjoint(map(type, modules)):
        for module in modules:
            x = module(x)
        return x
    waiting = list(modules)
    waiting.reverse()
    while waiting:
        module = waiting.pop()
        kind = type(module)
        if kind in _CONVOLUTIONS and waiting and type(waiting[-1]) is _CONVOLUTIONS[kind]:
            x = _convolved(module, waiting, x)
        elif kind in _NORMS and _is_plain(module) and _takes(module, x) and x.shape[1] == module.num_features:
            x = F._batch_norm_eval(x, *_statistics(module), module.eps, *_limits(waiting))
        else:
            x = module(x)
    return x


def _convolved(module: Any, waiting: list, x: Any) -> Any:
    norm = waiting[-1]
    if not (_is_plain(module) and _is_plain(norm) and module.padding_mode == "zeros"):
        return module(x)
    weight, bias, padding = module.weight, module.bias, module.padding
    fits = (
        padding.__class__ is tuple
        and _are_plain(x, weight, bias)
        and x.ndim == weight.ndim
        and weight.shape[0] == norm.num_features
        and _takes(norm, x)
    )
    if not fits:
        return module(x)
    waiting.pop()
    return F._fused_conv_bn(
        x, weight, bias, module.stride, padding, module.dilation, False, module.output_padding, module.groups,
        *_statistics(norm), norm.eps, *_limits(waiting),
    )  # fmt: skip


def _limits(waiting: list) -> tuple[float, float]:
    """The limits of the module that comes next, which is done with then."""
    if waiting and type(waiting[-1]) in _LIMITS and _is_plain(waiting[-1]):
        module = waiting.pop()
        least, most = _LIMITS[type(module)](module)
        return float(least), float(most)
    return -math.inf, math.inf


def _is_plain(module: Any) -> bool:
    """Whether a call of the module is its class's `forward` and no more."""
    own, kind = module.__dict__, type(module)
    return (
        not any(own[name] for name in _HOOKS)
        and "forward" not in own
        and "_compiled_call_impl" not in own
        and kind.forward is _FORWARDS[kind]
        and kind.__call__ is _CALL
        and not base._global_forward_hooks
        and not base._global_forward_pre_hooks
        and not base._global_backward_hooks
        and not base._global_backward_pre_hooks
    )


def _statistics(norm: Any) -> tuple:
    return norm.weight, norm.bias, norm.running_mean, norm.running_var


def _takes(norm: Any, x: Any) -> bool:
    """Whether a batch norm is one of its running statistics, and fits the tensor."""
    values = _statistics(norm)
    return (
        not norm.training
        and values[2] is not None
        and values[3] is not None
        and _are_plain(x, *values)
        and x.dtype in _FLOATS
        and x.ndim in _NORMS[type(norm)]
        and all(v is None or v.shape[0] == norm.num_features for v in values)
        and norm.eps >= 0
    )


def _are_plain(x: Any, *others: Any) -> bool:
    """Whether all are plain tensors of one dtype and device."""
    if x.__class__ is not torch.Tensor and x.__class__ is not Parameter:
        return False
    dtype, device = x.dtype, x.device
    for t in others:
        if t is not None:
            plain = t.__class__ is torch.Tensor or t.__class__ is Parameter
            if not plain or t.dtype is not dtype or t.device != device:
                return False
    return True
