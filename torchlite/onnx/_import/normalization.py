"""ONNX normalizations, softmax and dropout."""

from __future__ import annotations

import math
from typing import Any

import torchlite as torch
from torchlite import Tensor
from torchlite.nn import functional as F

from .._element_types import dtype_of
from .op_registry import Ints, Number, op, single_number
from .resource_limits import check_broadcast, check_elements, check_work


def _unsqueeze_channels(value: Tensor, x: Tensor) -> Tensor:
    return value.reshape(1, -1, *[1] * (x.ndim - 2))


def _batch_norm(
    x: Tensor, scale: Tensor, bias: Tensor, mean: Tensor, var: Tensor, epsilon: float, momentum: float,
    training: bool, outputs: int,
) -> Any:  # fmt: skip
    for part in (scale, bias, mean, var):
        if part.numel() not in (1, x.shape[1] if x.ndim > 1 else 1):
            raise ValueError(f"BatchNormalization: {list(part.shape)} for an input of {list(x.shape)}")
    if not training:
        if scale.dtype is x.dtype and mean.dtype is x.dtype and x.ndim > 1:
            out = F.batch_norm(x, mean, var, scale, bias, False, 0.0, epsilon)
        else:
            norm = (x - _unsqueeze_channels(mean, x)) * torch.rsqrt(_unsqueeze_channels(var, x) + epsilon)
            out = (norm * _unsqueeze_channels(scale, x) + _unsqueeze_channels(bias, x)).to(x.dtype)
        return out if outputs == 1 else (out, mean, var, mean, var)[:outputs]
    dims = [d for d in range(x.ndim) if d != 1]
    here, spread = x.mean(dims), x.var(dims, unbiased=False)
    out = (x - _unsqueeze_channels(here, x)) * torch.rsqrt(_unsqueeze_channels(spread, x) + epsilon)
    out = (out * _unsqueeze_channels(scale, x) + _unsqueeze_channels(bias, x)).to(x.dtype)
    new_mean, new_var = mean * momentum + here * (1 - momentum), var * momentum + spread * (1 - momentum)
    results = (out, new_mean, new_var, here, spread)
    return out if outputs == 1 else results[:outputs]


@op("BatchNormalization")
def batch_norm_opset6(
    x: Tensor, scale: Tensor, bias: Tensor, mean: Tensor, var: Tensor, *, epsilon: float = 1e-5, momentum: float = 0.9,
    spatial: int = 1, is_test: int | None = None, consumed_inputs: Any = None, outputs: int = 1,
) -> Any:  # fmt: skip
    training = not is_test if is_test is not None else outputs > 1
    if not spatial:
        check_broadcast("BatchNormalization", x, scale, bias, mean, var)
        norm = (x - mean) * torch.rsqrt(var + epsilon)
        return norm * scale + bias
    return _batch_norm(x, scale, bias, mean, var, epsilon, momentum, training and outputs > 1, outputs)


@op("BatchNormalization", since=14)
def batch_norm(
    x: Tensor, scale: Tensor, bias: Tensor, mean: Tensor, var: Tensor, *, epsilon: float = 1e-5, momentum: float = 0.9,
    training_mode: int = 0, outputs: int = 1,
) -> Any:  # fmt: skip
    return _batch_norm(x, scale, bias, mean, var, epsilon, momentum, bool(training_mode), outputs)


@op("InstanceNormalization")
def instance_norm(
    x: Tensor, scale: Tensor, bias: Tensor, *, epsilon: float = 1e-5, consumed_inputs: Any = None
) -> Tensor:
    return F.instance_norm(x, None, None, scale, bias, True, 0.0, epsilon)


def _normalize(x: Tensor, axis: int, epsilon: float, stash_type: int, centred: bool) -> tuple[Tensor, Tensor, Tensor]:
    axis %= x.ndim
    dims = list(range(axis, x.ndim))
    wide = x.to(dtype_of(stash_type))
    mean = wide.mean(dims, keepdim=True) if centred else wide
    apart = wide - mean if centred else wide
    scale = torch.rsqrt((apart * apart).mean(dims, keepdim=True) + epsilon)
    return (apart * scale).to(x.dtype), mean, scale


@op("LayerNormalization")
def layer_norm(
    x: Tensor, scale: Tensor, bias: Tensor | None = None, *, axis: int = -1, epsilon: float = 1e-5,
    stash_type: int = 1, outputs: int = 1,
) -> Any:  # fmt: skip
    sizes = list(x.shape[axis % x.ndim :])
    if outputs == 1 and list(scale.shape) == sizes and x.dtype is torch.float32:
        return F.layer_norm(x, sizes, scale, bias, epsilon)
    check_broadcast("LayerNormalization", x, scale, *([] if bias is None else [bias]))
    out, mean, inverse = _normalize(x, axis, epsilon, stash_type, True)
    out = out * scale if bias is None else out * scale + bias
    return out if outputs == 1 else (out, mean, inverse)[:outputs]


@op("RMSNormalization", "SimplifiedLayerNormalization")
def rms_norm(
    x: Tensor, scale: Tensor, *, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1, outputs: int = 1
) -> Any:
    check_broadcast("RMSNormalization", x, scale)
    out, _, inverse = _normalize(x, axis, epsilon, stash_type, False)
    return out * scale if outputs == 1 else (out * scale, inverse)


