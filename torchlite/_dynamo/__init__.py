"""`torch.compile`: captures a call kernel by kernel and replays it.

A call passes through these modules. `compiled_function` manages the captures of a function. `guards` walks the state
that a function can reach, and `side_effect_monitor` observes its side effects. `capture` records one call and
`captured_backward` its backward pass, as a `program_ir.Program`. `tensor_guards` checks arguments, `replay` runs the
passes, and `python_codegen` generates the program's source.
"""

from __future__ import annotations

from typing import Any

from .._settings.compiler_directives import (
    allow_in_graph,
    assume_constant_result,
    is_compiling,
    set_stance,
    substitute_in_graph,
)
from .._settings.compiler_directives import disable as _disable
from . import config as config
from . import utils as utils
from .backends import list_backends, lookup_backend, register_backend
from .decorators import (
    disallow_in_graph,
    error_on_graph_break,
    forbid_in_graph,
    graph_break,
    mark_dynamic,
    mark_static,
    mark_static_address,
    maybe_mark_dynamic,
    nonstrict_trace,
)
from .eval_frame import OptimizedModule, is_dynamo_supported

__all__ = [
    "OptimizedModule", "allow_in_graph", "assume_constant_result", "config", "disable", "disallow_in_graph",
    "error_on_graph_break", "explain", "forbid_in_graph", "graph_break", "is_compiling", "is_dynamo_supported",
    "is_inductor_supported", "list_backends",
    "lookup_backend", "mark_dynamic", "mark_static", "mark_static_address", "maybe_mark_dynamic",
    "nonstrict_trace", "optimize", "optimize_assert", "register_backend", "reset", "set_stance", "substitute_in_graph",
]  # fmt: skip


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None, wrapping: bool = True) -> Any:
    """Exclude a function or class from compilation and return it unchanged. Without `fn`, return a decorator.

    >>> @torchlite._dynamo.disable
    ... def double(x):
    ...     return 2 * x
    >>> double(4)
    8
    """
    return _disable(fn, recursive, reason=reason)


def explain(f: Any, *extra_args: Any, **extra_kwargs: Any) -> Any:
    """Return a function that calls `f` once and returns an `ExplainOutput` with its graphs and graph breaks.

    >>> found = torchlite._dynamo.explain(lambda x: (x * 2).relu())(torchlite.ones(2))
    >>> found.graph_count, found.graph_break_count, found.op_count
    (1, 0, 2)
    """
    from .explain_output import explain as explained

    return explained(f, *extra_args, **extra_kwargs)


def is_inductor_supported() -> bool:
    """Return whether the backend that `torch.compile` has by default is there: True.

    >>> torchlite._dynamo.is_inductor_supported()
    True
    """
    return True


def reset() -> None:
    """Forget what was compiled."""
    from .compiled_function import reset

    reset()


def optimize(backend: Any = "inductor", *, nopython: bool = False, disable: bool = False, **options: Any) -> Any:
    """Return a decorator that compiles functions and modules: the older form of `torch.compile`. `nopython` is
    `fullgraph`.

    >>> torchlite._dynamo.optimize("eager")(lambda x: x + 1)(2)
    3
    """
    from .eval_frame import compile

    return compile(backend=backend, fullgraph=nopython, disable=disable, dynamic=options.get("dynamic"))


def optimize_assert(backend: Any, **options: Any) -> Any:
    """Call `optimize` with `nopython=True`."""
    return optimize(backend, nopython=True, **options)
