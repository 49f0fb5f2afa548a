"""Decorators of functions that run by RPC."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


def async_execution(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Marks a function that returns a `torch.futures.Future`, whose value is the result of the call.

    The thread that runs the function is free once it returns. The caller gets the value when the future has it.

    Args:
        fn: The function.

    Example:
        >>> @torch.distributed.rpc.functions.async_execution
        ... def later():
        ...     return torch.futures.Future()
        >>> later().done()
        False
    """

    @functools.wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    wrapper._wrapped_async_rpc_function = fn  # type: ignore[attr-defined]
    return wrapper