@op("GroupNormalization")
def group_norm_opset18(
    x: Tensor, scale: Tensor, bias: Tensor, *, epsilon: float = 1e-5, num_groups: int, stash_type: int = 1
) -> Tensor:
    parts = x.reshape(x.shape[0], num_groups, -1)
    check_broadcast("GroupNormalization", parts, scale.reshape(1, -1, 1), bias.reshape(1, -1, 1))
    out = _normalize(parts, 2, epsilon, stash_type, True)[0]
    return (out * scale.reshape(1, -1, 1) + bias.reshape(1, -1, 1)).reshape(x.shape)


@op("GroupNormalization", since=21)
def group_norm(
    x: Tensor, scale: Tensor, bias: Tensor, *, epsilon: float = 1e-5, num_groups: int, stash_type: int = 1
) -> Tensor:
    return F.group_norm(x, num_groups, scale, bias, epsilon)


@op("MeanVarianceNormalization")
def mean_variance_norm(x: Tensor, *, axes: Ints = None, across_channels: int | None = None,
                       normalize_variance: int = 1) -> Tensor:  # fmt: skip
    dims = axes or [0, 2, 3]
    if across_channels is not None:
        dims = [1, 2, 3] if across_channels else [2, 3]
    apart = x - x.mean(dims, keepdim=True)
    return apart / ((apart * apart).mean(dims, keepdim=True).sqrt() + 1e-9) if normalize_variance else apart


@op("LpNormalization")
def lp_norm(x: Tensor, *, axis: int = -1, p: int = 2) -> Tensor:
    size = x.abs().sum(axis, keepdim=True) if p == 1 else (x * x).sum(axis, keepdim=True).sqrt()
    return torch.where(size == 0, torch.zeros_like(x), x / torch.where(size == 0, torch.ones_like(size), size))


@op("LRN")
def lrn(x: Tensor, *, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0, size: int) -> Tensor:
    wide = x if x.dtype == torch.float64 else x.to(torch.float32)  # sums in narrower types would copy all windows
    flat = (wide * wide).reshape(x.shape[0], 1, x.shape[1], -1)
    before = (size - 1) // 2
    check_elements("LRN", flat.shape[0], x.shape[1] + max(size, 0) - 1, flat.shape[3])
    check_work("LRN", flat.numel() * max(size, 0))
    around = F.pad(flat, [0, 0, before, size - 1 - before]).unfold(2, size, 1).sum(-1).reshape(x.shape)
    return (wide / (bias + alpha / size * around).pow(beta)).to(x.dtype)


def _flatten_to_matrix(x: Tensor, axis: int) -> Tensor:
    axis %= x.ndim
    return x.reshape(math.prod(x.shape[:axis]), math.prod(x.shape[axis:]))


@op("Softmax")
def softmax_opset1(x: Tensor, *, axis: int = 1) -> Tensor:
    return torch.softmax(_flatten_to_matrix(x, axis), 1).reshape(x.shape)


@op("Softmax", since=13)
def softmax(x: Tensor, *, axis: int = -1) -> Tensor:
    return torch.softmax(x, axis)


@op("LogSoftmax")
def log_softmax_opset1(x: Tensor, *, axis: int = 1) -> Tensor:
    return torch.log_softmax(_flatten_to_matrix(x, axis), 1).reshape(x.shape)


@op("LogSoftmax", since=13)
def log_softmax(x: Tensor, *, axis: int = -1) -> Tensor:
    return torch.log_softmax(x, axis)


@op("Hardmax")
def hardmax_opset1(x: Tensor, *, axis: int = 1) -> Tensor:
    return hardmax(_flatten_to_matrix(x, axis), axis=1).reshape(x.shape)


@op("Hardmax", since=13)
def hardmax(x: Tensor, *, axis: int = -1) -> Tensor:
    first = torch.argmax(x, axis, keepdim=True)
    return torch.zeros_like(x).scatter(axis, first, torch.ones_like(first, dtype=x.dtype))


def _dropout(x: Tensor, ratio: float, training: bool, seed: int | None, outputs: int) -> Any:
    if not training or ratio == 0:
        return x if outputs == 1 else (x, torch.ones(x.shape, dtype=torch.bool, device=x.device))
    if seed is None:
        noise = torch.rand(x.shape, device=x.device)
    else:
        noise = torch.rand(x.shape, generator=torch.Generator().manual_seed(seed)).to(x.device)
    kept = noise >= ratio
    out = torch.where(kept, x / (1 - ratio), torch.zeros_like(x)) if ratio < 1 else torch.zeros_like(x)
    return out if outputs == 1 else (out, kept)


@op("Dropout")
def dropout_opset6(
    x: Tensor, *, ratio: float = 0.5, is_test: int = 1, consumed_inputs: Any = None, outputs: int = 1
) -> Any:
    out = _dropout(x, ratio, not is_test, None, outputs)
    return out if outputs == 1 else (out[0], out[1].to(x.dtype))


@op("Dropout", since=10)
def dropout_opset10(x: Tensor, *, ratio: float = 0.5, outputs: int = 1) -> Any:
    return _dropout(x, ratio, False, None, outputs)


@op("Dropout", since=12)
def dropout(
    x: Tensor, ratio: Number = None, training_mode: Number = None, *, seed: int | None = None, outputs: int = 1
) -> Any:
    part, training = single_number(ratio), single_number(training_mode)
    return _dropout(x, 0.5 if part is None else part, bool(training), seed, outputs)
