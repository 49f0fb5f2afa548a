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
    """Returns a convolution that computes the same as a convolution with a batch norm after it.

    Args:
        conv: The convolution, in evaluation mode. It is not changed.
        bn: The batch norm, in evaluation mode, with running statistics.
        transpose: Whether the convolution is transposed. Default: ``False``.

    Returns:
        A copy of ``conv`` with another weight and bias.

    Raises:
        AssertionError: A module is in training mode, or ``bn`` has no running statistics.

    Example:
        >>> conv, bn = torch.nn.Conv2d(3, 4, 2).eval(), torch.nn.BatchNorm2d(4).eval()
        >>> fused = torch.nn.utils.fuse_conv_bn_eval(conv, bn)
        >>> x = torch.ones(1, 3, 5, 5)
        >>> torch.allclose(fused(x), bn(conv(x)), atol=1e-5)
        True

    See also:
        `fuse_linear_bn_eval`.
    """
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
    """Returns the weight and bias of a convolution fused with a batch norm.

    Channel c of the weight is multiplied by ``bn_w[c] / sqrt(bn_rv[c] + bn_eps)``; the bias becomes
    ``(conv_b - bn_rm) * bn_w / sqrt(bn_rv + bn_eps) + bn_b``.

    Args:
        conv_w: Weight of the convolution.
        conv_b: Its bias, or ``None`` for zeros.
        bn_rm: Running mean of the batch norm.
        bn_rv: Running variance.
        bn_eps: Term added to the variance.
        bn_w: Weight, or ``None`` for ones.
        bn_b: Bias, or ``None`` for zeros.
        transpose: Whether the convolution is transposed. Default: ``False``.

    Returns:
        A tuple of two parameters, with the dtypes of the convolution's.

    Example:
        >>> one, zero = torch.ones(2), torch.zeros(2)
        >>> weight, bias = torch.nn.utils.fuse_conv_bn_weights(
        ...     torch.ones(2, 1, 1), None, one, one * 4, 0.0, one * 6, zero
        ... )
        >>> weight.detach().flatten(), bias.detach()
        (tensor([3., 3.]), tensor([-3., -3.]))

    See also:
        `fuse_conv_bn_eval`.
    """
    return _fold_batch_norm(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, 1 if transpose else 0)


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """Returns a `torch.nn.Linear` that computes the same as one with a batch norm after it.

    Args:
        linear: The layer, in evaluation mode. It is not changed.
        bn: The batch norm, in evaluation mode, with running statistics. It has as many features as the layer, or one.

    Returns:
        A copy of ``linear`` with another weight and bias.

    Raises:
        AssertionError: A module is in training mode, the numbers of features do not fit, or ``bn`` has no running
            statistics.

    Example:
        >>> linear, bn = torch.nn.Linear(3, 4).eval(), torch.nn.BatchNorm1d(4).eval()
        >>> fused = torch.nn.utils.fuse_linear_bn_eval(linear, bn)
        >>> x = torch.ones(2, 3)
        >>> torch.allclose(fused(x), bn(linear(x)), atol=1e-5)
        True

    See also:
        `fuse_conv_bn_eval`.
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
    """Returns the weight and bias of a `torch.nn.Linear` fused with a batch norm.

    The formulas are those of `fuse_conv_bn_weights`, with the rows of the weight as channels.

    Args:
        linear_w: Weight of the layer.
        linear_b: Its bias, or ``None`` for zeros.
        bn_rm: Running mean of the batch norm.
        bn_rv: Running variance.
        bn_eps: Term added to the variance.
        bn_w: Weight, or ``None`` for ones.
        bn_b: Bias, or ``None`` for zeros.

    Returns:
        A tuple of two parameters, with the dtypes of the layer's.

    Example:
        >>> one = torch.ones(1)
        >>> weight, bias = torch.nn.utils.fuse_linear_bn_weights(
        ...     torch.ones(1, 2), one, one * 2, one * 4, 0.0, one * 6, one
        ... )
        >>> weight.detach(), bias.detach()
        (tensor([[3., 3.]]), tensor([-2.]))

    See also:
        `fuse_linear_bn_eval`.
    """
    return _fold_batch_norm(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b)


__dir__ = make_module_dir(globals())
