"""Streams and events of CUDA devices."""

from __future__ import annotations

import ctypes
from typing import Any

from .._device import streams as _streams
from ._accelerator import cuda

__all__ = ["Event", "ExternalStream", "Stream", "StreamContext"]


class Stream(_streams.Stream):
    """A queue of work on a CUDA device: the work of one stream runs in order, several streams may run concurrently.

    device: by default the current one. priority: 0, or a negative number for a higher priority.

    >>> import torchlite as torch
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
        """The address of the stream, a `cudaStream_t`."""
        return self.native_handle

    @property
    def _as_parameter_(self) -> ctypes.c_void_p:
        return ctypes.c_void_p(self.cuda_stream)

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.cuda_stream

    def __repr__(self) -> str:
        return f"<torch.cuda.Stream device={self.device} cuda_stream={self.cuda_stream:#x}>"


class ExternalStream(Stream):
    """A stream created by another library, by its address. It must outlive this object."""

    def __init__(self, stream_ptr: int, device: Any = None, **kwargs: Any):
        super().__init__(device=device, stream_ptr=stream_ptr, **kwargs)


class Event(_streams.Event):
    """A point in a stream's work, for synchronization and timing.

    enable_timing: for `elapsed_time`. blocking: accepted without effect, the driver decides whether a wait sleeps.
    interprocess: RuntimeError.

    >>> import torchlite as torch
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
        """The address of the recorded event, a `cudaEvent_t`; 0 before it is recorded."""
        return getattr(self._marker, "ptr", 0)

    def __repr__(self) -> str:
        return (
            f"<torch.cuda.Event {self.cuda_event:#x}>"
            if self._marker is not None
            else "<torch.cuda.Event uninitialized>"
        )


class StreamContext(_streams.StreamContext):
    """A chosen stream, and its device, for the time of a `with` block; nothing changes for None."""


cuda.Stream, cuda.Event = Stream, Event


def stream(stream: Stream | None) -> StreamContext:
    """Choose a stream, and its device, for the time of a `with` block; nothing changes for None."""
    return StreamContext(stream)


def get_stream_from_external(data_ptr: int, device: Any = None) -> Stream:
    """The stream at an address that another library gave."""
    index = cuda.index(device)
    return Stream._from_handle(index, cuda.runtime(index).stream_from(data_ptr))
