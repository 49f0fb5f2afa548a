"""`compatibility`: marks torch.fx names as backward compatible."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["compatibility"]

_BACK_COMPAT_OBJECTS: dict[Any, None] = {}
_MARKED_WITH_COMPATIBILITY: dict[Any, None] = {}

_Marked = TypeVar("_Marked")


def compatibility(is_backward_compatible: bool) -> Callable[[_Marked], _Marked]:
    """Return a decorator that marks a function or class as backward compatible or not.

    >>> from torchlite.fx._compatibility import compatibility
    >>> @compatibility(is_backward_compatible=True)
    ... def function(): ...
    """

    def mark(thing: _Marked) -> _Marked:
        if is_backward_compatible:
            _BACK_COMPAT_OBJECTS.setdefault(thing)
        _MARKED_WITH_COMPATIBILITY.setdefault(thing)
        return thing

    return mark
