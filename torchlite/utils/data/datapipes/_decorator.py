"""Decorators that declare DataPipes non-deterministic or check the types of their inputs and outputs."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .datapipe import IterDataPipe

__all__ = ["argument_validation", "guaranteed_datapipes_determinism", "non_deterministic"]


class guaranteed_datapipes_determinism:
    """Context manager in which a `non_deterministic` pipe cannot be constructed.

    Example:
        >>> from torchlite.utils.data import guaranteed_datapipes_determinism
        >>> from torchlite.utils.data.datapipes.iter import IterableWrapper
        >>> with guaranteed_datapipes_determinism():
        ...     pipe = IterableWrapper([1, 2])
        >>> list(pipe)
        [1, 2]

    See also:
        `non_deterministic`.
    """

    on = False

    def __init__(self) -> None:
        self.before = guaranteed_datapipes_determinism.on
        guaranteed_datapipes_determinism.on = True

    def __enter__(self) -> None: ...

    def __exit__(self, *error: Any) -> None:
        guaranteed_datapipes_determinism.on = self.before


class non_deterministic:
    """Decorator that marks a pipe whose items have no fixed order.

    Args:
        arg: The class of the pipe. Or a function from the pipe's arguments to a bool, whether the order is not fixed;
            the object then decorates the class.

    Raises:
        TypeError: ``arg`` or the decorated object has the wrong type; or such a pipe is constructed within
            `guaranteed_datapipes_determinism`.

    Example:
        >>> from torchlite.utils.data import IterDataPipe, guaranteed_datapipes_determinism, non_deterministic
        >>> @non_deterministic
        ... class Arriving(IterDataPipe):
        ...     def __iter__(self):
        ...         yield from {"b", "a"}
        >>> with guaranteed_datapipes_determinism():
        ...     try:
        ...         Arriving()
        ...     except TypeError as error:
        ...         print(str(error).split(",")[0])
        Arriving is non-deterministic
    """

    def __init__(self, arg: type[IterDataPipe] | Callable[..., bool]) -> None:
        self.cls: Any = None
        self.decides: Any = None
        if isinstance(arg, type):
            if not issubclass(arg, IterDataPipe):
                raise TypeError(
                    f"Only `IterDataPipe` can be decorated with `non_deterministic`, but {arg.__name__} is found"
                )
            self.cls = arg
        elif callable(arg):
            self.decides = arg
        else:
            raise TypeError(f"{arg} can not be decorated by non_deterministic")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.cls is None:
            pipe = args[0]
            if not isinstance(pipe, type) or not issubclass(pipe, IterDataPipe):
                raise TypeError(f"Only `IterDataPipe` can be decorated, but {pipe.__name__} is found")
            self.cls = pipe
            return functools.partial(self._made, *args[1:], **kwargs)
        return self._made(*args, **kwargs)

    def _made(self, *args: Any, **kwargs: Any) -> Any:
        if self.decides is not None:
            answer = self.decides(*args, **kwargs)
            if not isinstance(answer, bool):
                raise TypeError(
                    f"The returned value of `non_deterministic` decorator's function should be bool, not {type(answer)}"
                )
        else:
            answer = True
        if answer and guaranteed_datapipes_determinism.on:
            raise TypeError(
                f"{self.cls.__name__} is non-deterministic, but you set 'guaranteed_datapipes_determinism'. You can "
                "turn off determinism for this DataPipe if that is acceptable for your application"
            )
        return self.cls(*args, **kwargs)


def argument_validation(f: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator of a pipe's ``__init__`` that calls it unchanged.

    Annotations are not compared with the arguments: PyTorch has turned that off.

    Args:
        f: The method.

    Returns:
        A method with the same name and result.

    Example:
        >>> from torchlite.utils.data import IterDataPipe, argument_validation
        >>> class Source(IterDataPipe):
        ...     @argument_validation
        ...     def __init__(self, items: list):
        ...         self.items = items
        ...     def __iter__(self):
        ...         return iter(self.items)
        >>> list(Source((1, 2)))
        [1, 2]
    """

    @functools.wraps(f)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return f(*args, **kwargs)

    return wrapper
