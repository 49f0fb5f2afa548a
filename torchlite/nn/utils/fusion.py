"""Fusion of a batch norm in evaluation mode into the preceding layer."""

from __future__ import annotations

import copy
from typing import Any

import torchlite as torch
from torchlite._dispatch import F
from torchlite._ops.fused_inference import fold_batch_norm
from torchlite._settings.module_dir import make_module_dir

__all__ = ["fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights"]


def _check_eval(first, second):
    if first.training or second.training:
        raise AssertionError("Fusion only for eval!")


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """Return a convolution equal to `conv` followed by `bn`; both must be in evaluation mode."""
    _check_eval(conv, bn)
    fused = copy.deepcopy(conv)
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("bn.running_mean and bn.running_var must not be None")
    fused.weight, fused.bias = fuse_conv_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias, transpose
    )
    return fused


def _fold_batch_norm(weight, bias, mean, var, eps, scale, shift, channel_dim=0):
    fused = fold_batch_norm(F, weight, bias, scale, shift, mean, var, eps, channel_dim)
    like = weight, mean if bias is None else bias
    dtypes = weight.dtype, weight.dtype if bias is None else bias.dtype
    return tuple(
        torch.nn.Parameter(new.detach().to(dtype), old.requires_grad)
        for new, old, dtype in zip(fused, like, dtypes, strict=True)
    )


def fuse_conv_bn_weights(
    conv_w: Any, conv_b: Any, bn_rm: Any, bn_rv: Any, bn_eps: Any, bn_w: Any, bn_b: Any, transpose: bool = False
) -> Any:
    """Weight and bias of the fused convolution."""
    return _fold_batch_norm(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, 1 if transpose else 0)


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """Return a Linear equal to `linear` followed by `bn`; both must be in evaluation mode. bn has one feature, or as
    many as the layer.
    """
    _check_eval(linear, bn)
    fused = copy.deepcopy(linear)
    if linear.out_features != bn.num_features and bn.num_features != 1:
        raise AssertionError("To fuse, linear.out_features == bn.num_features or bn.num_features == 1")
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("bn.running_mean and bn.running_var must not be None")
    fused.weight, fused.bias = fuse_linear_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
    )
    return fused


def fuse_linear_bn_weights(
    linear_w: Any, linear_b: Any, bn_rm: Any, bn_rv: Any, bn_eps: Any, bn_w: Any, bn_b: Any
) -> Any:
    """Weight and bias of the fused Linear."""
    return _fold_batch_norm(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b)


__dir__ = make_module_dir(globals())
