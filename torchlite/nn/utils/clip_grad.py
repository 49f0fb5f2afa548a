"""Gradient clipping by norm and by value."""

from __future__ import annotations

import math
import types
import warnings
from typing import TYPE_CHECKING, Any

import torchlite as torch
from torchlite._ops import multi_tensor_clip
from torchlite._settings.module_dir import make_module_dir

if TYPE_CHECKING:
    from torchlite import Tensor

__all__ = ["clip_grad_norm", "clip_grad_norm_", "clip_grad_value_"]


def _collect_gradients(parameters):
    if isinstance(parameters, torch.Tensor):
        parameters = [parameters]
    elif isinstance(parameters, types.GeneratorType):
        parameters = list(parameters)
        if not parameters:
            warnings.warn("`parameters` is an empty generator, no gradient clipping will occur.", stacklevel=4)
    return [parameter.grad for parameter in parameters if parameter.grad is not None]


def get_total_norm(
    tensors: Any, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: bool | None = None
) -> Tensor:
    """Return the norm of all `tensors` (one tensor or several) as one vector, a 0-d tensor.

    foreach: False computes one norm per tensor; None and True use one call for all tensors where the backend has one.
    """
    tensors = [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)
    norm_type = float(norm_type)
    if not tensors:
        return torch.tensor(0.0)
    with torch.no_grad():
        total = multi_tensor_clip.norm_of_all(tensors) if norm_type == 2 and foreach is not False else None
        if total is None:
            device = tensors[0].device
            norms = [torch.linalg.vector_norm(tensor, norm_type) for tensor in tensors]
            total = torch.linalg.vector_norm(torch.stack([norm.to(device) for norm in norms]), norm_type)
    if error_if_nonfinite and not math.isfinite(total.item()):
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it cannot be "
            "clipped. To disable this error and scale the gradients by the non-finite norm anyway, set "
            "`error_if_nonfinite=False`"
        )
    return total


def clip_grads_with_norm_(parameters: Any, max_norm: float, total_norm: Tensor, foreach: bool | None = None) -> None:
    """Scale the gradients of `parameters` by `max_norm / (total_norm + 1e-6)`, at most 1, in place.

    foreach: False scales one tensor at a time; None and True use one call for all where the backend has one.
    """
    with torch.no_grad():
        grads = _collect_gradients(parameters)
        if not grads:
            return
        factor = torch.clamp(float(max_norm) / (total_norm + 1e-6), max=1.0)
        if foreach is not False and multi_tensor_clip.scale_all(grads, factor):
            return
        for grad in grads:
            grad.mul_(factor.to(grad.device))


def clip_grad_norm_(
    parameters: Any,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scale the gradients of `parameters` in place so that their total norm is at most `max_norm`.

    Returns the norm before clipping, a 0-d tensor. norm_type: the p of the norm, or inf. Raises RuntimeError for a
    non-finite norm if `error_if_nonfinite`. foreach: False handles one tensor at a time; None and True use one call for
    all tensors where the backend has one.
    """
    if not isinstance(parameters, torch.Tensor):
        is_generator = isinstance(parameters, types.GeneratorType)
        parameters = list(parameters)
        if is_generator and not parameters:
            warnings.warn("`parameters` is an empty generator, no gradient clipping will occur.", stacklevel=2)
    total = get_total_norm(_collect_gradients(parameters), norm_type, error_if_nonfinite, foreach)
    clip_grads_with_norm_(parameters, max_norm, total, foreach)
    return total


def clip_grad_norm(
    parameters: Any,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Any:
    """Deprecated name of `clip_grad_norm_`."""
    warnings.warn(
        "`torch.nn.utils.clip_grad_norm` is now deprecated in favor of `torch.nn.utils.clip_grad_norm_`.",
        FutureWarning,
        stacklevel=2,
    )
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


def clip_grad_value_(parameters: Any, clip_value: float, foreach: bool | None = None) -> None:
    """Clamp every gradient element to [-clip_value, clip_value], in place.

    foreach: False clamps one tensor at a time; None and True use one call for all where the backend has one.
    """
    clip_value = float(clip_value)
    with torch.no_grad():
        grads = _collect_gradients(parameters)
        if foreach is not False and multi_tensor_clip.clamp_all(grads, -clip_value, clip_value):
            return
        for grad in grads:
            grad.clamp_(min=-clip_value, max=clip_value)


__dir__ = make_module_dir(globals(), hidden="clip_grads_with_norm_ get_total_norm")
