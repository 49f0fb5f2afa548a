"""The one stack on which autocast, tracing, vmap, profiling and user modes intercept ops."""

from __future__ import annotations

import threading

from .runtime import GLOBALS, MODE


class _Stack(threading.local):
    def __init__(self):
        self.items: list = []


stack = _Stack()
_lock = threading.Lock()


def activate(change: int) -> None:
    """Count the things, in all threads, that need the general path. The hot path tests this one number."""
    with _lock:
        GLOBALS["ACTIVE"] += change


class Interceptor:
    """While entered, every op called in this thread comes to `intercept(op, args, kwargs)`; `op(*args, **kwargs)`
    inside goes to the next one below.

    >>> import torchlite as torch
    >>> from torchlite._dispatch import Interceptor
    >>> class Names(Interceptor):
    ...     def intercept(self, op, function, args, kwargs):
    ...         print(op.name)
    ...         return function(*args, **kwargs)
    >>> x = torch.ones(2)
    >>> with Names():
    ...     y = x.exp() + 1
    exp
    add
    """

    batches = False  # whether it stands for `vmap`, and then has a method `custom` for custom Functions

    def intercept(self, op, function, args, kwargs):
        return function(*args, **kwargs)

    def __enter__(self):
        stack.items = [*stack.items, self]
        activate(1)
        return self

    def __exit__(self, *exc):
        stack.items = stack.items[:-1]
        activate(-1)


def intercepted(op, function, args, kwargs):
    """Hand the call to the topmost interceptor with the stack below it in force."""
    items = stack.items
    stack.items = items[:-1]
    try:
        return items[-1].intercept(op, function, args, kwargs)
    finally:
        stack.items = items


def custom(function, args, kwargs):
    """What a custom Function gives inside `vmap`; None where no argument stands for one example of a batch."""
    items = stack.items
    for position in range(len(items) - 1, -1, -1):
        if items[position].batches and items[position].has(args):
            stack.items = items[:position]
            try:
                return items[position].custom(function, args, kwargs)
            finally:
                stack.items = items
    return None


def batching() -> bool:
    """Whether this thread is inside `vmap`."""
    return bool(GLOBALS["ACTIVE"]) and any(item.batches for item in stack.items)


class torch_function_disabled:
    """Inside, `__torch_function__` of subclasses is not asked (per thread)."""

    def __enter__(self):
        self.before = MODE.plain
        MODE.plain = True

    def __exit__(self, *exc):
        MODE.plain = self.before
