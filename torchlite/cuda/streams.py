"""Streams and events of CUDA devices."""

from __future__ import annotations

import ctypes
from typing import Any

from .._device import streams as _streams
from ._accelerator import cuda

__all__ = ["Event", "ExternalStream", "Stream", "StreamContext"]


class Stream(_streams.Stream):
    """Queue of work on a CUDA device.

    The work of one stream runs in order; several streams may run at the same time.

    Args:
        device: The device. Default: the current one.
        priority: 0, or a negative number for a higher priority. Default: 0.
        stream_id: Address of an existing stream. Default: ``None``, a new one.
        device_index: Index of the device, in place of ``device``.
        device_type: Has no effect.
        stream_ptr: Address of an existing stream, in place of ``stream_id``.

    Raises:
        RuntimeError: There is no such device.

    Example:
        >>> if torch.cuda.is_available():
        ...     side = torch.cuda.Stream()
        ...     side.wait_stream(torch.cuda.current_stream())  # what was computed so far is used in the other stream
        ...     with torch.cuda.stream(side):
        ...         y = torch.ones(4, device="cuda") * 2
        ...     torch.cuda.current_stream().wait_stream(side)
    """

    _of = cuda

    @property
    def cuda_stream(self) -> int:
        """The address of the stream, a ``cudaStream_t``."""
        return self.native_handle

    @property
    def _as_parameter_(self) -> ctypes.c_void_p:
        return ctypes.c_void_p(self.cuda_stream)

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.cuda_stream

    def __repr__(self) -> str:
        return f"<torch.cuda.Stream device={self.device} cuda_stream={self.cuda_stream:#x}>"


class ExternalStream(Stream):
    """Stream that another library created, by its address.

    The stream must exist longer than this object.

    Args:
        stream_ptr: The address.
        device: The device. Default: the current one.
        kwargs: Other arguments of `Stream`.

    Raises:
        RuntimeError: There is no such device.

    Example:
        >>> if torch.cuda.is_available():
        ...     stream = torch.cuda.ExternalStream(torch.cuda.Stream().cuda_stream)
    """

    def __init__(self, stream_ptr: int, device: Any = None, **kwargs: Any):
        super().__init__(device=device, stream_ptr=stream_ptr, **kwargs)


class Event(_streams.Event):
    """Point in the work of a stream, to wait for and to measure times.

    Args:
        enable_timing: Whether `elapsed_time` is allowed. Default: ``False``.
        blocking: Has no effect: the driver decides how a wait sleeps.
        interprocess: Must be ``False``.
        external: Has no effect: graphs record every event.

    Raises:
        RuntimeError: ``interprocess`` is set.

    Example:
        >>> if torch.cuda.is_available():
        ...     start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        ...     start.record()
        ...     y = torch.ones(4, device="cuda") * 2
        ...     end.record()
        ...     end.synchronize()
        ...     milliseconds = start.elapsed_time(end)
    """

    _of = cuda

    @property
    def cuda_event(self) -> int:
        """The address of the recorded event, a ``cudaEvent_t``; 0 before it is recorded."""
        return getattr(self._marker, "ptr", 0)

    def __repr__(self) -> str:
        return (
            f"<torch.cuda.Event {self.cuda_event:#x}>"
            if self._marker is not None
            else "<torch.cuda.Event uninitialized>"
        )


class StreamContext(_streams.StreamContext):
    """Selects a stream, and its device, for a block; the result of `stream`.

    Args:
        stream: The stream; ``None`` changes nothing.

    Example:
        >>> with torch.cuda.StreamContext(None):
        ...     y = torch.ones(2) + 1
    """


cuda.Stream, cuda.Event = Stream, Event


def stream(stream: Stream | None) -> StreamContext:
    """Selects a stream, and its device, for a block.

    Args:
        stream: The stream; ``None`` changes nothing.

    Returns:
        A context manager.

    Example:
        >>> if torch.cuda.is_available():
        ...     with torch.cuda.stream(torch.cuda.Stream()):
        ...         y = torch.ones(4, device="cuda") * 2
    """
    return StreamContext(stream)


def get_stream_from_external(data_ptr: int, device: Any = None) -> Stream:
    """Returns the stream at an address that another library gave.

    Args:
        data_ptr: The address.
        device: The device. Default: the current one.

    Raises:
        RuntimeError: There is no such device.

    Example:
        >>> if torch.cuda.is_available():
        ...     stream = torch.cuda.get_stream_from_external(torch.cuda.Stream().cuda_stream)
    """
    index = cuda.index(device)
    return Stream._from_handle(index, cuda.runtime(index).stream_from(data_ptr))
