"""`cond`: calls one of two functions depending on a predicate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._symbolic_shapes import SymBool
from .._tensor import Tensor
from . import control_flow_capture


def cond(pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], operands: Any = ()) -> Any:
    """Return `true_fn(*operands)` if `pred` (a bool or one-element tensor) is True, else `false_fn(*operands)`. Raise
    RuntimeError for another `pred`, for non-callables, and for operands that are no tuple or list.

    >>> import torchlite as torch
    >>> torch.cond(torch.tensor(True), lambda x: x + 1, lambda x: x - 1, (torch.tensor(2),))
    tensor(3)
    """
    if not isinstance(pred, (bool, int, Tensor, SymBool)):
        raise RuntimeError(f"Expected pred to be bool or tensor, but got {pred}.")
    if isinstance(pred, Tensor) and pred.numel() != 1:
        raise RuntimeError(f"Expected pred to be bool or single-element tensor, but got {pred}.")
    if not callable(true_fn) or not callable(false_fn):
        raise RuntimeError("Expect both branches to be callable.")
    if not isinstance(operands, (tuple, list)):
        raise RuntimeError(f"Expect operands to be a tuple of possibly nested dict/list/tuple, but got {operands}.")
    found = control_flow_capture.current_recorder()
    if found is not None and isinstance(pred, (Tensor, SymBool)):
        return control_flow_capture.capture_cond(found, pred, true_fn, false_fn, operands)
    return (true_fn if pred else false_fn)(*operands)
