"""Which code a function runs: found by running it once, where not all that it could reach can be looked into.

A model of a library reaches far more than a call of it uses: loggers, registries, other models. What code that does not
run would read cannot change what a call does, so only what the code that ran reads is looked at. A later call that runs
other code is seen by the watcher, and is looked at anew.
"""

from __future__ import annotations

from typing import Any

from torchlite._settings.compiler_state import THREAD_STATE

from .profile_hook import ProfileHook

_MAX_RUNS = 3


class ExecutedCode:
    """The codes that calls of a function ran; None where nobody had to know."""

    def __init__(self) -> None:
        self.codes: set[Any] | None = None
        self.rounds = 0
        self.is_wanted = False  # whether a call ran code that none before it did

    def may_help(self) -> bool:
        """Whether one more call may show what the function runs."""
        return self.rounds < _MAX_RUNS and (self.codes is None or self.is_wanted)

    def call(self, function: Any, args: tuple, kwargs: dict) -> Any:
        """Call the function as it is written, and note what runs."""
        self.rounds, self.is_wanted = self.rounds + 1, False
        codes = self.codes = set() if self.codes is None else self.codes

        def note(frame: Any, event: str, argument: Any) -> None:
            if event == "call":
                codes.add(frame.f_code)

        THREAD_STATE.captures += 1  # programs that ask take the way that they take when they are captured
        try:
            with ProfileHook(note):
                return function(*args, **kwargs)
        finally:
            THREAD_STATE.captures -= 1

    def lacks(self, codes: set) -> bool:
        """Whether a capture met code that no call before it ran; then one more call shows it."""
        self.is_wanted = self.codes is not None and not codes <= self.codes
        return self.may_help() and self.is_wanted
