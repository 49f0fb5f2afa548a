"""Branches and loops as functions, for programs that compilers read: Python runs them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._tensor import Tensor

__all__ = ["cond", "while_loop"]


def cond(pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], operands: Any = ()) -> Any:
    """`true_fn(*operands)` where `pred` (a bool, or a tensor of one element) holds, else `false_fn(*operands)`.
    RuntimeError for another `pred`, for what cannot be called, and for operands that are no tuple or list.

    >>> import torchlite as torch
    >>> torch.cond(torch.tensor(True), lambda x: x + 1, lambda x: x - 1, (torch.tensor(2),))
    tensor(3)
    """
    if not isinstance(pred, (bool, int, Tensor)):
        raise RuntimeError(f"Expected pred to be bool or tensor, but got {pred}.")
    if isinstance(pred, Tensor) and pred.numel() != 1:
        raise RuntimeError(f"Expected pred to be bool or single-element tensor, but got {pred}.")
    if not callable(true_fn) or not callable(false_fn):
        raise RuntimeError("Expect both branches to be callable.")
    if not isinstance(operands, (tuple, list)):
        raise RuntimeError(f"Expect operands to be a tuple of possibly nested dict/list/tuple, but got {operands}.")
    return (true_fn if pred else false_fn)(*operands)


def while_loop(cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried_inputs: Any) -> Any:
    """`carried_inputs = body_fn(*carried_inputs)` as long as `cond_fn(*carried_inputs)` holds; the last of them.
    RuntimeError where `body_fn` returns no tuple, or one of another length.

    >>> import torchlite as torch
    >>> torch.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (torch.tensor(0), torch.tensor(1)))
    (tensor(3), tensor(8))
    """
    if not callable(cond_fn) or not callable(body_fn):
        raise RuntimeError("cond_fn and body_fn must be callable.")
    if not isinstance(carried_inputs, (tuple, list)):
        raise RuntimeError(f"carried_inputs must be a tuple or list but got {type(carried_inputs)}")
    values = tuple(carried_inputs)
    while cond_fn(*values):
        out = body_fn(*values)
        if not isinstance(out, (tuple, list)) or len(out) != len(values):
            raise RuntimeError(f"body_fn must return as many values as it is given ({len(values)}), but got {out}")
        values = tuple(out)
    return values
