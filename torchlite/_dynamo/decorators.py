"""Annotations for `torch.compile`: mark_dynamic, mark_static, graph_break, allow and disallow functions."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any, NamedTuple

from .._settings.compiler_directives import (
    allow_in_graph,
    assume_constant_result,
    disable,
    is_compiling,
    set_stance,
    substitute_in_graph,
)
from .._settings.compiler_state import THREAD_STATE

__all__ = [
    "allow_in_graph", "assume_constant_result", "disable", "disallow_in_graph", "error_on_graph_break",
    "forbid_in_graph", "graph_break", "is_compiling", "mark_dynamic", "mark_static", "mark_static_address",
    "maybe_mark_dynamic", "set_stance", "substitute_in_graph",
]  # fmt: skip


class _DimRange(NamedTuple):
    """Permitted range of a dimension's size."""

    dim: int
    min: int | None
    max: int | None


def _as_dims(index: Any) -> Iterable[int]:
    if isinstance(index, int):
        return (index,)
    if not isinstance(index, (list, tuple)):
        raise AssertionError(f"Expected index to be int, list, or tuple, got {type(index)}")
    return index


def _mark_dims(t: Any, name: str, dims: Iterable[Any]) -> None:
    if not hasattr(t, name):
        setattr(t, name, set())
    getattr(t, name).update(dims)
    t._has_dynamo_dim_marking = True


def mark_dynamic(
    t: Any,
    index: int | list[Any] | tuple[Any, ...],
    *,
    hint_override: int | None = None,
    min: int | None = None,
    max: int | None = None,
    specialize_on: list[Any] | None = None,
) -> None:
    """Mark the size of a dimension (or several) as dynamic. Calls with other sizes between `min` and `max` share a
    variant. Raise AssertionError for an index out of range.

    >>> x = torchlite.ones(3, 4)
    >>> torchlite._dynamo.mark_dynamic(x, 0, min=2)
    """
    for dim in _as_dims(index):
        _mark_dims(t, "_dynamo_dynamic_indices", (dim,))
        _mark_dims(t, "_dynamo_dynamic_range", (_DimRange(dim, min, max),))
        t._dynamo_hint_overrides = {**getattr(t, "_dynamo_hint_overrides", {})}
        if hint_override is not None:
            t._dynamo_hint_overrides[dim] = hint_override
        t._specialize_on = {**getattr(t, "_specialize_on", {}), dim: specialize_on or []}


def maybe_mark_dynamic(t: Any, index: int | list[Any] | tuple[Any, ...]) -> None:
    """Mark the size of a dimension (or several) as possibly dynamic."""
    _mark_dims(t, "_dynamo_weak_dynamic_indices", _as_dims(index))


def mark_static(t: Any, index: int | list[Any] | tuple[Any, ...] | None = None) -> None:
    """Mark the size of a dimension (several, or all) as static: another size is captured separately. Modules need no
    mark, as their tensors are static.
    """
    if isinstance(t, type):
        t._dynamo_marked_static = True  # type: ignore[attr-defined]
        return
    if not hasattr(t, "dim"):
        raise TypeError("issubclass() arg 1 must be a class")
    _mark_dims(t, "_dynamo_static_indices", range(t.dim()) if index is None else _as_dims(index))


def mark_static_address(t: Any, guard: bool = False) -> None:
    """Mark a tensor's address as static. Replays read it by reference in any case."""
    if not hasattr(t, "dim"):
        raise TypeError(f"mark_static_address expects a tensor but received {type(t)}")
    t._dynamo_static_input_type = "guarded" if guard else "unguarded"


class error_on_graph_break:
    """Set whether unsupported code raises an error, regardless of `fullgraph`; context manager or decorator."""

    def __init__(self, error: bool) -> None:
        self.error, self.before = error, None

    def __call__(self, function: Any) -> Any:
        @functools.wraps(function)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with error_on_graph_break(self.error):
                return function(*args, **kwargs)

        return inside

    def __enter__(self) -> None:
        self.before, THREAD_STATE.fails = THREAD_STATE.fails, self.error

    def __exit__(self, *error: Any) -> None:
        THREAD_STATE.fails = self.before


def graph_break(msg: str = "") -> None:
    """Mark a graph break: what is before and after the call is compiled separately."""


def disallow_in_graph(fn: Any) -> Any:
    """Exclude a function (or a list) from graphs: its callers run eagerly. Raise AssertionError for a non-function."""
    if isinstance(fn, (list, tuple)):
        return [disallow_in_graph(one) for one in fn]
    if not callable(fn):
        raise AssertionError("disallow_in_graph expects a callable")
    return disable(fn)


def forbid_in_graph(fn: Any) -> Any:
    """Forbid a function in compiled code; same as `disallow_in_graph`."""
    if isinstance(fn, (list, tuple)):
        return [forbid_in_graph(one) for one in fn]
    if not callable(fn):
        raise AssertionError("forbid_in_graph applies only to callables")
    return disable(fn)


def nonstrict_trace(traceable_fn: Any) -> Any:
    """Return the function. Captures record what a call computes, whatever its source has. AssertionError if it is not
    callable.

    >>> @torchlite._dynamo.nonstrict_trace
    ... def double(x):
    ...     return 2 * x
    >>> double(4)
    8
    """
    if not callable(traceable_fn):
        raise AssertionError("nonstrict_trace expects a callable")
    return traceable_fn
