"""The profile function of a thread, while a capture looks at what runs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any


class ProfileHook:
    """While entered, Python calls a function at each call and return of this thread. Afterwards the profile of before
    is back: that of a profiler, or of a capture that a finalizer interrupted.

    CPython 3.11 borrows the function while it prepares a call of it, and a collection may run finalizers meanwhile. So
    this object holds the function as long as another profile could take its place.
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
        if before is not None and not callable(before):  # one of C's, as cProfile.Profile
            before.enable()  # type: ignore[attr-defined]
        self.function = self.before = None

    def pause(self) -> None:
        """Call the function no more."""
        sys.setprofile(None)
