"""Ops that make one element of many."""

from __future__ import annotations

from typing import Any

import torchlite as torch
from torchlite import Tensor

from .limits import allow_work
from .registry import Ints, ints, op, positive


def _dims(x: Tensor, axes: Ints, noop: int) -> list[int] | None:
    """The dimensions to reduce, None for nothing to do."""
    given = ints(axes)
    if not given:
        return None if noop else list(range(x.ndim))
    return positive(given, x.ndim)


def _reduction(name: str, function: Any, before: Any = None, after: Any = None) -> None:
    def run(x: Tensor, axes: Ints = None, *, keepdims: int = 1, noop_with_empty_axes: int = 0) -> Tensor:
        dims = _dims(x, axes, noop_with_empty_axes)
        allow_work(name, x.numel())
        values = x if before is None else before(x)
        if dims is None:
            out = values
        else:
            out = function(values, dims, bool(keepdims)) if dims else values
        return (out if after is None else after(out)).to(x.dtype)

    run.__name__ = run.__qualname__ = name
    run.__module__ = __name__
    globals()[name] = op(name)(run)


def _total(x: Tensor, dims: list[int], keep: bool) -> Tensor:
    return torch.sum(x, dims, keep)


def _product(x: Tensor, dims: list[int], keep: bool) -> Tensor:
    for d in sorted(dims, reverse=True):
        x = torch.prod(x, d, keep)
    return x


def _mean(x: Tensor, dims: list[int], keep: bool) -> Tensor:
    if x.is_floating_point():
        return torch.mean(x, dims, keep)
    return torch.mean(x.to(torch.float64), dims, keep)


def _least(x: Tensor, dims: list[int], keep: bool) -> Tensor:
    return _extreme(torch.amin, torch.iinfo, "max", x, dims, keep)


def _most(x: Tensor, dims: list[int], keep: bool) -> Tensor:
    return _extreme(torch.amax, torch.iinfo, "min", x, dims, keep)


def _extreme(function: Any, info: Any, end: str, x: Tensor, dims: list[int], keep: bool) -> Tensor:
    if x.numel():
        return function(x, dims, keep)
    # Of nothing it is what every element would beat.
    start = (float("inf") if end == "max" else float("-inf")) if x.is_floating_point() else (
        end == "max" if x.dtype is torch.bool else getattr(info(x.dtype), end))  # fmt: skip
    sizes = [1 if d in dims else n for d, n in enumerate(x.shape) if keep or d not in dims]
    return torch.full(sizes, start, dtype=x.dtype, device=x.device)


def _log_sum(x: Tensor, dims: list[int], keep: bool) -> Tensor:
    return torch.logsumexp(x if x.is_floating_point() else x.to(torch.float64), dims, keep)


def _wide(x: Tensor) -> Tensor:
    return x if x.is_floating_point() else x.to(torch.float64)


_reduction("ReduceSum", _total)
_reduction("ReduceProd", _product)
_reduction("ReduceMean", _mean)
_reduction("ReduceMin", _least)
_reduction("ReduceMax", _most)
_reduction("ReduceL1", _total, before=torch.abs)
_reduction("ReduceL2", _total, before=lambda x: _wide(x) * _wide(x), after=torch.sqrt)
_reduction("ReduceSumSquare", _total, before=torch.square)
_reduction("ReduceLogSum", _total, before=_wide, after=torch.log)
_reduction("ReduceLogSumExp", _log_sum)
