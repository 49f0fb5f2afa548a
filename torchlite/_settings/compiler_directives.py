"""Compiler directives of programs: marks on functions, and the state of each thread.

`torch.compiler` and `torch._dynamo` export them; the compiler reads the marks and the state.
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
    """Context manager under which `is_exporting()` is True in this thread."""
    _STATE.exports += 1
    try:
        yield
    finally:
        _STATE.exports -= 1


def is_compiling() -> bool:
    """True if a compiler or an export captures the calling function.

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
    """True if `torch.compile` captures the calling function."""
    return _STATE.captures > 0


def is_exporting() -> bool:
    """True if the calling function is being exported."""
    return _STATE.exports > 0


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """Exclude a function or class from compilation and return it unchanged. Without `fn`, return a decorator.

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
    """Declare that a function (or each of a list) is pure, and return it. Raise AssertionError for a non-function."""
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
    """Declare that a function always returns the same value, and return it."""
    fn._dynamo_marked_constant = True
    return fn


def substitute_in_graph(
    original_fn: Callable[..., Any],
    *,
    can_constant_fold_through: bool = False,
    skip_signature_check: bool = False,
    is_embedded_type: bool = False,
) -> Callable[[Any], Any]:
    """Return a decorator for a replacement that a compiler would trace instead of `original_fn`. Captures run the
    original; the replacement marks it as pure. Raise TypeError for a non-function and for different parameters.

    `can_constant_fold_through` and `is_embedded_type` have no effect: no bytecode is read.
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
    """Set how compiled functions run in this thread; a call, context manager or decorator. "force_eager" runs functions
    eagerly; other stances capture and replay them.

    `skip_guard_eval_unsafe` has no effect: guards are always evaluated.
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
