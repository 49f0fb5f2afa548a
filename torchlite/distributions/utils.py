"""Helpers of distributions: broadcasting of parameters, probabilities and log-odds, lazy attributes, triangular
matrices.
"""

from __future__ import annotations

from functools import update_wrapper
from numbers import Number
from typing import Any

import torchlite as torch
from torchlite._settings.module_dir import make_module_dir
from torchlite.overrides import is_tensor_like

euler_constant = 0.57721566490153286060

__all__ = [
    "broadcast_all",
    "logits_to_probs",
    "clamp_probs",
    "probs_to_logits",
    "lazy_property",
    "tril_matrix_to_vec",
    "vec_to_tril_matrix",
]


def broadcast_all(*values):
    """Broadcast numbers and tensors to one shape.

    Args:
        *values: Numbers and tensors. Numbers get the dtype and device of the first tensor; without one, the default
            dtype.

    Returns:
        A tuple of tensors.

    Raises:
        ValueError: A value is of another type.

    Example:
        >>> torch.distributions.utils.broadcast_all(torch.zeros(2), 1.0)
        (tensor([0., 0.]), tensor([1., 1.]))
    """
    if not all(is_tensor_like(v) or isinstance(v, Number) for v in values):
        raise ValueError(
            "Input arguments must all be instances of Number, torch.Tensor or objects implementing __torch_function__."
        )
    if not all(is_tensor_like(v) for v in values):
        options: dict[str, Any] = {"dtype": torch.get_default_dtype()}
        for value in values:
            if isinstance(value, torch.Tensor):
                options = {"dtype": value.dtype, "device": value.device}
                break
        values = tuple(v if is_tensor_like(v) else torch.tensor(v, **options) for v in values)
    return torch.broadcast_tensors(*values)


def _standard_normal(shape, dtype, device):
    """Standard normal numbers of a shape."""
    return torch.normal(torch.zeros(shape, dtype=dtype, device=device), torch.ones(shape, dtype=dtype, device=device))


def _sum_rightmost(value, dim):
    """`value` summed over its last `dim` dimensions."""
    if dim == 0:
        return value
    return value.reshape(value.shape[:-dim] + (-1,)).sum(-1)


def logits_to_probs(logits, is_binary=False):
    """Convert logits to probabilities.

    Args:
        logits: Log-odds with ``is_binary``; else unnormalized logarithms of probabilities along the last dimension.
        is_binary: Whether to apply the logistic function; else softmax. Default: ``False``.

    Returns:
        A tensor of the same shape.

    Example:
        >>> torch.distributions.utils.logits_to_probs(torch.zeros(2), is_binary=True)
        tensor([0.5000, 0.5000])

    See also:
        `probs_to_logits`.
    """
    return torch.sigmoid(logits) if is_binary else torch.softmax(logits, dim=-1)


def clamp_probs(probs):
    """Clamp probabilities to ``[eps, 1 - eps]``, with the machine epsilon of their dtype.

    Args:
        probs: Tensor of probabilities.

    Returns:
        A tensor of the same shape.

    Example:
        >>> torch.distributions.utils.clamp_probs(torch.tensor([0.0, 0.5]))
        tensor([1.1921e-07, 5.0000e-01])
    """
    eps = torch.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def probs_to_logits(probs, is_binary=False):
    """Convert probabilities to logits, which are finite: see `clamp_probs`.

    Args:
        probs: Tensor of probabilities.
        is_binary: Whether to compute the log-odds; else the logarithms. Default: ``False``.

    Returns:
        A tensor of the same shape.

    Example:
        >>> torch.distributions.utils.probs_to_logits(torch.tensor([0.5]), is_binary=True)
        tensor([0.])

    See also:
        `logits_to_probs`.
    """
    inside = clamp_probs(probs)
    return torch.log(inside) - torch.log1p(-inside) if is_binary else torch.log(inside)


class lazy_property:
    """A decorator for a method that becomes an attribute when it is first read.

    The value is computed once, with gradients recorded.

    Args:
        wrapped: The method.

    Example:
        >>> from torchlite.distributions.utils import lazy_property
        >>> class Square:
        ...     @lazy_property
        ...     def area(self):
        ...         print("once")
        ...         return 4
        >>> square = Square()
        >>> square.area, square.area
        once
        (4, 4)
    """

    def __init__(self, wrapped) -> None:
        self.wrapped = wrapped
        update_wrapper(self, wrapped)  # type: ignore[arg-type]

    def __get__(self, instance, obj_type=None) -> Any:
        if instance is None:
            return _lazy_property_and_property(self.wrapped)
        with torch.enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


class _lazy_property_and_property(lazy_property, property):
    """A lazy attribute read on the class: a property, as documentation tools expect."""

    def __init__(self, wrapped) -> None:
        property.__init__(self, wrapped)


def tril_matrix_to_vec(mat, diag=0):
    """Collect the entries of square matrices on and below a diagonal, row by row.

    Args:
        mat: Tensor of shape ``(..., n, n)``.
        diag: Offset of the diagonal: 0 is the main diagonal, a positive offset is above it. Default: 0.

    Returns:
        A tensor of vectors, of shape ``(..., length)``.

    Raises:
        ValueError: The diagonal is outside of the matrix.

    Example:
        >>> torch.distributions.utils.tril_matrix_to_vec(torch.tensor([[1, 2], [3, 4]]))
        tensor([1, 3, 4])

    See also:
        `vec_to_tril_matrix`.
    """
    n = mat.shape[-1]
    if not -n <= diag < n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    return mat[..., _tril_mask(n, diag, mat.device)]


def vec_to_tril_matrix(vec, diag=0):
    """Create square matrices with the entries of vectors on and below a diagonal, row by row, and 0 above it.

    Args:
        vec: Tensor of shape ``(..., length)``.
        diag: Offset of the diagonal: 0 is the main diagonal, a positive offset is above it. Default: 0.

    Returns:
        A tensor of shape ``(..., n, n)``.

    Raises:
        ValueError: No matrix has that number of entries there.

    Example:
        >>> torch.distributions.utils.vec_to_tril_matrix(torch.tensor([1, 2, 3]))
        tensor([[1, 0],
                [2, 3]])

    See also:
        `tril_matrix_to_vec`.
    """
    length = vec.shape[-1]
    # A triangle with m rows has m (m + 1) / 2 entries, and a matrix m - diag rows.
    rows = ((1 + 8 * length) ** 0.5 - 1) / 2 - diag if diag <= 0 else _num_tril_rows(length, diag)
    n = round(rows)
    if abs(rows - n) > torch.finfo(torch.float32).eps:
        raise ValueError(
            f"The size of last dimension is {length} which cannot be expressed as the lower triangular part of a "
            "square D x D matrix."
        )
    out = torch.zeros((*vec.shape[:-1], n, n), dtype=vec.dtype, device=vec.device)
    out[..., _tril_mask(n, diag, vec.device)] = vec
    return out


def _num_tril_rows(length, diag):
    """Return the number of rows of a matrix with `length` entries on and below a diagonal above the main one: the real
    solution of n**2 - (n - diag) (n - diag - 1) / 2 = length.
    """
    b = 1 + 2 * diag
    return (-b + (b * b + 4 * (2 * length + diag * (diag + 1))) ** 0.5) / 2


def _tril_mask(n, diag, device):
    """Return a mask of the entries of an n x n matrix on or below a diagonal."""
    index = torch.arange(n, device=device)
    return index < index.reshape(-1, 1) + (diag + 1)


__dir__ = make_module_dir(globals(), "euler_constant")
