"""Context managers that also work as decorators, as `no_grad` does. External packages derive theirs from them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._settings.generator_contexts import CLASS_MESSAGE
from ..autograd.grad_mode import _DecoratorContextManager, _NoParamDecoratorContextManager

__all__ = ["_DecoratorContextManager", "_NoParamDecoratorContextManager", "context_decorator"]


class _ContextFactory(_DecoratorContextManager):
    """A factory of context managers from a function."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self.clone = make  # type: ignore[method-assign]


def context_decorator(ctx: Any, func: Callable) -> Callable:
    """Return a function that runs `func` inside `ctx`: a context manager, or a function that returns one for
    each call.
    """
    if isinstance(func, type):
        raise RuntimeError(CLASS_MESSAGE)
    return _ContextFactory(ctx if callable(ctx) and not hasattr(ctx, "__enter__") else lambda: ctx)(func)
