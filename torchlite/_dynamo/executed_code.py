"""Finds the code objects that a function executes by running it once under a profile hook.

A library's model can reach far more code than a call runs: loggers, registries, other models. Code that does not run
cannot influence a call, so guards cover only names read by executed code. If a later call runs other code, the
side-effect monitor sees it and the walk is repeated.
"""

from __future__ import annotations

from typing import Any

from torchlite._settings.compiler_state import THREAD_STATE

from .sys_setprofile import ProfileHook

_MAX_RUNS = 3


class ExecutedCode:
    """Code objects that calls of a function executed; None if not needed yet."""

    def __init__(self) -> None:
        self.codes: set[Any] | None = None
        self.rounds = 0
        self.is_wanted = False  # True if a call ran code that no earlier call ran

    def may_help(self) -> bool:
        """True if one more call may reveal further executed code."""
        return self.rounds < _MAX_RUNS and (self.codes is None or self.is_wanted)

    def call(self, function: Any, args: tuple, kwargs: dict) -> Any:
        """Call the function eagerly and note the executed code."""
        self.rounds, self.is_wanted = self.rounds + 1, False
        codes = self.codes = set() if self.codes is None else self.codes

        def note_code(frame: Any, event: str, argument: Any) -> None:
            if event == "call":
                codes.add(frame.f_code)

        THREAD_STATE.captures += 1  # `is_compiling()` is True, as in a capture
        try:
            with ProfileHook(note_code):
                return function(*args, **kwargs)
        finally:
            THREAD_STATE.captures -= 1

    def has_new_code(self, codes: set) -> bool:
        """True if a capture met code that no earlier call ran; one more call is then needed."""
        self.is_wanted = self.codes is not None and not codes <= self.codes
        return self.may_help() and self.is_wanted
