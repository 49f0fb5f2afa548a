"""`associative_scan`: inclusive prefix results of an associative function in logarithmically many steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torchlite as torch
from torchlite.utils import _pytree as pytree

__all__ = ["associative_scan"]


def associative_scan(
    combine_fn: Callable[[Any, Any], Any], xs: Any, dim: int, reverse: bool = False, combine_mode: str = "pointwise"
) -> Any:
    """Return the inclusive scan of `xs` along `dim`: the first element, the first two combined, and so on (from the end
    with `reverse`). `xs` is a tensor, or a pytree of tensors of equal length.

    `combine_fn(a, b)` takes elements without the dimension, vectorized by `vmap`, and must be associative.
    `combine_mode="pointwise"`, the default, requires CUDA tensors; otherwise raise ValueError, as for a non-callable.

    >>> import torchlite as torch
    >>> associative_scan(lambda a, b: a * b, torch.arange(1, 6), 0, combine_mode="generic")
    tensor([  1,   2,   6,  24, 120])
    """
    if not callable(combine_fn):
        raise ValueError(f"Combine_fn must be a callable, but got {combine_fn}")
    if combine_mode not in ("pointwise", "generic"):
        raise ValueError(f"Combine_mode must either 'pointwise' or 'generic', but got {combine_mode}")
    leaves, tree = pytree.tree_flatten(xs)
    if combine_mode == "pointwise" and any(x.device.type != "cuda" for x in leaves):
        raise ValueError("For combine_mode='pointwise', all input tensors need to be on CUDA or XPU")
    rows = [x.movedim(dim, 0) for x in leaves]
    rows = [x.flip(0) for x in rows] if reverse else rows

    def combine_flat(left: Any, right: Any) -> list[Any]:
        out, found = pytree.tree_flatten(
            combine_fn(pytree.tree_unflatten(left, tree), pytree.tree_unflatten(right, tree))
        )
        if len(out) != len(leaves) or found != tree:
            raise ValueError(f"combine_fn must return what it is given, {tree}, but returned {found}")
        return out

    done = _scan_tree(torch.vmap(combine_flat), rows)
    done = [x.flip(0) for x in done] if reverse else done
    return pytree.tree_unflatten([x.movedim(0, dim) for x in done], tree)


def _scan_tree(combined: Callable[..., list[Any]], rows: list[Any]) -> list[Any]:
    """Combine neighbours and scan them recursively for every second result; combine once more for the others."""
    count = rows[0].shape[0]
    if count < 2:
        return rows
    odd = _scan_tree(combined, combined([x[: count - 1 : 2] for x in rows], [x[1::2] for x in rows]))
    even = [x[:1] for x in rows]
    if count > 2:
        later = combined([x[: (count - 1) // 2] for x in odd], [x[2::2] for x in rows])
        even = [torch.cat(pair) for pair in zip(even, later, strict=True)]
    return [_interleave(pair) for pair in zip(even, odd, strict=True)]


def _interleave(pair: tuple[Any, Any]) -> Any:
    """Interleave two tensors along the first dimension."""
    even, odd = pair
    count = odd.shape[0]
    both = torch.stack([even[:count], odd], 1).flatten(0, 1)
    return both if even.shape[0] == count else torch.cat([both, even[count:]])
