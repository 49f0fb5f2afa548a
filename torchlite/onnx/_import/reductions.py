"""ONNX reductions and cumulative ops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torchlite as torch
from torchlite import Tensor

from .op_registry import Ints, Number, ints, normalize_dims, op, single_number
from .resource_limits import check_work


def _normalize_dims(x: Tensor, axes: Ints, noop: int) -> list[int] | None:
    """Return the dimensions to reduce, None for a no-op."""
    given = ints(axes)
    if not given:
        return None if noop else list(range(x.ndim))
    return normalize_dims(given, x.ndim)


def _register_reduction(name: str, function: Any, before: Any = None, after: Any = None) -> None:
    def run(x: Tensor, axes: Ints = None, *, keepdims: int = 1, noop_with_empty_axes: int = 0) -> Tensor:
        dims = _normalize_dims(x, axes, noop_with_empty_axes)
        check_work(name, x.numel())
        values = x if before is None else before(x)
        if dims is None:
            out = values
        else:
            out = function(values, dims, bool(keepdims)) if dims else values
        return (out if after is None else after(out)).to(x.dtype)

    run.__name__ = run.__qualname__ = name
    run.__module__ = __name__
    globals()[name] = op(name)(run)


def _reduce_sum(x: Tensor, dims: list[int], keep: bool) -> Tensor:
    return torch.sum(x, dims, keep)


def _reduce_product(x: Tensor, dims: list[int], keep: bool) -> Tensor:
    for d in sorted(dims, reverse=True):
        x = torch.prod(x, d, keep)
    return x


def _reduce_mean(x: Tensor, dims: list[int], keep: bool) -> Tensor:
    if x.is_floating_point():
        return torch.mean(x, dims, keep)
    return torch.mean(x.to(torch.float64), dims, keep)


def _reduce_min(x: Tensor, dims: list[int], keep: bool) -> Tensor:
    return _reduce_min_or_max(torch.amin, torch.iinfo, "max", x, dims, keep)


def _reduce_max(x: Tensor, dims: list[int], keep: bool) -> Tensor:
    return _reduce_min_or_max(torch.amax, torch.iinfo, "min", x, dims, keep)


def _reduce_min_or_max(function: Any, info: Any, end: str, x: Tensor, dims: list[int], keep: bool) -> Tensor:
    if x.numel():
        return function(x, dims, keep)
    # The identity of the reduction.
    start = (float("inf") if end == "max" else float("-inf")) if x.is_floating_point() else (
        end == "max" if x.dtype is torch.bool else getattr(info(x.dtype), end))  # fmt: skip
    sizes = [1 if d in dims else n for d, n in enumerate(x.shape) if keep or d not in dims]
    return torch.full(sizes, start, dtype=x.dtype, device=x.device)


def _log_sum(x: Tensor, dims: list[int], keep: bool) -> Tensor:
    return torch.logsumexp(x if x.is_floating_point() else x.to(torch.float64), dims, keep)


def _to_wide(x: Tensor) -> Tensor:
    return x if x.is_floating_point() else x.to(torch.float64)


_register_reduction("ReduceSum", _reduce_sum)
_register_reduction("ReduceProd", _reduce_product)
_register_reduction("ReduceMean", _reduce_mean)
_register_reduction("ReduceMin", _reduce_min)
_register_reduction("ReduceMax", _reduce_max)
_register_reduction("ReduceL1", _reduce_sum, before=lambda x: torch.abs(x))
_register_reduction("ReduceL2", _reduce_sum, before=lambda x: _to_wide(x) * _to_wide(x), after=lambda x: torch.sqrt(x))
_register_reduction("ReduceSumSquare", _reduce_sum, before=lambda x: torch.square(x))
_register_reduction("ReduceLogSum", _reduce_sum, before=_to_wide, after=lambda x: torch.log(x))
_register_reduction("ReduceLogSumExp", _log_sum)


@op("CumSum")
def cumsum(x: Tensor, axis: Number, *, exclusive: int = 0, reverse: int = 0) -> Tensor:
    return _cumulate(torch.cumsum, 0, x, int(single_number(axis)), exclusive, reverse)


@op("CumProd")
def cumprod(x: Tensor, axis: Number, *, exclusive: int = 0, reverse: int = 0) -> Tensor:
    return _cumulate(torch.cumprod, 1, x, int(single_number(axis)), exclusive, reverse)


def _cumulate(function: Callable, start: int, x: Tensor, axis: int, exclusive: int, reverse: int) -> Tensor:
    axis %= x.ndim
    if reverse:
        x = torch.flip(x, [axis])
    if exclusive:
        head = torch.full_like(x.narrow(axis, 0, 1), start)
        x = torch.cat([head, x.narrow(axis, 0, x.shape[axis] - 1)], axis)
    out = function(x, axis).to(x.dtype)
    return torch.flip(out, [axis]) if reverse else out
