"""`map`: applies a function to slices of tensors along the first dimension."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torchlite as torch
from torchlite.utils import _pytree as pytree

from . import control_flow_capture

__all__ = ["map"]


def map(f: Callable[..., Any], xs: Any, *args: Any) -> Any:
    """Return `f(x, *args)` for each slice of `xs`, a tensor or pytree, along the first dimension, stacked. Raise
    RuntimeError if `xs` has no tensor or different lengths.

    >>> import torchlite as torch
    >>> map(lambda x, y: x.sum() + y, torch.ones(3, 2), torch.tensor(1.0))
    tensor([3., 3., 3.])
    """
    leaves, tree = pytree.tree_flatten(xs)
    if len({x.shape[0] for x in leaves}) != 1:
        raise RuntimeError(
            f"Leading dimensions of mapped xs must be consistent. Got shapes {[x.shape for x in leaves]}."
        )
    found = control_flow_capture.current_recorder()
    if found is not None:
        return control_flow_capture.capture_map(found, f, xs, args)
    results = [f(pytree.tree_unflatten(list(row), tree), *args) for row in zip(*leaves, strict=True)]
    return pytree.tree_map(lambda *parts: torch.stack(parts), *results)
