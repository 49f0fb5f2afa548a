"""ProfileHook: sets the thread's profile function while a capture observes executed code."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

_IS_CHEAP = sys.version_info < (3, 12)


class ProfileHook:
    """Context manager that calls a function at each call and return of this thread, then restores the earlier profile.

    CPython 3.11 borrows the function while preparing a call, and a garbage collection may run finalizers meanwhile. The
    object therefore keeps a reference as long as another profile could replace it.
    """

    __slots__ = ("before", "function")

    def __init__(self, function: Callable[[Any, str, Any], None]) -> None:
        self.function: Any = function

    def __enter__(self) -> ProfileHook:
        self.before = sys.getprofile()
        sys.setprofile(self.function)
        return self

    def __exit__(self, *error: Any) -> None:
        before = self.before
        sys.setprofile(before if callable(before) else None)
        if before is not None and not callable(before):  # a C profiler, for example cProfile.Profile
            before.enable()  # type: ignore[attr-defined]
        self.function = self.before = None

    def pause(self) -> None:
        """Stop calling the function."""
        sys.setprofile(None)

    def hide(self, call: Callable, *args: Any) -> Any:
        """Return `call(*args)`, whose calls and returns the function does not see, where that is cheap: from CPython
        3.12 on, each change of the profile rewrites the byte code of all functions.
        """
        if not _IS_CHEAP or self.function is None or sys.getprofile() is not self.function:
            return call(*args)
        sys.setprofile(None)
        try:
            return call(*args)
        finally:
            sys.setprofile(self.function)
