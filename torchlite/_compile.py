"""`torch._compile`: the decorator that packages put on functions that no compiler may read."""

from __future__ import annotations

from typing import Any

from ._settings.compiler_directives import disable


def _disable_dynamo(fn: Any = None, recursive: bool = True) -> Any:
    """Exclude a function from compilation and return it unchanged. Without `fn`, return a decorator.

    >>> import torchlite as torch
    >>> @torch._disable_dynamo
    ... def double(x):
    ...     return 2 * x
    >>> double(4)
    8
    """
    return disable(fn, recursive)
