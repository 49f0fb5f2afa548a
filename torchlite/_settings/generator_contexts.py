"""Generators that run within a context manager, and their callers outside of it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

CLASS_MESSAGE = (
    "Cannot decorate classes; it is ambiguous whether or not only the constructor or all methods should have the "
    "context manager applied; additionally, decorating a class at definition-site will prevent use of the identifier "
    "as a conventional type.  To specify which methods to decorate, decorate each of them individually."
)


def wrap_generator(function: Callable, make_context: Callable[[], Any]) -> Callable:
    """A generator function whose steps each run within a new context manager."""

    @functools.wraps(function)
    def inside(*args: Any, **kwargs: Any) -> Any:
        generator = function(*args, **kwargs)
        step = functools.partial(generator.send, None)
        while True:
            try:
                with make_context():
                    item = step()
            except StopIteration as stop:
                return stop.value
            try:
                step = functools.partial(generator.send, (yield item))
            except GeneratorExit:
                with make_context():
                    generator.close()
                raise
            except BaseException as error:  # thrown into the generator, as Python does
                step = functools.partial(generator.throw, error)

    return inside
