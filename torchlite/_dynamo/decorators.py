"""What a program says of its tensors' sizes, and of functions, before they are compiled."""

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
    """The sizes that a dimension may have."""

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
    """Say that the size of a dimension (or of several) varies: calls with other sizes, between `min` and `max`, are
    of the kind of a call with this tensor, and not captured as if they were something new. AssertionError for an index
    that is none.

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
    """Say that the size of a dimension (or of several) may vary."""
    _mark_dims(t, "_dynamo_weak_dynamic_indices", _as_dims(index))


def mark_static(t: Any, index: int | list[Any] | tuple[Any, ...] | None = None) -> None:
    """Say that the size of a dimension (of several, or all) does not vary: another size is something new, and captured
    for itself. Of a class of modules nothing needs to be said: what they hold does not vary.
    """
    if isinstance(t, type):
        t._dynamo_marked_static = True  # type: ignore[attr-defined]
        return
    if not hasattr(t, "dim"):
        raise TypeError("issubclass() arg 1 must be a class")
    _mark_dims(t, "_dynamo_static_indices", range(t.dim()) if index is None else _as_dims(index))


def mark_static_address(t: Any, guard: bool = False) -> None:
    """Say that a tensor stays where it is: replays read it there anyway, wherever it lies."""
    if not hasattr(t, "dim"):
        raise TypeError(f"mark_static_address expects a tensor but received {type(t)}")
    t._dynamo_static_input_type = "guarded" if guard else "unguarded"


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
        self.before, THREAD_STATE.fails = THREAD_STATE.fails, self.error

    def __exit__(self, *error: Any) -> None:
        THREAD_STATE.fails = self.before


def graph_break(msg: str = "") -> None:
    """Where a compiled function would be cut in two: nothing is cut, so a function that calls this runs as it is
    written.
    """


def disallow_in_graph(fn: Any) -> Any:
    """Have a compiler leave a function (or each of a list) out: what calls it runs as it is written. AssertionError for
    what is no function.
    """
    if isinstance(fn, (list, tuple)):
        return [disallow_in_graph(one) for one in fn]
    if not callable(fn):
        raise AssertionError("disallow_in_graph expects a callable")
    return disable(fn)


def forbid_in_graph(fn: Any) -> Any:
    """`disallow_in_graph`, of functions that a compiled function must not call."""
    if isinstance(fn, (list, tuple)):
        return [forbid_in_graph(one) for one in fn]
    if not callable(fn):
        raise AssertionError("forbid_in_graph applies only to callables")
    return disable(fn)
