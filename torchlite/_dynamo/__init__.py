"""`torch.compile`: calls of a function captured kernel by kernel, and replayed.

`frames.py` has the compiled function and its captures; `walking.py` says what a function can reach, `watching.py` what
it does besides computing, `capturing.py` records one call, `backwards.py` its backward pass; `program.py` is what comes
of it, `lowering.py` the text that runs it, `replaying.py` the test of the arguments and what is done around the text.
"""

from __future__ import annotations

import functools
from typing import Any

from .._settings.compiling import THREAD
from ..compiler import allow_in_graph, assume_constant_result, is_compiling, reset, set_stance, substitute_in_graph
from ..compiler import disable as _disable
from . import config as config
from . import utils as utils
from .backends import list_backends, lookup_backend, register_backend
from .eval_frame import OptimizedModule

__all__ = [
    "OptimizedModule", "allow_in_graph", "assume_constant_result", "config", "disable", "disallow_in_graph",
    "error_on_graph_break", "explain", "graph_break", "is_compiling", "list_backends", "lookup_backend",
    "mark_dynamic", "mark_static", "mark_static_address", "maybe_mark_dynamic", "optimize", "optimize_assert",
    "register_backend", "reset", "set_stance", "substitute_in_graph",
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


def explain(f: Any, *extra_args: Any, **extra_kwargs: Any) -> Any:
    """A function of `f`'s arguments that calls it once and says what a compiler gets to see: `graphs`, `break_reasons`
    and their numbers.

    >>> found = torchlite._dynamo.explain(lambda x: (x * 2).relu())(torchlite.ones(2))
    >>> found.graph_count, found.graph_break_count, found.op_count
    (1, 0, 2)
    """
    from .explaining import explain as explained

    return explained(f, *extra_args, **extra_kwargs)


def optimize(backend: Any = "inductor", *, nopython: bool = False, disable: bool = False, **options: Any) -> Any:
    """A decorator of functions and modules that are compiled: an older form of `torch.compile`; `nopython` is its
    `fullgraph`.

    >>> torchlite._dynamo.optimize("eager")(lambda x: x + 1)(2)
    3
    """
    from .eval_frame import compile

    return compile(backend=backend, fullgraph=nopython, disable=disable, dynamic=options.get("dynamic"))


def optimize_assert(backend: Any, **options: Any) -> Any:
    """`optimize` with `nopython=True`."""
    return optimize(backend, nopython=True, **options)


class error_on_graph_break:
    """Within this (or a function that it decorates) what cannot be captured is an error, or is none, whatever
    `fullgraph` says.
    """

    def __init__(self, error: bool) -> None:
        self.error, self.before = error, None

    def __call__(self, function: Any) -> Any:
        @functools.wraps(function)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with error_on_graph_break(self.error):
                return function(*args, **kwargs)

        return inside

    def __enter__(self) -> None:
        self.before, THREAD.fails = THREAD.fails, self.error

    def __exit__(self, *error: Any) -> None:
        THREAD.fails = self.before


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
