"""Warnings that a call gives while it is recorded: steps of its program, which replays give again."""

from __future__ import annotations

import contextlib
import sys
import threading
import warnings
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def recorded_warnings(capture: Any, outermost: Any) -> Iterator[None]:
    """While entered the capture is told of its thread's warnings. outermost: the code of the frame that calls the
    program; a warning about a line further out is none that could be given again.
    """
    plain = warnings.warn

    def warn(message: Any, category: Any = None, stacklevel: int = 1, source: Any = None, **more: Any) -> None:
        given = None
        if capture.thread == threading.get_ident() and not capture.depth and capture.failure is None:
            frame: Any = sys._getframe(1)
            place = _place(frame, stacklevel, outermost)
            while frame.f_code is not outermost:
                frame = frame.f_back
            if isinstance(message, str) and source is None and not more and place is not None:
                given = (message, UserWarning if category is None else category, place)
            else:
                capture.fail("it warns")
        if given is None:
            plain(message, category, stacklevel + 1, source, **more)
        else:
            capture.warned(warn_again, given, frame)

    warnings.warn = warn  # type: ignore[assignment]
    try:
        yield
    finally:
        warnings.warn = plain


def _place(frame: Any, level: int, outermost: Any) -> tuple[str, int, str] | int | None:
    """The file, line and module that a warning is about, or how many calls outside of the compiled function it lies.
    None where a later call could not name it.
    """
    for further in range(1, level):
        if frame.f_code is outermost:
            return level - further
        frame = frame.f_back
        if frame is None:
            return None
    if frame.f_code is outermost:
        return 1
    name = frame.f_globals.get("__name__")
    if getattr(sys.modules.get(name), "__dict__", None) is not frame.f_globals:
        return None
    return frame.f_code.co_filename, frame.f_lineno, name


def warn_again(message: str, category: Any, place: tuple[str, int, str] | int, frame: Any = None) -> None:
    """Warn about a line, as code at that line would. frame: where the search for who called the compiled function
    begins.
    """
    if isinstance(place, int):
        frame = sys._getframe(1) if frame is None else frame
        while frame.f_back is not None and _is_of_the_compiler(frame):
            frame = frame.f_back
        for _ in range(place - 1):
            frame = frame.f_back or frame
        space, path, line = frame.f_globals, frame.f_code.co_filename, frame.f_lineno
        name = space.get("__name__") or "<string>"
    else:
        path, line, name = place
        space = vars(sys.modules[name])
    warnings.warn_explicit(message, category, path, line, name, space.setdefault("__warningregistry__", {}))


def _is_of_the_compiler(frame: Any) -> bool:
    name = frame.f_globals.get("__name__")
    return name is None or str(name).partition(".")[0] == "torchlite"
