"""Measures of the difference between the results of two networks."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torchlite as torch


def maybe_dequantize_first_two_tensor_args_and_handle_tuples(f: Callable) -> Callable:
    """Return the function for quantized tensors too, and for two tuples or lists; its result is None for tensors of
    another dtype than float32.
    """

    @functools.wraps(f)
    def measure(x: Any, y: Any, *args: Any, **kwargs: Any) -> Any:
        if any(isinstance(x, kind) and isinstance(y, kind) for kind in (tuple, list)):
            return [measure(a, b, *args, **kwargs) for a, b in zip(x, y, strict=False)]
        x, y = (t.dequantize() if isinstance(t, torch.Tensor) and t.is_quantized else t for t in (x, y))
        return None if x.dtype != torch.float32 or y.dtype != torch.float32 else f(x, y, *args, **kwargs)

    return measure


@maybe_dequantize_first_two_tensor_args_and_handle_tuples
def compute_sqnr(x: Any, y: Any) -> Any:
    """Return the ratio of signal to noise in decibels: 20 times the logarithm of ``|x| / |x - y|``.

    Args:
        x: Tensor of the first network, or a tuple of them.
        y: Tensor of the second one, or a tuple.

    Example:
        >>> from torchlite.ao.ns.fx.utils import compute_sqnr
        >>> compute_sqnr(torch.tensor([3.0, 4.0]), torch.tensor([3.0, 4.5]))
        tensor(20.)
    """
    return 20 * torch.log10(torch.norm(x) / torch.norm(x - y))


@maybe_dequantize_first_two_tensor_args_and_handle_tuples
def compute_normalized_l2_error(x: Any, y: Any) -> Any:
    """Return ``|x - y| / |x|``.

    Args:
        x: Tensor of the first network, or a tuple of them.
        y: Tensor of the second one, or a tuple.

    Example:
        >>> from torchlite.ao.ns.fx.utils import compute_normalized_l2_error
        >>> compute_normalized_l2_error(torch.tensor([3.0, 4.0]), torch.tensor([3.0, 4.5]))
        tensor(0.1000)
    """
    return torch.sqrt(((x - y) ** 2).sum() / (x**2).sum())


@maybe_dequantize_first_two_tensor_args_and_handle_tuples
def compute_cosine_similarity(x: Any, y: Any) -> Any:
    """Return the cosine of the angle between both tensors as vectors.

    Args:
        x: Tensor of the first network, or a tuple of them.
        y: Tensor of the second one, or a tuple.

    Example:
        >>> from torchlite.ao.ns.fx.utils import compute_cosine_similarity
        >>> compute_cosine_similarity(torch.ones(2), torch.ones(2, 1)).round(decimals=4)
        tensor([1.])
    """
    return torch.nn.functional.cosine_similarity(x.reshape(1, -1), y.reshape(1, -1))
