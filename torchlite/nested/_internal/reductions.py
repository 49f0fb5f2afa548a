"""Rules of reductions: over all elements, over dense dimensions, over the ragged one, and over it and the batch."""

from __future__ import annotations

from typing import Any

import torchlite as torch
from torchlite._dispatch import REGISTRY, function_for

from .nested_tensor import NestedTensor
from .ops import OpCall, call_op, rule


def _least(dtype: torch.dtype) -> Any:
    return float("-inf") if dtype.is_floating_point else False if dtype is torch.bool else torch.iinfo(dtype).min


def _greatest(dtype: torch.dtype) -> Any:
    return float("inf") if dtype.is_floating_point else True if dtype is torch.bool else torch.iinfo(dtype).max


# What a padded element counts as.
_PADDING = {
    "amax": _least, "_max_dim": _least, "max": _least, "argmax": _least, "amin": _greatest, "_min_dim": _greatest,
    "min": _greatest, "argmin": _greatest, "any": lambda dtype: 0, "all": lambda dtype: 1, "prod": lambda dtype: 1,
}  # fmt: skip


def _dims(found: OpCall) -> list[int] | None:
    """The reduced dimensions, None for all."""
    dim = found.argument("dim") if any(p.name == "dim" for p in found.op.params) else None
    if dim is None or dim == () or dim == []:
        return None
    dims = sorted({found.dim(d) for d in (dim if isinstance(dim, (tuple, list)) else (dim,))})
    return None if len(dims) == found.nested.ndim else dims


@rule("sum", "mean", "amax", "amin", "prod", "any", "all", "_max_dim", "_min_dim", "argmax", "argmin")
def _reduce(found: OpCall) -> Any:
    nested, name = found.nested, found.op.function_name
    name = {"_max_dim": "max", "_min_dim": "min"}.get(found.op.name, name)
    place = nested._ragged_idx
    some = _dims(found)
    whole = some is None
    dims = some or []
    has_keepdim = any(p.name == "keepdim" for p in found.op.params)
    keepdim = bool(has_keepdim and found.argument("keepdim"))
    if nested._lengths is not None and (whole or place in dims):
        raise RuntimeError(
            f"{name}(): reducing across the ragged dimension is not supported for non-contiguous nested tensors with "
            "holes"
        )
    if whole:
        rows = nested._values.narrow(place - 1, *_extent(nested))
        values = [rows if v is nested else v for v in found.values]
        changed = {"dim": None if found.op.name in ("argmax", "argmin") else ()}
        values = [
            changed.get(p.name, v) if p.name == "dim" else v for p, v in zip(found.op.params, values, strict=True)
        ]
        return call_op(found.op, values)
    if 0 in dims and place not in dims:
        raise RuntimeError(
            f"{name}(): reducing along the batch dimension but not the ragged dimension is not supported for nested "
            "tensors"
        )
    if place in dims and 0 not in dims and len(dims) > 1:
        raise RuntimeError(
            f"{name}(): reducing along a ragged and non-batch dimension is not supported for nested tensors"
        )
    if 0 in dims:
        out = found.run(dim=tuple(d - 1 for d in dims if d))
        return _map(out, lambda t: t.unsqueeze(0)) if keepdim else out
    if place in dims:
        return _reduce_parts(found, keepdim)
    several = isinstance(found.argument("dim"), (tuple, list))
    inner = tuple(d - 1 for d in dims)
    out = found.run(dim=inner if several else inner[0])
    return found.like(out, place if keepdim else place - sum(d < place for d in dims))


def _map(result: Any, change: Any) -> Any:
    return type(result)([change(t) for t in result]) if isinstance(result, tuple) else change(result)


def _extent(nested: NestedTensor) -> tuple[int, int]:
    """Where the first part begins, and the length of all."""
    bounds = nested._bounds()
    start = bounds[0][0] if bounds else 0
    return start, nested._bounds_end() - start


def _reduce_parts(found: OpCall, keepdim: bool) -> Any:
    """A reduction of each part over the ragged dimension."""
    nested, op = found.nested, found.op
    place = nested._ragged_idx
    if op.name in ("sum", "mean"):
        dtype = found.argument("dtype")
        values = nested._values if dtype is None else nested._values.to(dtype)
        if dtype is None and op.name == "sum" and values.dtype.is_signed is False or values.dtype is torch.bool:
            values = values.to(torch.int64)
        part = nested._rows()[0]
        shape = list(values.shape)
        shape[place - 1] = len(nested)
        rows = values.narrow(place - 1, *_extent(nested))
        out = torch.zeros(shape, dtype=values.dtype, device=values.device).index_add(place - 1, part, rows)
        out = out.movedim(place - 1, 0)
        if op.name == "mean":
            counts = torch.tensor([n for _, n in nested._bounds()], dtype=out.dtype, device=out.device)
            out = out / counts.reshape(-1, *[1] * (out.ndim - 1))
        return out.unsqueeze(place) if keepdim else out
    padded = nested._padded(_PADDING[op.name](nested.dtype))
    bound = [
        padded if v is nested else place if p.name == "dim" else v for p, v in zip(op.params, found.values, strict=True)
    ]
    return call_op(op, bound)


@rule("max", "min")
def _extreme(found: OpCall) -> Any:
    """`nt.max()`, and with a dimension values and indices; with another tensor the larger of both."""
    nested, name = found.nested, found.op.name
    other = found.values[1]
    if other is None:
        return getattr(nested._values.narrow(nested._ragged_idx - 1, *_extent(nested)), name)()
    if isinstance(other, torch.Tensor):
        return getattr(torch, f"{name}imum")(found.values[0], other)
    keepdim = bool(found.values[2]) if len(found.values) > 2 else False
    values, indices = function_for(REGISTRY[f"_{name}_dim"])(nested, other, keepdim)
    return getattr(torch.return_types, name)((values, indices))
