"""The CPU in the form of `torch.cuda`: one device, which runs synchronously."""

from __future__ import annotations

import contextlib
from typing import Any

from torchlite._settings.module_dir import make_module_dir

from . import amp

__all__ = [
    "Event", "Stream", "amp", "current_device", "current_stream", "device_count", "is_available", "is_initialized",
    "set_device", "stream", "synchronize",
]  # fmt: skip


class Stream:
    """A queue of work: the only one, which is empty whenever a call returns."""

    def __init__(self, priority: int = -1):
        pass

    def synchronize(self) -> None:
        """Nothing to wait for."""

    def query(self) -> bool:
        """True: everything has run."""
        return True

    def record_event(self, event: Event | None = None) -> Event:
        """Return the event, by default a new one."""
        return event or Event()

    def wait_event(self, event: Event) -> None:
        """Nothing to wait for."""

    def wait_stream(self, stream: Stream) -> None:
        """Nothing to wait for."""


class Event:
    """A point in the stream's work, which is always complete."""

    def query(self) -> bool:
        """True: everything has run."""
        return True

    def record(self, stream: Stream | None = None) -> None:
        """Accepted."""

    def synchronize(self) -> None:
        """Nothing to wait for."""

    def wait(self, stream: Stream | None = None) -> None:
        """Nothing to wait for."""


_stream = Stream()


def is_available() -> bool:
    """True."""
    return True


def is_initialized() -> bool:
    """True."""
    return True


def device_count() -> int:
    """1."""
    return 1


def current_device() -> str:
    """ "cpu"."""
    return "cpu"


def set_device(device: Any) -> None:
    """Accepted without effect: there is one device."""


def current_stream(device: Any = None) -> Stream:
    """Return the only stream. `device` has no effect: the CPU has one stream."""
    return _stream


def stream(stream: Stream | None) -> contextlib.AbstractContextManager:
    """A context manager without effect.

    `stream` has no effect: the CPU has one stream.

    >>> import torchlite as torch
    >>> with torch.cpu.stream(torch.cpu.Stream()):
    ...     torch.cpu.current_stream().query()
    True
    """
    return contextlib.nullcontext()


def synchronize(device: Any = None) -> None:
    """Nothing to wait for."""


__dir__ = make_module_dir(globals())
