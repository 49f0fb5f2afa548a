"""Rules that packages register for the loops of PyTorch's own compiler. torchlite computes each op by its kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

lowerings: dict[Any, Callable] = {}


def register_lowering(aten_fn: Any, *args: Any, **options: Any) -> Callable[[Callable], Callable]:
    """Return a decorator that keeps a function in `lowerings`, for an overload or a list of them.

    >>> from torchlite._inductor.lowering import lowerings, register_lowering
    >>> rule = register_lowering("op", type_promotion_kind=None)(lambda x: x)
    >>> lowerings.pop("op") is rule
    True
    """

    def decorator(function: Callable) -> Callable:
        for one in aten_fn if isinstance(aten_fn, (list, tuple)) else (aten_fn,):
            lowerings[one] = function
        return function

    return decorator


def to_dtype(x: Any, dtype: Any, copy: bool = False) -> NoReturn:
    """Raise NotImplementedError: no loops are written from these rules."""
    raise NotImplementedError("torchlite has no loops of PyTorch's own compiler")
