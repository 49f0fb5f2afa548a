"""ATen's native normalization ops: results with saved statistics, and their backward ops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torchlite as torch

from . import backward_ops


def _batch_norm(
    input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool, momentum: float,
    eps: float,
) -> Any:  # fmt: skip
    """Return batch norm and, in training, the batch's mean and reciprocal standard deviation."""
    return tuple(torch.native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps))


def _batch_norm_training(
    input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, momentum: float, eps: float
) -> Any:
    found = _batch_norm(input, weight, bias, running_mean, running_var, True, momentum, eps)
    return (*found, torch.empty(0, dtype=torch.uint8, device=input.device))


def _batch_norm_inference(
    input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, momentum: float, eps: float
) -> Any:
    return _batch_norm(input, weight, bias, running_mean, running_var, False, momentum, eps)


def _batch_norm_functional(
    input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool, momentum: float,
    eps: float,
) -> Any:  # fmt: skip
    mean, var = running_mean.clone(), running_var.clone()
    return (*_batch_norm(input, weight, bias, mean, var, training, momentum, eps), mean, var)


def _batch_norm_functional_training(
    input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, momentum: float, eps: float
) -> Any:
    mean, var = running_mean.clone(), running_var.clone()
    return (*_batch_norm_training(input, weight, bias, mean, var, momentum, eps), mean, var)


def _batch_norm_backward(
    grad_out: Any, input: Any, weight: Any, running_mean: Any, running_var: Any, save_mean: Any, save_invstd: Any,
    train: bool, eps: float, output_mask: Any,
) -> Any:  # fmt: skip
    like = input.new_ones(input.shape[1])

    def run(x: Any, w: Any, b: Any) -> Any:
        mean, var = (None, None) if train else (running_mean, running_var)
        return torch.batch_norm(x, w, b, mean, var, train, 0.0, eps, False)

    inputs = [input, like if weight is None else weight, torch.zeros_like(like)]
    return tuple(backward_ops.gradients_of(run, inputs, grad_out, output_mask))


def _layer_norm(input: Any, normalized_shape: Any, weight: Any, bias: Any, eps: float) -> Any:
    return tuple(torch.native_layer_norm(input, list(normalized_shape), weight, bias, eps))


def _normalized_rows_backward(grad: Any, rows: Any, mean: Any, rstd: Any) -> tuple[Any, Any]:
    """Return the gradient of row normalization, and the normalized rows."""
    normalized = (rows - mean) * rstd
    centred = grad - grad.mean(-1, True) - normalized * (grad * normalized).mean(-1, True)
    return centred * rstd, normalized


def _layer_norm_backward(
    grad_out: Any, input: Any, normalized_shape: Any, mean: Any, rstd: Any, weight: Any, bias: Any, output_mask: Any
) -> Any:
    n = len(normalized_shape)
    lead = tuple(input.shape[: input.ndim - n])
    scaled = grad_out if weight is None else grad_out * weight
    scaled, rows = scaled.reshape(*lead, -1), input.reshape(*lead, -1)
    of_input, normalized = _normalized_rows_backward(scaled, rows, mean.reshape(*lead, 1), rstd.reshape(*lead, 1))
    leading = tuple(range(len(lead)))

    def sum_leading_dims(x: Any) -> Any:
        return x.sum(leading) if leading else x

    return (
        of_input.reshape(input.shape).to(input.dtype) if output_mask[0] else None,
        sum_leading_dims(grad_out * normalized.reshape(input.shape)) if output_mask[1] and weight is not None else None,
        sum_leading_dims(grad_out) if output_mask[2] and bias is not None else None,
    )


def _group_norm(input: Any, weight: Any, bias: Any, N: int, C: int, HxW: int, group: int, eps: float) -> Any:
    return tuple(torch.native_group_norm(input, weight, bias, N, C, HxW, group, eps))


def _group_norm_backward(
    grad_out: Any, input: Any, mean: Any, rstd: Any, weight: Any, N: int, C: int, HxW: int, group: int,
    output_mask: Any,
) -> Any:  # fmt: skip
    channels = (N, C, HxW)
    scaled = grad_out.reshape(channels) if weight is None else grad_out.reshape(channels) * weight.view(1, C, 1)
    of_input, normalized = _normalized_rows_backward(
        scaled.reshape(N, group, -1), input.reshape(N, group, -1), mean.reshape(N, group, 1), rstd.reshape(N, group, 1)
    )
    return (
        of_input.reshape(input.shape) if output_mask[0] else None,
        (grad_out.reshape(channels) * normalized.reshape(channels)).sum((0, 2)) if output_mask[1] else None,
        grad_out.reshape(channels).sum((0, 2)) if output_mask[2] else None,
    )


def _fused_rms_norm(input: Any, normalized_shape: Any, weight: Any, eps: Any) -> Any:
    dims = tuple(range(-len(normalized_shape), 0))
    eps = torch.finfo(input.dtype).eps if eps is None else eps
    return torch.rms_norm(input, list(normalized_shape), weight, eps), (input.square().mean(dims, True) + eps).rsqrt()


def _batch_norm_impl(
    input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool, momentum: float,
    eps: float, cudnn_enabled: bool,
) -> Any:  # fmt: skip
    found = _batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)
    return (*found, torch.empty(0, dtype=torch.uint8, device=input.device), 0)


ADAPTERS: dict[str, Callable] = {
    "native_batch_norm": _batch_norm, "_native_batch_norm_legit": _batch_norm,
    "_native_batch_norm_legit.no_stats": lambda input, weight, bias, training, momentum, eps: _batch_norm(
        input, weight, bias, None, None, training, momentum, eps
    ),
    "_native_batch_norm_legit_no_training": _batch_norm_inference,
    "_native_batch_norm_legit_functional": _batch_norm_functional,
    "_batch_norm_with_update": _batch_norm_training,
    "_batch_norm_with_update_functional": _batch_norm_functional_training,
    "_batch_norm_no_update": lambda input, weight, bias, running_mean, running_var, momentum, eps: (
        *_batch_norm_inference(input, weight, bias, running_mean, running_var, momentum, eps),
        torch.empty(0, dtype=torch.uint8, device=input.device),
    ),
    "cudnn_batch_norm": lambda *arguments: _batch_norm_impl(*arguments, cudnn_enabled=True)[:4],
    "miopen_batch_norm": _batch_norm,
    "_batch_norm_impl_index": _batch_norm_impl, "native_batch_norm_backward": _batch_norm_backward,
    "native_layer_norm": _layer_norm, "native_layer_norm_backward": _layer_norm_backward,
    "native_group_norm": _group_norm, "native_group_norm_backward": _group_norm_backward,
    "_fused_rms_norm": _fused_rms_norm,
}  # fmt: skip
