"""Fusion of the modules of an `nn.Sequential` where no gradients are recorded: convolution, batch norm, activation.

Only modules of exactly these classes fuse, without hooks, in evaluation mode, on plain tensors. The arithmetic and the
conditions are those of `torchlite._ops.fused_inference`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torchlite as torch
from torchlite._dispatch import F
from torchlite._ops.fused_inference import NO_CLAMP, can_fold_batch_norm, can_fuse_dtypes, clamp_range_of_activation
from torchlite.nn.parameter import Parameter

from . import module as base
from .activation import Hardtanh, ReLU, ReLU6
from .batchnorm import BatchNorm1d, BatchNorm2d, BatchNorm3d
from .conv import Conv1d, Conv2d, Conv3d

_NORMS = {BatchNorm1d: (2, 3), BatchNorm2d: (4,), BatchNorm3d: (5,)}
BATCH_NORM_OF: dict[type, type] = {Conv1d: BatchNorm1d, Conv2d: BatchNorm2d, Conv3d: BatchNorm3d}
_ACTIVATIONS = (ReLU, ReLU6, Hardtanh)
_FUSIBLE: tuple[Any, ...] = (*_NORMS, *BATCH_NORM_OF, *_ACTIVATIONS)
_FORWARDS: dict[Any, Any] = {kind: kind.forward for kind in _FUSIBLE}
_CHAIN_HEADS = {*_NORMS, *BATCH_NORM_OF}
_MODULE_CALL = base.Module.__call__
_HOOK_ATTRIBUTES = "_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks"


def run_modules(modules: Iterable, x: Any) -> Any:
    """Apply modules to `x` in sequence."""
    if _CHAIN_HEADS.isdisjoint(map(type, modules)):
        for module in modules:
            x = module(x)
        return x
    waiting = list(modules)
    waiting.reverse()
    while waiting:
        module = waiting.pop()
        kind = type(module)
        if kind in BATCH_NORM_OF and waiting and type(waiting[-1]) is BATCH_NORM_OF[kind]:
            x = _run_conv(module, waiting, x)
        elif (
            kind in _NORMS
            and _has_plain_call(module)
            and _accepts_input(module, x)
            and x.shape[1] == module.num_features
        ):
            x = F._batch_norm_eval(x, *_uses_running_stats(module), module.eps, *_take_clamp_limits(waiting))
        else:
            x = module(x)
    return x


def _run_conv(module: Any, waiting: list, x: Any) -> Any:
    norm = waiting[-1]
    if not (_has_plain_call(module) and _has_plain_call(norm) and module.padding_mode == "zeros"):
        return module(x)
    weight, bias, padding = module.weight, module.bias, module.padding
    fits = (
        padding.__class__ is tuple
        and _are_plain_tensors(x, weight, bias)
        and x.ndim == weight.ndim
        and weight.shape[0] == norm.num_features
        and _accepts_input(norm, x)
    )
    if not fits:
        return module(x)
    waiting.pop()
    return F._fused_conv_bn(
        x, weight, bias, module.stride, padding, module.dilation, False, module.output_padding, module.groups,
        *_uses_running_stats(norm), norm.eps, *_take_clamp_limits(waiting),
    )  # fmt: skip


def _take_clamp_limits(waiting: list) -> tuple[float, float]:
    """Remove the next activation from `waiting` and return its bounds."""
    if waiting and type(waiting[-1]) in _ACTIVATIONS and _has_plain_call(waiting[-1]):
        module = waiting[-1]
        found = (
            clamp_range_of_activation("relu")
            if type(module) is ReLU
            else clamp_range_of_activation("hardtanh", (module.min_val, module.max_val))
        )
        if found is not None:
            waiting.pop()
            return found
    return NO_CLAMP


def _has_plain_call(module: Any) -> bool:
    """True if a call of the module only runs its class's `forward`."""
    own, kind = module.__dict__, type(module)
    return (
        not any(own[name] for name in _HOOK_ATTRIBUTES)
        and "forward" not in own
        and "_compiled_call_impl" not in own
        and kind.forward is _FORWARDS[kind]
        and kind.__call__ is _MODULE_CALL
        and not base._global_forward_hooks
        and not base._global_forward_pre_hooks
        and not base._global_backward_hooks
        and not base._global_backward_pre_hooks
    )


def _uses_running_stats(norm: Any) -> tuple:
    return norm.weight, norm.bias, norm.running_mean, norm.running_var


def _accepts_input(norm: Any, x: Any) -> bool:
    """True if a batch norm uses its running statistics and fits the tensor."""
    values = _uses_running_stats(norm)
    return (
        can_fold_batch_norm(norm.training, norm.running_mean, norm.running_var)
        and _are_plain_tensors(x, *values)
        and can_fuse_dtypes([x.dtype])
        and x.ndim in _NORMS[type(norm)]
        and all(v is None or v.shape[0] == norm.num_features for v in values)
        and norm.eps >= 0
    )


def _are_plain_tensors(x: Any, *others: Any) -> bool:
    """True if all are plain tensors of one dtype and device."""
    if x.__class__ is not torch.Tensor and x.__class__ is not Parameter:
        return False
    dtype, device = x.dtype, x.device
    for t in others:
        if t is not None:
            plain = t.__class__ is torch.Tensor or t.__class__ is Parameter
            if not plain or t.dtype is not dtype or t.device != device:
                return False
    return True
