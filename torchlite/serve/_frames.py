"""Messages between the server and its worker processes: pickled values, with large arrays in shared memory.

A message is one packet of a socket pair. Values of over 32 KiB travel as a file in memory whose descriptor is sent
along. The receiver maps it, and the mapping lives as long as the arrays that lie in it.
"""

from __future__ import annotations

import io
import mmap
import os
import pickle
import socket
import struct
from collections.abc import Iterable, Iterator
from typing import Any

_MOST_INLINE = 1 << 15  # bytes; a packet must fit the socket's buffer, 200 KiB by default
_PACKET = _MOST_INLINE + (1 << 13)  # with the sizes of its parts, of which 500 fit
_ALIGNMENT = 64  # of each array
_MOST_PARTS = 500  # of one call of `writev`; the system's limit is 1,024
_HEAD = struct.Struct("<I")  # the number of parts


class Message:
    """A packed value, ready to be sent once. `close` it if it is not sent."""

    def __init__(self, value: Any) -> None:
        buffers: list[pickle.PickleBuffer] = []
        body = pickle.dumps(value, 5, buffer_callback=buffers.append)
        parts = [memoryview(body), *(buffer.raw() for buffer in buffers)]
        sizes = [len(part) for part in parts]
        shared = sum(sizes) + _ALIGNMENT * len(sizes) > _MOST_INLINE
        head = _HEAD.pack(len(sizes)) + struct.pack(f"<{len(sizes)}Q", *sizes)
        self._descriptor = -1
        if not shared:
            self._packet = b"".join(_padded([memoryview(head), *parts]))
            return
        # With very many arrays their sizes are the shared part's beginning.
        self._packet = _HEAD.pack(len(sizes))
        self._descriptor = os.memfd_create("torchlite-serve", os.MFD_CLOEXEC)
        try:
            _write_all(self._descriptor, _padded([memoryview(head), *parts]))
        except BaseException:
            self.close()
            raise

    def send(self, channel: socket.socket) -> None:
        """Send the message. OSError if the other side has gone."""
        try:
            if self._descriptor < 0:
                channel.send(self._packet)
            else:
                socket.send_fds(channel, [self._packet], [self._descriptor])
        finally:
            self.close()

    def close(self) -> None:
        """Give the shared memory free; the receiver keeps what it has mapped."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _padded(parts: Iterable[memoryview]) -> Iterator[memoryview | bytes]:
    for part in parts:
        yield part
        missing = -len(part) % _ALIGNMENT
        if missing:
            yield bytes(missing)


def _write_all(descriptor: int, parts: Iterable[memoryview | bytes]) -> None:
    left = [memoryview(part) for part in parts if len(part)]
    while left:
        written = os.writev(descriptor, left[:_MOST_PARTS])
        while left and written >= len(left[0]):
            written -= len(left.pop(0))
        if written:
            left[0] = left[0][written:]


def send(channel: socket.socket, value: Any) -> None:
    """Send a value. OSError if the other side has gone."""
    Message(value).send(channel)


def receive(channel: socket.socket, flags: int = 0) -> Any:
    """Return the next value.

    Raises:
        EOFError: The other side has gone.
        BlockingIOError: There is none, and the channel does not wait.
    """
    packet, descriptors = _receive_packet(channel, flags)
    try:
        if not packet:
            raise EOFError("the other process has gone")
        data = packet
        if descriptors:
            data = memoryview(mmap.mmap(descriptors[0], 0, access=mmap.ACCESS_COPY))
        parts = _parts_of(data)
        return _Unpickler(io.BytesIO(parts[0]), buffers=parts[1:]).load()
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


class _Unpickler(pickle.Unpickler):
    """Finds torchlite's classes also where a worker's code imports torchlite as `torch`, which renames them."""

    def find_class(self, module: str, name: str) -> Any:
        if module == "torch" or module.startswith("torch."):
            module = "torchlite" + module.removeprefix("torch")
        return super().find_class(module, name)


def _receive_packet(channel: socket.socket, flags: int) -> tuple[memoryview, list[int]]:
    """Return a packet, in memory that arrays may write to, and the descriptors that came with it."""
    room = bytearray(_PACKET)
    size, ancillary, _, _ = channel.recvmsg_into([room], socket.CMSG_LEN(4), flags | socket.MSG_CMSG_CLOEXEC)
    found: list[int] = []
    for level, kind, raw in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            found += struct.unpack(f"{len(raw) // 4}i", raw[: len(raw) // 4 * 4])
    return memoryview(room)[:size], found


def _parts_of(data: memoryview) -> list[memoryview]:
    (count,) = _HEAD.unpack_from(data)
    sizes = struct.unpack_from(f"<{count}Q", data, _HEAD.size)
    place = _HEAD.size + 8 * count
    parts = []
    for size in sizes:
        place += -place % _ALIGNMENT
        parts.append(data[place : place + size])
        place += size
    return parts
