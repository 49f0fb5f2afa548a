"""`cond`: calls one of two functions depending on a predicate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._symbolic_shapes import SymBool
from .._tensor import Tensor
from . import control_flow_capture


def cond(pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], operands: Any = ()) -> Any:
    """Calls one of two functions, depending on a predicate.

    In a program that is being captured (`torch.export`) the graph keeps both branches.

    Args:
        pred: A bool, an int, a `SymBool` or a tensor of one element.
        true_fn: Function called where ``pred`` is True.
        false_fn: Function called otherwise. In a captured program its results have the shapes and dtypes of
            ``true_fn``'s.
        operands: Tuple or list of the arguments of both functions. Default: none.

    Returns:
        The result of the function that was called.

    Raises:
        RuntimeError: ``pred`` is another object or has several elements, a branch is not callable, or ``operands`` is
            not a tuple or list.

    Example:
        >>> import torchlite as torch
        >>> torch.cond(torch.tensor(True), lambda x: x + 1, lambda x: x - 1, (torch.tensor(2),))
        tensor(3)

    See also:
        `torch.while_loop`.
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
