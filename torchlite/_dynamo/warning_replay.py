"""Warnings in captured calls: recorded as program steps and re-emitted by replays."""

from __future__ import annotations

import sys
import threading
import warnings
from typing import Any

from torchlite._dispatch.tracing import Trace, module_view, unwrap_traced


class WarningRecorder(Trace):
    """Context manager that reports this thread's warnings to the capture. outermost: the code of the frame that calls
    the program. Warnings about frames further out cannot be replayed.

    It sees `warnings.warn` calls by module name in user code and torchlite. Other ways to warn are C calls, which end a
    capture.
    """

    def __init__(self, capture: Any, outermost: Any) -> None:
        super().__init__()
        self.capture, self.outermost = capture, outermost
        self.replaced[id(warnings.warn)] = self._record_warning

    def __enter__(self) -> WarningRecorder:
        super().__enter__()
        _install_warnings_proxy()
        for space, names in self.capture.state.spaces:
            for name in names:
                if unwrap_traced(space.get(name)) is warnings:
                    self.rebind(space, name, warnings)
        return self

    def _record_warning(
        self, message: Any, category: Any = None, stacklevel: int = 1, source: Any = None, **more: Any
    ) -> None:
        given, capture = None, self.capture
        if capture.thread == threading.get_ident() and not capture.depth and capture.failure is None:
            frame: Any = sys._getframe(1)
            place = _locate_warning(frame, stacklevel, self.outermost)
            while frame.f_code is not self.outermost:
                frame = frame.f_back
            if isinstance(message, str) and source is None and not more and place is not None:
                given = (message, UserWarning if category is None else category, place)
            else:
                capture.fail("it warns")
        if given is None:
            warnings.warn(message, category, stacklevel + 1, source, **more)
        else:
            capture.record_warning(reemit_warning, given, frame)


def _install_warnings_proxy() -> None:
    """Route torchlite's warnings through a proxy of the `warnings` module, permanently. It is transparent outside of
    captures.
    """
    view = module_view(warnings)
    for name, module in list(sys.modules.items()):
        if name.startswith("torchlite") and name != __name__ and vars(module).get("warnings") is warnings:
            vars(module)["warnings"] = view


def _locate_warning(frame: Any, level: int, outermost: Any) -> tuple[str, int, str] | int | None:
    """Return the file, line and module of a warning, or how many calls outside the compiled function it lies. Return
    None if a later call cannot name the location.
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


def reemit_warning(message: str, category: Any, place: tuple[str, int, str] | int, frame: Any = None) -> None:
    """Emit a warning at a given source location. frame: where the search for the caller of the compiled function
    begins.
    """
    if isinstance(place, int):
        frame = sys._getframe(1) if frame is None else frame
        while frame.f_back is not None and _is_compiler_frame(frame):
            frame = frame.f_back
        for _ in range(place - 1):
            frame = frame.f_back or frame
        space, path, line = frame.f_globals, frame.f_code.co_filename, frame.f_lineno
        name = space.get("__name__") or "<string>"
    else:
        path, line, name = place
        space = vars(sys.modules[name])
    warnings.warn_explicit(message, category, path, line, name, space.setdefault("__warningregistry__", {}))


def _is_compiler_frame(frame: Any) -> bool:
    name = frame.f_globals.get("__name__")
    return name is None or str(name).partition(".")[0] == "torchlite"
