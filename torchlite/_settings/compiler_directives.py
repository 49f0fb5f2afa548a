"""Directives of programs to compilers: marks on functions, and the state of each thread.

`torch.compiler` and `torch._dynamo` offer them; the compiler reads the marks and the state.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import types
from collections.abc import Callable, Iterator
from typing import Any

from .compiler_state import PROCESS_STATE
from .compiler_state import THREAD_STATE as _STATE


@contextlib.contextmanager
def exporting() -> Iterator[None]:
    """While entered, programs that ask are told that this thread exports them."""
    _STATE.exports += 1
    try:
        yield
    finally:
        _STATE.exports -= 1


def is_compiling() -> bool:
    """Whether a compiler or an export reads the function that calls this.

    >>> @torchlite.compile
    ... def f(x):
    ...     if not torchlite.compiler.is_compiling():
    ...         print("as it is written")
    ...     return x + 1
    >>> f(torchlite.ones(1))
    tensor([2.])
    """
    return _STATE.exports > 0 or _STATE.captures > 0


def is_dynamo_compiling() -> bool:
    """Whether `torch.compile` reads the function that calls this: while it records a call."""
    return _STATE.captures > 0


def is_exporting() -> bool:
    """Whether the function that calls this is being exported."""
    return _STATE.exports > 0


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """Keep the compiler from a function (or class): it is returned as it is. Without `fn` a decorator.

    >>> @torchlite.compiler.disable
    ... def double(x):
    ...     return 2 * x
    >>> double(4)
    8
    """
    if fn is None:
        return functools.partial(disable, recursive=recursive, reason=reason)
    if not callable(fn):
        raise AssertionError("fn must be callable")
    if recursive and isinstance(fn, types.FunctionType):
        fn._torchdynamo_disable, fn._torchdynamo_disable_msg = True, reason  # type: ignore[attr-defined]
    return fn


def allow_in_graph(fn: Any) -> Any:
    """Have a compiler take a function (or each of a list) for one that computes and does nothing else, whatever is in
    it: it is returned. AssertionError for what is no function.
    """
    if isinstance(fn, (list, tuple)):
        return [allow_in_graph(one) for one in fn]
    if not callable(fn):
        raise AssertionError("allow_in_graph expects a callable")
    if isinstance(fn, types.FunctionType):
        fn._torchlite_allowed = True  # type: ignore[attr-defined]
    else:
        PROCESS_STATE.allowed[id(fn)] = fn
    return fn


def assume_constant_result(fn: Any) -> Any:
    """Have a compiler take what a function returned once as what it returns always: the function is returned."""
    fn._dynamo_marked_constant = True
    return fn


def substitute_in_graph(
    original_fn: Callable[..., Any],
    *,
    can_constant_fold_through: bool = False,
    skip_signature_check: bool = False,
    is_embedded_type: bool = False,
) -> Callable[[Any], Any]:
    """A decorator of what a compiler reads in place of `original_fn`. Calls are captured while they run, so the
    original is called; that it has such a form says that it computes and does nothing else. TypeError for what is no
    function, and where the parameters are others.
    """
    if not callable(original_fn):
        raise TypeError(f"substitute_in_graph expects a function but got {type(original_fn)}")

    def decorator(traceable_fn: Any) -> Any:
        if not skip_signature_check:
            both = [inspect.signature(f) for f in (original_fn, traceable_fn)]
            names = [[(p.name, p.kind, p.default) for p in one.parameters.values()] for one in both]
            if names[0] != names[1]:
                raise TypeError(f"Signature mismatch between {original_fn} and {traceable_fn}: {both[0]} != {both[1]}")
        allow_in_graph(original_fn)
        return traceable_fn

    return decorator


class set_stance:
    """How compiled functions act in this thread from here on, or within a `with` or a function that this decorates:
    with "force_eager" as they are written; with the others they are captured and replayed.
    """

    _STANCES = ("default", "eager_then_compile", "aot_eager_then_compile", "force_eager", "eager_on_recompile",
                "fail_on_recompile")  # fmt: skip

    def __init__(
        self, stance: str = "default", *, skip_guard_eval_unsafe: bool = False, force_backend: Any = None
    ) -> None:
        if stance not in self._STANCES:
            raise RuntimeError(f"invalid torch.compile stance '{stance}'")
        if force_backend is not None and stance != "default":
            raise RuntimeError("non-default stance cannot have force_backend set")
        self.stance, self.before = stance, _STATE.stance
        _STATE.stance = stance

    def __call__(self, fn: Any) -> Any:
        _STATE.stance = self.before

        @functools.wraps(fn)
        def run(*args: Any, **kwargs: Any) -> Any:
            with set_stance(self.stance):
                return fn(*args, **kwargs)

        return run

    def __enter__(self) -> None:
        _STATE.stance = self.stance

    def __exit__(self, *error: Any) -> None:
        _STATE.stance = self.before
