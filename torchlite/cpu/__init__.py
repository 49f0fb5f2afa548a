"""The CPU in the form of `torch.cuda`: one device, which runs synchronously."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from torchlite._settings.module_dir import make_module_dir

from . import amp
from ._capabilities import cpu_capability

__all__ = [
    "Event", "Stream", "amp", "current_device", "current_stream", "device_count", "get_capabilities", "is_available",
    "is_initialized", "set_device", "stream", "synchronize",
]  # fmt: skip


class Stream:
    """A queue of work of the CPU: the only one, which is empty whenever a call returns.

    Args:
        priority: No effect.

    Example:
        >>> torch.cpu.Stream().query()
        True
    """

    def __init__(self, priority: int = -1):
        pass

    def synchronize(self) -> None:
        """Returns at once: nothing is pending."""

    def query(self) -> bool:
        """True: everything has run."""
        return True

    def record_event(self, event: Event | None = None) -> Event:
        """Returns the event.

        Args:
            event: An event. Default: a new one.
        """
        return event or Event()

    def wait_event(self, event: Event) -> None:
        """Returns at once: nothing is pending.

        Args:
            event: No effect.
        """

    def wait_stream(self, stream: Stream) -> None:
        """Returns at once: nothing is pending.

        Args:
            stream: No effect.
        """


class Event:
    """A point in the work of the CPU's stream, which is always complete.

    Example:
        >>> torch.cpu.Event().query()
        True
    """

    def query(self) -> bool:
        """True: everything has run."""
        return True

    def record(self, stream: Stream | None = None) -> None:
        """Returns at once.

        Args:
            stream: No effect.
        """

    def synchronize(self) -> None:
        """Returns at once: nothing is pending."""

    def wait(self, stream: Stream | None = None) -> None:
        """Returns at once: nothing is pending.

        Args:
            stream: No effect.
        """


_stream = Stream()


def is_available() -> bool:
    """Returns True.

    Example:
        >>> torch.cpu.is_available()
        True
    """
    return True


def is_initialized() -> bool:
    """Returns True.

    Example:
        >>> torch.cpu.is_initialized()
        True
    """
    return True


def device_count() -> int:
    """Returns 1.

    Example:
        >>> torch.cpu.device_count()
        1
    """
    return 1


def current_device() -> str:
    """Returns "cpu".

    Example:
        >>> torch.cpu.current_device()
        'cpu'
    """
    return "cpu"


def set_device(device: Any) -> None:
    """Has no effect: there is one device.

    Args:
        device: Has no effect.

    Example:
        >>> torch.cpu.set_device("cpu")
    """


def current_stream(device: Any = None) -> Stream:
    """Returns the only stream of the CPU.

    Args:
        device: Has no effect.

    Example:
        >>> torch.cpu.current_stream().query()
        True
    """
    return _stream


def stream(stream: Stream | None) -> contextlib.AbstractContextManager:
    """Returns a context manager that has no effect.

    Args:
        stream: No effect: the CPU has one stream.

    Example:
        >>> import torchlite as torch
        >>> with torch.cpu.stream(torch.cpu.Stream()):
        ...     torch.cpu.current_stream().query()
        True
    """
    return contextlib.nullcontext()


def synchronize(device: Any = None) -> None:
    """Returns at once: nothing is pending.

    Args:
        device: Has no effect.

    Example:
        >>> torch.cpu.synchronize()
    """


def get_capabilities() -> Mapping[str, Any]:
    """Returns what the processor has: the architecture, the number of cores, and on x86-64 its instruction sets.

    Example:
        >>> torch.cpu.get_capabilities()["num_logical_cores"] >= 1
        True
    """
    return MappingProxyType(cpu_capability())


def _has(*names: str) -> bool:
    return all(cpu_capability().get(name, False) for name in names)


def _is_avx2_supported() -> bool:
    return _has("avx2", "fma3")


def _is_avx512_supported() -> bool:
    return _has("avx512_f", "avx512_vl", "avx512_bw", "avx512_dq")


def _is_avx512_bf16_supported() -> bool:
    return _has("avx512_bf16")


def _is_vnni_supported() -> bool:
    return _has("avx512_vnni")


def _is_amx_tile_supported() -> bool:
    return _has("amx_tile")


def _is_amx_fp16_supported() -> bool:
    return _has("amx_tile", "amx_fp16")


__dir__ = make_module_dir(globals())
