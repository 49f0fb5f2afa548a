"""Batch norm by running statistics, alone or behind a convolution, and limits of what comes out of it: one pass each.

They are for inference: nothing is recorded of them. `nn.Sequential` joins its modules into them, and `batch_norm` asks
for one where no gradient is wanted. What observes ops (profilers, modes, transforms) sees the ops that are joined.
"""

from __future__ import annotations

import math

from torchlite._dispatch import NONDIFF, memory_layout, op
from torchlite._dispatch.dispatch_state import GLOBALS, MODE

from .conv import convolution_meta


def nothing_recorded() -> bool:
    """Whether this thread records no gradients, and nothing observes ops."""
    return not MODE.grad and not GLOBALS["INTERCEPTORS"]


def _batch_norm_eval(F, input, weight, bias, mean, var, eps, least, most):
    scale = F.rsqrt(F.add(var, eps))
    if weight is not None:
        scale = F.mul(scale, weight)
    shift = F.neg(F.mul(mean, scale))
    if bias is not None:
        shift = F.add(shift, bias)
    out = F._channel_affine(input, scale, shift)
    if least > -math.inf:
        out = F.clamp_min(out, least)
    return F.clamp_max(out, most) if most < math.inf else out


op(
    "_batch_norm_eval(Tensor input, Tensor? weight, Tensor? bias, Tensor mean, Tensor var, eps, least, most)",
    where="",
    tags=NONDIFF,
    composite=_batch_norm_eval,
    meta=lambda input: (input.shape, input.dtype),
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
    return convolution_meta(input, filters, offset, stride, padding, dilation, transposed, output_padding, groups)


op(
    "_fused_conv_bn(Tensor input, Tensor filters, Tensor? offset, stride, padding, dilation, transposed, "
    "output_padding, groups, Tensor? weight, Tensor? bias, Tensor mean, Tensor var, eps, least, most)",
    where="",
    tags=NONDIFF,
    composite=_fused_conv_bn,
    meta=_meta,
    doc="`convolution` of `input` with `filters`, to which `offset` is added, and `_batch_norm_eval` of that.",
    layout=memory_layout.convolution,
)
