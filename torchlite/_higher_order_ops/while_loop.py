"""`while_loop`: repeats a function on its own results while a condition is True."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import control_flow_capture


def while_loop(cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried_inputs: Any) -> Any:
    """Repeats `values = body_fn(*values)` while `cond_fn(*values)` is True.

    In a program that is being captured (`torch.export`) the graph keeps the loop.

    Args:
        cond_fn: Function of the values that returns a bool or a one-element tensor.
        body_fn: Function of the values that returns a tuple of as many new values.
        carried_inputs: Tuple or list of the first values.

    Returns:
        Tuple of the last values.

    Raises:
        RuntimeError: A function is not callable, ``carried_inputs`` is not a tuple or list, or ``body_fn`` returns
            another number of values.

    Example:
        >>> import torchlite as torch
        >>> torch.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (torch.tensor(0), torch.tensor(1)))
        (tensor(3), tensor(8))

    See also:
        `torch.cond`.
    """
    if not callable(cond_fn) or not callable(body_fn):
        raise RuntimeError("cond_fn and body_fn must be callable.")
    if not isinstance(carried_inputs, (tuple, list)):
        raise RuntimeError(f"carried_inputs must be a tuple or list but got {type(carried_inputs)}")
    values = tuple(carried_inputs)
    found = control_flow_capture.current_recorder()
    if found is not None:
        return control_flow_capture.capture_while_loop(found, cond_fn, body_fn, values)
    while cond_fn(*values):
        out = body_fn(*values)
        if not isinstance(out, (tuple, list)) or len(out) != len(values):
            raise RuntimeError(f"body_fn must return as many values as it is given ({len(values)}), but got {out}")
        values = tuple(out)
    return values
