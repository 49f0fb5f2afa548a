"""Grad modes: per thread; context managers and decorators."""

from __future__ import annotations

import functools
import inspect

from .._dispatch.runtime import MODE, set_grad


class _ModeSetter:
    """Sets grad mode for a block, a function or a generator."""

    def __init__(self):
        self.before: list = []

    def __call__(self, function):
        if isinstance(function, type):
            raise RuntimeError(f"{type(self).__name__} cannot decorate a class; decorate its methods")
        if inspect.isgeneratorfunction(function):
            return self._around_generator(function)

        @functools.wraps(function)
        def inside(*args, **kwargs):
            with self.clone():
                return function(*args, **kwargs)

        return inside

    def _around_generator(self, function):
        @functools.wraps(function)
        def inside(*args, **kwargs):
            made = function(*args, **kwargs)
            answer = None
            while True:
                with self.clone():
                    try:
                        item = made.send(answer)
                    except StopIteration as stop:
                        return stop.value
                answer = yield item

        return inside

    def clone(self):
        return type(self)()

    def __exit__(self, *exc):
        grad, MODE.inference = self.before.pop()
        set_grad(grad)

    def _set(self, grad: bool, inference: bool):
        self.before.append((MODE.grad, MODE.inference))
        MODE.inference = inference
        set_grad(grad)


class no_grad(_ModeSetter):
    """Nothing is recorded inside.

    >>> import torchlite as torch
    >>> x = torch.ones(1, requires_grad=True)
    >>> with torch.no_grad():
    ...     (x * 2).requires_grad
    False
    """

    def __new__(cls, function=None):
        made = object.__new__(cls)
        if function is None:
            return made
        made.__init__()
        return made(function)

    def __init__(self, function=None):
        super().__init__()

    def __enter__(self):
        self._set(False, MODE.inference)


class enable_grad(no_grad):
    """Ops are recorded inside, also within `no_grad`."""

    def __enter__(self):
        self._set(True, MODE.inference)


class inference_mode(_ModeSetter):
    """Like `no_grad`, for code whose results never meet autograd. `inference_mode(False)` leaves it."""

    def __new__(cls, mode=True):
        made = object.__new__(cls)
        if callable(mode):
            made.__init__()
            return made(mode)
        return made

    def __init__(self, mode=True):
        super().__init__()
        self.mode = True if callable(mode) else mode

    def __enter__(self):
        self._set(not self.mode and (MODE.grad or MODE.inference), self.mode)

    def clone(self):
        return type(self)(self.mode)


class set_grad_enabled(_ModeSetter):
    """Turn recording on or off: at once when called, and until the end of the block when used in `with`."""

    def __init__(self, mode: bool):
        super().__init__()
        self.mode = bool(mode)
        self._set(self.mode, MODE.inference)

    def __enter__(self):
        pass

    def __call__(self, function):
        self.__exit__()
        return super().__call__(function)

    def clone(self):
        return type(self)(self.mode)


def is_grad_enabled() -> bool:
    """Whether ops are being recorded in this thread."""
    return MODE.grad


def is_inference_mode_enabled() -> bool:
    """Whether this thread is in inference mode."""
    return MODE.inference
