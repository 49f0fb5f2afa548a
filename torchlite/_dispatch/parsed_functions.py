"""Functions that are no records, with the calls that PyTorch's parser takes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from .error_translation import filter_traceback
from .interceptors import call_override

_Function = TypeVar("_Function", bound=Callable[..., Any])


def parsed(public: str, **renamed: str) -> Callable[[_Function], _Function]:
    """Decorator: the function takes the calls of a recorded public name. Keywords may be NumPy's names, and deprecated
    forms have their arguments in another order. Other calls are TypeErrors with the parser's message.

    Args:
        public: The name in `signatures.txt`, such as ``"Tensor.type_as"``. The tensor of a method is no argument of its
            signatures.
        renamed: Parameters of the function by the names that the signatures have.
    """
    is_method = public.startswith("Tensor.")

    def decorate(function: _Function) -> _Function:
        code = function.__code__
        parameters = code.co_varnames[: code.co_argcount]

        def bound(args: tuple, kwargs: dict) -> dict[str, Any]:
            from .arg_parser import match_signature  # loaded when a call needs it

            found = match_signature(public, args[is_method:], kwargs) or {}
            return {renamed.get(name, name): value for name, value in found.items()}

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            given = args[:is_method]
            try:
                if kwargs:
                    return function(*given, **bound(args, kwargs))
                try:
                    return function(*args)
                except (TypeError, AttributeError):
                    names = bound(args, kwargs)
                    if (*names,) == parameters[is_method:][: len(names)]:
                        raise  # the call is the same
                    return function(*given, **names)
            except Exception as error:
                if isinstance(error, (TypeError, AttributeError)):  # an argument of a class with `__torch_function__`
                    found = call_override(call, args, kwargs or None)
                    if found is not NotImplemented:
                        return found
                filter_traceback()
                raise

        call.parsed_as = public  # type: ignore[attr-defined]
        return call  # type: ignore[return-value]

    return decorate
