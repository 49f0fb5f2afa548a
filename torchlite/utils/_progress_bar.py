"""Progress bars: tqdm's on a terminal where tqdm is installed, else plain lines."""

from __future__ import annotations

import sys
import time
from typing import Any

_SECONDS_BETWEEN_LINES = 10.0


class PlainProgress:
    """The part of tqdm's interface that torchlite uses, as plain lines: one for each new description, and one every ten
    seconds.
    """

    def __init__(
        self, total: float | None = None, desc: str = "", disable: bool = False, file: Any = None, unit: str = "it",
        unit_scale: bool = False, **options: Any,
    ) -> None:  # fmt: skip
        self.total, self.desc, self.disable, self.unit, self.n = total, desc, disable, unit, 0.0
        self._file, self._scale = file or sys.stderr, 1e6 if unit_scale else 1
        self._unit = f"M{unit}" if unit_scale else unit
        self._started = self._written = time.monotonic()
        self._postfix = ""

    def _format_position(self) -> str:
        if self.total:
            share = f"{100 * self.n / self.total:.0f}% of {self.total / self._scale:g}"
        else:
            share = f"{self.n / self._scale:g}"
        parts = [f"{share} {self._unit}", self._postfix, f"{time.monotonic() - self._started:.1f} s"]
        return (f"{self.desc}: " if self.desc else "") + ", ".join(filter(None, parts))

    def update(self, n: float = 1) -> None:
        """Count `n` more."""
        self.n += n
        if time.monotonic() - self._written >= _SECONDS_BETWEEN_LINES:
            self.refresh()

    def refresh(self) -> None:
        """Write a line."""
        self._written = time.monotonic()
        self.write(self._format_position())

    def set_description(self, desc: str, refresh: bool = True) -> None:
        """Set the description of the work."""
        if refresh and desc != self.desc:
            self.write(f"{desc} …")
        self.desc = desc

    def set_postfix_str(self, s: str, refresh: bool = True) -> None:
        """Set the text after the position."""
        self._postfix = s
        if refresh:
            self.refresh()

    def write(self, s: str, file: Any = None) -> None:
        """Write a line of text."""
        if not self.disable:
            print(s, file=file or self._file, flush=True)

    def close(self) -> None:
        """End the work."""

    def __enter__(self) -> PlainProgress:
        return self

    def __exit__(self, *exc: Any) -> None:
        self.close()


def choose_progress_class(file: Any = None) -> Any:
    """Return tqdm's class for a terminal if tqdm is installed, else PlainProgress."""
    isatty = getattr(sys.stderr if file is None else file, "isatty", None)
    if isatty is not None and isatty():
        try:
            from tqdm import tqdm
        except ImportError:
            return PlainProgress
        return tqdm
    return PlainProgress


def make_progress_bar(total: float | None, *, file: Any = None, **options: Any) -> Any:
    """Return a progress bar of `total` steps with tqdm's options, and its methods `update`, `set_description`,
    `set_postfix_str`, `write` and `close`.
    """
    return choose_progress_class(file)(total=total, file=file, **options)
