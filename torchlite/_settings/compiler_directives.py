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
    """Returns whether a compiler or an export captures the calling function.

    Example:
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
    """Returns whether `torch.compile` captures the calling function.

    Example:
        >>> torch.compiler.is_dynamo_compiling()
        False
    """
    return _STATE.captures > 0


def is_exporting() -> bool:
    """Returns whether the calling function is being exported.

    Example:
        >>> torch.compiler.is_exporting()
        False
    """
    return _STATE.exports > 0


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """Excludes a function or class from compilation.

    Args:
        fn: The function or class. Default: none, which returns a decorator.
        recursive: Whether functions that it calls are excluded too; ``False`` has no effect on a function. Default:
            ``True``.
        reason: Text that explains why. Default: ``None``.

    Returns:
        The same object, or a decorator.

    Raises:
        AssertionError: ``fn`` is not callable.

    Example:
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
    """Declares that a function is pure, so that captures may replay it as one step.

    Args:
        fn: A function, or a list or tuple of functions.

    Returns:
        The function, or a list of them.

    Raises:
        AssertionError: ``fn`` is not callable.

    Example:
        >>> @torch.compiler.allow_in_graph
        ... def double(x):
        ...     return 2 * x
        >>> double(4)
        8
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
    """Declares that a function always returns the same value.

    Args:
        fn: A function.

    Returns:
        The function.

    Example:
        >>> @torch.compiler.assume_constant_result
        ... def width():
        ...     return 4
        >>> width()
        4
    """
    fn._dynamo_marked_constant = True
    return fn


def substitute_in_graph(
    original_fn: Callable[..., Any],
    *,
    can_constant_fold_through: bool = False,
    skip_signature_check: bool = False,
    is_embedded_type: bool = False,
) -> Callable[[Any], Any]:
    """Returns a decorator for a replacement that a compiler may trace instead of a function.

    Captures run the original; the replacement marks it as pure.

    Args:
        original_fn: The function.
        can_constant_fold_through: No effect: no bytecode is read.
        skip_signature_check: Whether the parameters may differ. Default: ``False``.
        is_embedded_type: No effect.

    Returns:
        A decorator, which returns the replacement.

    Raises:
        TypeError: ``original_fn`` is not callable, or the replacement has other parameters.

    Example:
        >>> def double(x):
        ...     return 2 * x
        >>> @torch.compiler.substitute_in_graph(double)
        ... def traceable_double(x):
        ...     return x + x
        >>> traceable_double(4)
        8
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
    """Sets how compiled functions run in the calling thread: a call, a context manager or a decorator.

    Args:
        stance: ``"force_eager"`` runs functions eagerly. ``"eager_on_recompile"`` and ``"fail_on_recompile"`` say what
            happens where a function would be captured again. ``"default"``, ``"eager_then_compile"`` and
            ``"aot_eager_then_compile"`` capture and replay.
        skip_guard_eval_unsafe: No effect: guards are always evaluated.
        force_backend: Accepted with ``"default"`` only. Default: ``None``.

    Raises:
        RuntimeError: The stance is unknown, or ``force_backend`` comes with another stance than ``"default"``.

    Example:
        >>> double = torch.compile(lambda x: 2 * x)
        >>> with torch.compiler.set_stance("force_eager"):
        ...     double(torch.ones(1))
        tensor([2.])
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
