"""The CPU in the form of `torch.cuda`: one device, which runs synchronously."""

from __future__ import annotations

import contextlib
from typing import Any

from . import amp

__all__ = [
    "Event", "Stream", "amp", "current_device", "current_stream", "device_count", "is_available", "is_initialized",
    "set_device", "stream", "synchronize",
]  # fmt: skip


class Stream:
    """Queue of work of the CPU: there is one, and it is empty whenever a call returns.

    Args:
        priority: Has no effect.

    Example:
        >>> torch.cpu.Stream().query()
        True
    """

    def __init__(self, priority: int = -1):
        pass

    def synchronize(self) -> None:
        """Does nothing: all work is complete."""

    def query(self) -> bool:
        """Returns ``True``: all work is complete."""
        return True

    def record_event(self, event: Event | None = None) -> Event:
        """Returns an event.

        Args:
            event: The event. Default: a new one.
        """
        return event or Event()

    def wait_event(self, event: Event) -> None:
        """Does nothing: all work is complete.

        Args:
            event: Has no effect.
        """

    def wait_stream(self, stream: Stream) -> None:
        """Does nothing: all work is complete.

        Args:
            stream: Has no effect.
        """


class Event:
    """Point in the work of a CPU stream, which is always complete.

    Example:
        >>> torch.cpu.Event().query()
        True
    """

    def query(self) -> bool:
        """Returns ``True``: all work is complete."""
        return True

    def record(self, stream: Stream | None = None) -> None:
        """Does nothing: all work is complete.

        Args:
            stream: Has no effect.
        """

    def synchronize(self) -> None:
        """Does nothing: all work is complete."""

    def wait(self, stream: Stream | None = None) -> None:
        """Does nothing: all work is complete.

        Args:
            stream: Has no effect.
        """


_stream = Stream()


def is_available() -> bool:
    """Returns ``True``: there is a CPU.

    Example:
        >>> torch.cpu.is_available()
        True
    """
    return True


def is_initialized() -> bool:
    """Returns ``True``: the CPU needs no initialization.

    Example:
        >>> torch.cpu.is_initialized()
        True
    """
    return True


def device_count() -> int:
    """Returns 1: the CPU is one device.

    Example:
        >>> torch.cpu.device_count()
        1
    """
    return 1


def current_device() -> str:
    """Returns ``"cpu"``.

    Example:
        >>> torch.cpu.current_device()
        'cpu'
    """
    return "cpu"


def set_device(device: Any) -> None:
    """Does nothing: there is one device.

    Args:
        device: Has no effect.

    Example:
        >>> torch.cpu.set_device("cpu")
    """


def current_stream(device: Any = None) -> Stream:
    """Returns the stream of the CPU.

    Args:
        device: Has no effect.

    Example:
        >>> torch.cpu.current_stream().query()
        True
    """
    return _stream


def stream(stream: Stream | None) -> contextlib.AbstractContextManager:
    """Returns a context manager that does nothing: there is one stream.

    Args:
        stream: Has no effect.

    Example:
        >>> with torch.cpu.stream(torch.cpu.Stream()):
        ...     torch.cpu.current_stream().query()
        True
    """
    return contextlib.nullcontext()


def synchronize(device: Any = None) -> None:
    """Does nothing: all work is complete.

    Args:
        device: Has no effect.

    Example:
        >>> torch.cpu.synchronize()
    """
