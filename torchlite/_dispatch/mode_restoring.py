"""Restores a thread's modes when an interrupt comes between a block's end and its `__exit__`.

Blocks restore what they changed when they end. An exception from a signal handler (such as Ctrl-C) may be raised at the
first instruction of a block's `__exit__`, which then does nothing. So traces, transforms and backward passes compare
the current modes with those at their start when an error leaves them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from . import tracing
from .dispatch_state import MODE, set_grad_mode
from .hooks import saved_tensor_hooks
from .interceptors import close_stale_views, list_entered, stack


def restores_modes(function: Callable) -> Callable:
    """Decorator for a trace or transform that restores this thread's modes if an error leaves it."""

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        items, trace, forbidden = stack.items, tracing.THREAD.trace, saved_tensor_hooks.forbidden
        modes = (
            MODE.grad,
            MODE.transforms,
            MODE.forwards,
            MODE.forward,
            MODE.plain,
            MODE.torch_dispatch_disabled,
            MODE.asked,
        )
        try:
            return function(*args, **kwargs)
        except BaseException:
            _restore_modes(items, trace)
            set_grad_mode(modes[0])
            _, MODE.transforms, MODE.forwards, MODE.forward, MODE.plain, MODE.torch_dispatch_disabled, MODE.asked = (
                modes
            )
            saved_tensor_hooks.forbidden = forbidden
            raise

    return run


def _restore_modes(items: list, trace: Any) -> None:
    """End views, levels, recorders and traces that began since and have not ended. Modes that the program itself
    entered or exited are unchanged.
    """
    close_stale_views(items)
    before = list(items)
    for item in reversed(list(list_entered())):
        if item.is_scoped and not any(item is other for other in before):
            item.__exit__(None, None, None)
    while tracing.THREAD.trace is not trace and tracing.THREAD.trace is not None:
        tracing.THREAD.trace.__exit__()
