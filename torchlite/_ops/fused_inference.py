"""Fusion of convolution, batch norm and activation for inference: the arithmetic, its conditions, and the fused ops.

A batch norm with running statistics is an affine map per channel (`batch_norm_affine`). It folds into the weights of
the layer before it (`fold_batch_norm`), or runs in the fused ops `_batch_norm_eval` and `_fused_conv_bn`. An activation
that clamps its input (`clamp_range_of_activation`) becomes the bounds of such an op.

`nn.Sequential`, `torch.compile`, `torch.jit.freeze`, `torch.fx.experimental.optimization.fuse` and
`torch.nn.utils.fusion` all use this module. The fused ops record no gradients. Profilers, modes and transforms see the
unfused ops.
"""

from __future__ import annotations

import math
from typing import Any

from torchlite._dispatch import NONDIFF, memory_layout, op
from torchlite._dispatch.dispatch_state import GLOBALS, MODE

from .conv import convolution_shape_fn


def is_inference_unobserved() -> bool:
    """True if this thread records no gradients, and nothing observes ops."""
    return not MODE.grad and not GLOBALS["INTERCEPTORS"]


def batch_norm_affine(F: Any, weight: Any, bias: Any, mean: Any, var: Any, eps: float, offset: Any = None) -> tuple:
    """Scale and shift per channel: the batch norm of `x + offset` is `x * scale + shift`."""
    scale = F.rsqrt(F.add(var, eps))
    if weight is not None:
        scale = F.mul(scale, weight)
    shift = F.mul(F.neg(mean) if offset is None else F.sub(offset, mean), scale)
    return scale, shift if bias is None else F.add(shift, bias)


def fold_batch_norm(
    F: Any, filters: Any, offset: Any, weight: Any, bias: Any, mean: Any, var: Any, eps: float, channel_dim: int = 0
) -> tuple:
    """Weight and bias of a layer that computes the layer with `filters` and `offset`, then the batch norm.

    channel_dim: the dimension of the output channels in `filters`, 1 for a transposed convolution.
    """
    scale, shift = batch_norm_affine(F, weight, bias, mean, var, eps, offset)
    shape = [1] * filters.ndim
    shape[channel_dim] = -1
    return F.mul(filters, F.reshape(scale, tuple(shape))), shift


def can_fold_batch_norm(training: Any, mean: Any, var: Any, transposed: bool = False, groups: Any = 1) -> bool:
    """True if a batch norm folds into the weights of the convolution before it. The output channels of a transposed
    convolution with several groups are not one dimension of its weights.
    """
    return training is False and mean is not None and var is not None and not (transposed and groups != 1)


def can_fuse_dtypes(dtypes: Any) -> bool:
    """True if the fused ops take arrays of these dtypes (torchlite's or NumPy's): one dtype, float32 or float64."""
    first, *others = dtypes
    return first.name in ("float32", "float64") and all(dtype == first for dtype in others)


NO_CLAMP = (-math.inf, math.inf)


def clamp_range_of_activation(name: str, args: Any = ()) -> tuple[float, float] | None:
    """Lower and upper bound of an activation that clamps its input, by the op's name and its arguments after the input;
    None for other ops.
    """
    if any(value.__class__ not in (int, float) for value in args):
        return None
    if name == "relu":
        return 0.0, math.inf
    if name == "relu6":
        return 0.0, 6.0
    if name == "hardtanh" and len(args) == 2 and args[0] <= args[1]:  # and no NaN
        return float(args[0]), float(args[1])
    return None


def _batch_norm_eval(F, input, weight, bias, mean, var, eps, least, most):
    out = F._channel_affine(input, *batch_norm_affine(F, weight, bias, mean, var, eps))
    if least > -math.inf:
        out = F.clamp_min(out, least)
    return F.clamp_max(out, most) if most < math.inf else out


op(
    "_batch_norm_eval(Tensor input, Tensor? weight, Tensor? bias, Tensor mean, Tensor var, eps, least, most)",
    where="",
    tags=NONDIFF,
    composite=_batch_norm_eval,
    shape_fn=lambda input: (input.shape, input.dtype),
    doc="Batch norm by given statistics, limited to `least` and `most`. All tensors have one dtype.",
    layout=memory_layout.preserve_channels_last,
)


def _fused_conv_bn(
    F, input, filters, offset, stride, padding, dilation, transposed, output_padding, groups, weight, bias, mean, var,
    eps, least, most,
):  # fmt: skip
    out = F.convolution(input, filters, offset, stride, padding, dilation, transposed, output_padding, groups)
    return F._batch_norm_eval(out, weight, bias, mean, var, eps, least, most)


def _meta(input, filters, offset, stride, padding, dilation, transposed, output_padding, groups):
    return convolution_shape_fn(input, filters, offset, stride, padding, dilation, transposed, output_padding, groups)


op(
    "_fused_conv_bn(Tensor input, Tensor filters, Tensor? offset, stride, padding, dilation, transposed, "
    "output_padding, groups, Tensor? weight, Tensor? bias, Tensor mean, Tensor var, eps, least, most)",
    where="",
    tags=NONDIFF,
    composite=_fused_conv_bn,
    shape_fn=_meta,
    doc="`convolution` of `input` with `filters`, to which `offset` is added, and `_batch_norm_eval` of that.",
    layout=memory_layout.convolution,
)
