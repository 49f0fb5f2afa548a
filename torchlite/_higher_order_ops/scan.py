"""`scan`: loops over slices of tensors with a carried state and stacked outputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torchlite as torch
from torchlite.utils import _pytree as pytree

from . import control_flow_capture

__all__ = ["scan"]


def scan(
    combine_fn: Callable[[Any, Any], tuple[Any, Any]], init: Any, xs: Any, *, dim: int = 0, reverse: bool = False
) -> tuple[Any, Any]:
    """Run `carry, y = combine_fn(carry, x)` for each slice `x` of `xs` along `dim`, in reverse order with `reverse`,
    starting from `init`. Return the last carry and all `y` stacked along `dim`. Each is a tensor or pytree. Raise
    RuntimeError for non-callables and for results that are no pair.

    >>> import torchlite as torch
    >>> scan(lambda total, x: (total + x, total * 2), torch.tensor(0), torch.arange(4))
    (tensor(6), tensor([0, 0, 2, 6]))
    """
    if not callable(combine_fn):
        raise RuntimeError(f"Combine_fn must be a callable, but got {combine_fn}")
    leaves, tree = pytree.tree_flatten(xs)
    if not leaves:
        raise RuntimeError("Expected at least one xs leaf")
    found = control_flow_capture.current_recorder()
    if found is not None and dim == 0 and not reverse:
        return control_flow_capture.capture_scan(found, combine_fn, init, xs)
    places = range(leaves[0].shape[dim])
    carry, results = init, []
    for place in reversed(places) if reverse else places:
        out = combine_fn(carry, pytree.tree_unflatten([x.select(dim, place) for x in leaves], tree))
        if not isinstance(out, tuple) or len(out) != 2:
            raise RuntimeError(f"combine_fn must return a carry and a result, but returned {out}")
        carry = out[0]
        results.append(out[1])
    if reverse:
        results.reverse()
    return carry, pytree.tree_map(lambda *parts: torch.stack(parts, dim), *results) if results else None
