"""ProfileHook: sets the thread's profile function while a capture observes executed code."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any


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
