"""Synchronised batch norm: statistics over the inputs of all processes."""

from __future__ import annotations

from typing import Any

import torchlite as torch
from torchlite.autograd import Function

from . import distributed_c10d as dist


def sync_batch_norm_group(given: Any) -> Any:
    """Return the group for SyncBatchNorm's statistics; None for one process."""
    if not dist.is_initialized():
        return None
    group: Any = given or dist.group.WORLD
    return group if group.size() > 1 else None


def sync_batch_norm(
    input: Any, weight: Any, bias: Any, mean: Any, var: Any, eps: float, momentum: float, group: Any
) -> Any:
    """Normalise `input` by the mean and variance over the group; update running statistics in place."""
    return _SyncBatchNorm.apply(input, weight, bias, mean, var, eps, momentum, group)


class _SyncBatchNorm(Function):
    @staticmethod
    def forward(
        ctx: Any,
        input: Any,
        weight: Any,
        bias: Any,
        running_mean: Any,
        running_var: Any,
        eps: float,
        momentum: float,
        group: Any,
    ) -> Any:
        dims, shape = [0, *range(2, input.ndim)], [1, -1, *[1] * (input.ndim - 2)]
        # Sums are accumulated in float32 at least.
        x = input.float() if input.dtype.itemsize < 4 else input
        channels, count = x.shape[1], x.numel() // max(x.shape[1], 1)
        if count:
            var, mean = torch.var_mean(x, dims, correction=0)
        else:  # this process has no inputs, and the others wait for it
            var = mean = x.new_zeros(channels)
        mine = torch.cat([mean, var, mean.new_full((1,), float(count))])
        all_ = [torch.empty_like(mine) for _ in range(group.size())]
        dist.all_gather(all_, mine, group=group)
        gathered = torch.stack(all_)
        counts = gathered[:, -1:]
        total = counts.sum()
        if total.item() <= 1:
            raise ValueError(
                f"Expected more than 1 value per channel when training, got input size {list(input.shape)}"
            )
        means, variances = gathered[:, :channels], gathered[:, channels:-1]
        mean = (means * counts).sum(0) / total
        var = ((variances + (means - mean) ** 2) * counts).sum(0) / total
        if running_mean is not None:
            unbiased = var * (total / (total - 1))
            running_mean.mul_(1 - momentum).add_((mean * momentum).to(running_mean.dtype))
            running_var.mul_(1 - momentum).add_((unbiased * momentum).to(running_var.dtype))
        invstd = (var + eps).rsqrt()
        normal = (x - mean.view(shape)) * invstd.view(shape)
        ctx.save_for_backward(input, weight, mean, invstd, total)
        ctx.group = group
        if weight is not None:
            normal = normal * weight.view(shape)
        if bias is not None:
            normal = normal + bias.view(shape)
        return normal.to(input.dtype)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        input, weight, mean, invstd, total = ctx.saved_tensors
        dims, shape = [0, *range(2, input.ndim)], [1, -1, *[1] * (input.ndim - 2)]
        g = grad.float() if grad.dtype.itemsize < 4 else grad
        normal = (input.to(g.dtype) - mean.view(shape)) * invstd.view(shape)
        sums = torch.cat([g.sum(dims), (g * normal).sum(dims)])
        channels = g.shape[1]
        grad_bias, grad_weight = sums[:channels].clone(), sums[channels:].clone()
        grad_input = None
        if ctx.needs_input_grad[0]:
            dist.all_reduce(sums, group=ctx.group)
            sums = sums / total
            scale = invstd if weight is None else invstd * weight.to(g.dtype)
            middle = g - sums[:channels].view(shape) - normal * sums[channels:].view(shape)
            grad_input = (middle * scale.view(shape)).to(input.dtype)
        of_weight = grad_weight.to(weight.dtype) if weight is not None and ctx.needs_input_grad[1] else None
        of_bias = grad_bias.to(grad.dtype if weight is None else weight.dtype) if ctx.needs_input_grad[2] else None
        return grad_input, of_weight, of_bias, None, None, None, None, None
