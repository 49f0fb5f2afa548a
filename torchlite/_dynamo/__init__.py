"""`torch.compile`: calls of a function captured kernel by kernel, and replayed.

`frames.py` has the compiled function and its captures; `walking.py` says what a function can reach, `watching.py` what
it does besides computing, `capturing.py` records one call, `backwards.py` its backward pass; `program.py` is what comes
of it, `lowering.py` the text that runs it, `replaying.py` the test of the arguments and what is done around the text.
"""

from __future__ import annotations

from typing import Any

from ..compiler import (
    allow_in_graph,
    assume_constant_result,
    is_compiling,
    list_backends,
    reset,
    set_stance,
    substitute_in_graph,
)
from ..compiler import disable as _disable
from . import config as config
from . import utils as utils
from .eval_frame import OptimizedModule

__all__ = [
    "OptimizedModule", "allow_in_graph", "assume_constant_result", "config", "disable", "disallow_in_graph",
    "graph_break", "is_compiling", "list_backends", "mark_dynamic", "mark_static", "mark_static_address",
    "maybe_mark_dynamic", "reset", "set_stance", "substitute_in_graph",
]  # fmt: skip


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None, wrapping: bool = True) -> Any:
    """Keep the compiler from a function (or class): it is returned as it is. Without `fn` a decorator.

    >>> @torchlite._dynamo.disable
    ... def double(x):
    ...     return 2 * x
    >>> double(4)
    8
    """
    return _disable(fn, recursive, reason=reason)


def graph_break(msg: str = "") -> None:
    """Where a compiled function would be cut in two: nothing is compiled, so nothing is cut."""


def disallow_in_graph(fn: Any) -> Any:
    """Have a compiler leave a function out: it is returned."""
    return fn


def mark_dynamic(
    t: Any, index: Any, *, hint_override: Any = None, min: Any = None, max: Any = None, **more: Any
) -> None:
    """Say that a dimension's size varies."""


def maybe_mark_dynamic(t: Any, index: Any) -> None:
    """Say that a dimension's size may vary."""


def mark_static(t: Any, index: Any = None) -> None:
    """Say that a dimension's size does not vary."""


def mark_static_address(t: Any, guard: bool = True) -> None:
    """Say that a tensor stays where it is."""
