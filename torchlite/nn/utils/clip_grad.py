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
    """Computes the norm of all elements of several tensors, as if they were one vector.

    Args:
        tensors: A tensor or an iterable of tensors.
        norm_type: Order p of the norm; may be ``float("inf")``. Default: 2.
        error_if_nonfinite: Whether a norm that is NaN or infinite is an error. Default: ``False``.
        foreach: ``False`` handles one tensor at a time; else one call handles all, where the backend has one. Default:
            ``None``.

    Returns:
        The norm, a 0-d tensor on the first tensor's device; 0 without tensors. It has no gradient.

    Raises:
        RuntimeError: The norm is not finite and ``error_if_nonfinite``.

    Example:
        >>> torch.nn.utils.get_total_norm([torch.tensor([3.0]), torch.tensor([4.0])])
        tensor(5.)

    See also:
        `clip_grads_with_norm_`.
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
    """Scales gradients in place by ``max_norm / (total_norm + 1e-6)``, if that is less than 1.

    Args:
        parameters: A tensor, or an iterable of tensors; those without a gradient are skipped.
        max_norm: The largest norm.
        total_norm: The present norm, as of `get_total_norm`.
        foreach: ``False`` handles one tensor at a time; else one call handles all, where the backend has one. Default:
            ``None``.

    Example:
        >>> weight = torch.zeros(2, requires_grad=True)
        >>> weight.grad = torch.tensor([3.0, 4.0])
        >>> torch.nn.utils.clip_grads_with_norm_(weight, 1.0, torch.nn.utils.get_total_norm(weight.grad))
        >>> weight.grad
        tensor([0.6000, 0.8000])

    See also:
        `clip_grad_norm_`, which does both.
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
    """Scales gradients in place so that the norm of all together is at most a bound.

    Args:
        parameters: A tensor, or an iterable of tensors; those without a gradient are skipped.
        max_norm: The largest norm.
        norm_type: Order p of the norm; may be ``float("inf")``. Default: 2.
        error_if_nonfinite: Whether a norm that is NaN or infinite is an error. Default: ``False``.
        foreach: ``False`` handles one tensor at a time; else one call handles all, where the backend has one. Default:
            ``None``.

    Returns:
        The norm before, a 0-d tensor.

    Raises:
        RuntimeError: The norm is not finite and ``error_if_nonfinite``.

    Example:
        >>> weight = torch.zeros(2, requires_grad=True)
        >>> weight.grad = torch.tensor([3.0, 4.0])
        >>> torch.nn.utils.clip_grad_norm_(weight, max_norm=1.0)
        tensor(5.)
        >>> weight.grad
        tensor([0.6000, 0.8000])

    References:
        - R. Pascanu, T. Mikolov, Y. Bengio. On the difficulty of training recurrent neural networks. 2013.

    See also:
        `clip_grad_value_`.
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
    """Deprecated name of `clip_grad_norm_`: warns, then calls it.

    Args:
        parameters: As in `clip_grad_norm_`.
        max_norm: Likewise.
        norm_type: Likewise.
        error_if_nonfinite: Likewise.
        foreach: Likewise.

    Returns:
        The norm before, a 0-d tensor.

    Example:
        >>> import warnings
        >>> weight = torch.zeros(2, requires_grad=True)
        >>> weight.grad = torch.tensor([3.0, 4.0])
        >>> with warnings.catch_warnings(action="ignore"):
        ...     norm = torch.nn.utils.clip_grad_norm(weight, max_norm=1.0)
        >>> norm
        tensor(5.)
    """
    warnings.warn(
        "`torch.nn.utils.clip_grad_norm` is now deprecated in favor of `torch.nn.utils.clip_grad_norm_`.",
        FutureWarning,
        stacklevel=2,
    )
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


def clip_grad_value_(parameters: Any, clip_value: float, foreach: bool | None = None) -> None:
    """Clamps each element of gradients to ``[-clip_value, clip_value]``, in place.

    Args:
        parameters: A tensor, or an iterable of tensors; those without a gradient are skipped.
        clip_value: The largest magnitude.
        foreach: ``False`` handles one tensor at a time; else one call handles all, where the backend has one. Default:
            ``None``.

    Example:
        >>> weight = torch.zeros(3, requires_grad=True)
        >>> weight.grad = torch.tensor([-3.0, 0.5, 4.0])
        >>> torch.nn.utils.clip_grad_value_(weight, 1.0)
        >>> weight.grad
        tensor([-1.0000,  0.5000,  1.0000])

    See also:
        `clip_grad_norm_`.
    """
    clip_value = float(clip_value)
    with torch.no_grad():
        grads = _collect_gradients(parameters)
        if foreach is not False and multi_tensor_clip.clamp_all(grads, -clip_value, clip_value):
            return
        for grad in grads:
            grad.clamp_(min=-clip_value, max=clip_value)


__dir__ = make_module_dir(globals(), hidden="clip_grads_with_norm_ get_total_norm")
