"""Short tracebacks, and tracebacks that are kept as places in code until they are printed."""

from __future__ import annotations

import contextlib
import inspect
import linecache
import os
import traceback
from collections.abc import Iterator
from types import TracebackType
from typing import Any

__all__ = [
    "CapturedTraceback", "format_frame", "format_traceback_short", "report_compile_source_on_error", "shorten_filename",
]  # fmt: skip

_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))


def shorten_filename(fn: str, *, base: str | None = None) -> str:
    """Return a path relative to the folder of the package, or of `base`; others unchanged.

    >>> from torchlite.utils._traceback import shorten_filename
    >>> shorten_filename("/home/me/program.py", base="/home/me")
    'program.py'
    """
    base = _ROOT if base is None else base
    try:
        shared = os.path.commonpath([base, fn])
    except ValueError:
        return fn
    return fn[len(shared) + 1 :] if shared == base else fn


def format_frame(frame: Any, *, base: str | None = None, line: bool = False) -> str:
    """Return the place of a frame's summary in one line, with the line's text if `line`."""
    text = f"{frame.line}  # " if line else ""
    return f"{text}{shorten_filename(frame.filename, base=base)}:{frame.lineno} in {frame.name}"


def format_traceback_short(tb: TracebackType | None) -> str:
    """Return the innermost place of a traceback in one line."""
    return format_frame(traceback.extract_tb(tb)[-1])


@contextlib.contextmanager
def report_compile_source_on_error() -> Iterator[None]:
    """A block whose errors show the lines of generated code.

    Code that was compiled with its text as the global `__compile_source__` gets a place in `linecache`.
    """
    try:
        yield
    except Exception as error:
        tb = error.__traceback__
        while tb is not None:
            source = tb.tb_frame.f_globals.get("__compile_source__")
            name = tb.tb_frame.f_code.co_filename
            if isinstance(source, str) and not os.path.exists(name):
                linecache.cache[name] = (len(source), None, source.splitlines(True), name)
            tb = tb.tb_next
        raise


class CapturedTraceback:
    """The frames of a thread at one time, as places in code: the objects in the frames are not kept.

    >>> from torchlite.utils._traceback import CapturedTraceback
    >>> def place():
    ...     return CapturedTraceback.extract()
    >>> place().summary()[-1].name
    'place'
    """

    __slots__ = ("skip", "tb")

    def __init__(self, tb: Any, skip: int = 0) -> None:
        self.tb, self.skip = tb, skip

    @staticmethod
    def extract(*, script: bool = False, cpp: bool = False, skip: int = 0) -> CapturedTraceback:
        """Capture the caller's frames, without the innermost `skip`. There are no other than Python's frames.

        script, cpp: PyTorch's frames of TorchScript and C++, of which there are none.
        """
        frame = inspect.currentframe()
        frame = None if frame is None else frame.f_back
        for _ in range(skip):
            frame = None if frame is None else frame.f_back
        places = [(f.f_code, line) for f, line in traceback.walk_stack(frame)] if frame is not None else []
        return CapturedTraceback(places[::-1], skip)

    def cleanup(self) -> None:
        """Drop the frames."""
        self.tb = None

    def summary(self) -> traceback.StackSummary:
        """Return the frames as `traceback.StackSummary`, outermost first; none after `cleanup`."""
        return traceback.StackSummary.from_list(
            [(code.co_filename, line, code.co_name, None) for code, line in self.tb or ()]
        )

    def format(self) -> list[str]:
        """Return the frames' text, an entry each."""
        return traceback.format_list(self.summary())

    @staticmethod
    def format_all(tbs: Any) -> list[list[str] | None]:
        """Return the texts of several; None for what is no CapturedTraceback."""
        return [None if tb is None else tb.format() for tb in tbs]

    def __getstate__(self) -> Any:
        return None, {"tb": None, "skip": self.skip}  # code objects are not pickled

    def __setstate__(self, state: Any) -> None:
        self.tb, self.skip = state[1]["tb"], state[1]["skip"]
