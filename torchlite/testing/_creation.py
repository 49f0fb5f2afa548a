"""Random tensors for tests."""

from __future__ import annotations

import builtins
import math
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torchlite as torch

if TYPE_CHECKING:
    from torchlite import Tensor
    from torchlite._stubs.aliases import DeviceLike, DType


def _dtype_limits(dtype: DType) -> tuple[Any, Any, Any, Any]:
    """Return the least value of a dtype, an exclusive upper bound, and the default limits of `make_tensor`."""
    if dtype is torch.bool:
        return 0, 2, 0, 2
    if dtype.category < 2:
        info = torch.iinfo(dtype)
        above = info.max + (info.bits < 64)  # randint does not accept 2**63
        return info.min, above, -9 if dtype.is_signed else 0, 10
    real = torch.finfo(dtype.to_real())
    return real.min, real.max, -9, 9


def _draw_interval(dtype: DType, low: Any, high: Any) -> tuple[Any, Any]:
    """Return the interval to draw from. ValueError if it is empty or contains no value of the dtype."""
    lowest, above, default_low, default_high = _dtype_limits(dtype)
    low = default_low if low is None else low
    high = default_high if high is None else high
    if any(isinstance(limit, builtins.float) and math.isnan(limit) for limit in (low, high)):
        raise ValueError(f"`low` and `high` cannot be NaN, but got {low=} and {high=}")
    if low == high and dtype.category >= 2:
        warnings.warn(
            "Passing `low==high` to `torch.testing.make_tensor` for floating or complex types is deprecated since 2.1 "
            "and will be removed in 2.3. Use `torch.full(...)` instead.",
            FutureWarning,
            stacklevel=4,
        )
    elif low >= high:
        raise ValueError(f"`low` must be less than `high`, but got {low} >= {high}")
    elif high < lowest or low >= above:
        raise ValueError(
            f"The value interval specified by `low` and `high` is [{low}, {high}), but {dtype} only supports "
            f"[{lowest}, {above})"
        )
    low, high = (min(max(limit, lowest), above) for limit in (low, high))
    return (math.ceil(low), math.ceil(high)) if dtype.category < 2 else (low, high)


def _draw_uniform(shape: Sequence[int], dtype: DType, device: DeviceLike, low: float, high: float) -> Tensor:
    """Draw uniform numbers. If the width of the interval overflows, draw from half of it and double."""
    drawn = torch.float32 if dtype.itemsize == 1 else dtype
    out = torch.empty(shape, dtype=drawn, device=device)
    parts = torch.view_as_real(out) if dtype.is_complex else out
    if high - low > torch.finfo(parts.dtype).max:
        parts.uniform_(low / 2, high / 2).mul_(2)
    else:
        parts.uniform_(low, high)
    return out.to(dtype)


def make_tensor(
    *shape: Any,
    dtype: DType,
    device: DeviceLike,
    low: Any = None,
    high: Any = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Returns a tensor of random values from the interval [low, high).

    Args:
        *shape: Sizes, or one sequence of them.
        dtype: Dtype of the tensor.
        device: Its device.
        low: Lower end of the interval, clamped to the dtype's range. Default: -9, and 0 for unsigned integers and bool.
        high: Upper end, clamped likewise. Default: 9 for floating-point numbers, 10 for integers, 2 for bool.
        requires_grad: Whether the tensor requires grad. Default: ``False``.
        noncontiguous: Whether its elements are not adjacent in memory. Default: ``False``.
        exclude_zero: Whether zeros become the smallest positive value. Default: ``False``.
        memory_format: Order of the dimensions in memory. Default: contiguous.

    Raises:
        TypeError: ``dtype`` is no dtype.
        ValueError: The interval is empty, ``requires_grad`` comes with an integer dtype, or ``noncontiguous`` with a
            ``memory_format``.

    Example:
        >>> import torchlite as torch
        >>> torch.testing.make_tensor(2, 3, dtype=torch.float32, device="cpu").shape
        torch.Size([2, 3])
    """
    if not isinstance(dtype, torch.dtype):
        raise TypeError(
            f"The requested dtype '{dtype}' is not supported by torch.testing.make_tensor(). To request support, file "
            "an issue at: https://github.com/pytorch/pytorch/issues"
        )
    size: tuple[int, ...] = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], Sequence) else shape
    if noncontiguous and memory_format is not None:
        raise ValueError(
            f"The parameters `noncontiguous` and `memory_format` are mutually exclusive, but got {noncontiguous=} and "
            f"{memory_format=}"
        )
    if requires_grad and dtype.category < 2:
        raise ValueError(f"`requires_grad=True` is not supported for boolean and integral dtypes, but got {dtype=}")
    low, high = _draw_interval(dtype, low, high)
    numel = math.prod(size)
    apart = noncontiguous and numel > 1
    drawn = (*size[:-1], size[-1] * 2) if apart else size
    if dtype.category < 2:
        out = torch.randint(low, high, drawn, dtype=dtype, device=device)
    elif low == high:
        out = torch.full(drawn, low, dtype=dtype, device=device)
    else:
        out = _draw_uniform(drawn, dtype, device, low, high)
    if apart:
        out = out[..., ::2]
    elif memory_format is not None:
        out = out.clone(memory_format=memory_format)
    if exclude_zero:
        tiny = 1 if dtype.category < 2 else torch.finfo(dtype.to_real()).tiny
        out[out == 0] = tiny
    return out.requires_grad_() if requires_grad else out
