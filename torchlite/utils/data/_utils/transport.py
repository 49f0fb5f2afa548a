"""Messages between the DataLoader and its workers.

Arrays leave the pickle as buffers (protocol 5). Small buffers go through the pipe. Large ones go through an anonymous
file, whose descriptor the pipe carries. The system frees the file when the last process that has it open ends. A file
is used instead of a shared mapping because writing to a full one is an error and not a crash. A pipe with small
messages only never fills up, so neither side can block the other. Where pipes carry no descriptors (Windows), the file
has a name, and the receiver removes it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import pickle
import socket
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np

PIPE_LIMIT = 16384
_TIMEOUT = 60.0  # seconds during which the system may have too many descriptors in flight
_SENT, _TAKEN_BACK = b".", b"!"  # the byte that carries a descriptor, or marks that none follows
_CAN_SEND_FDS = hasattr(socket, "send_fds")


def send(connection: Any, message: Any, limit: int = PIPE_LIMIT) -> None:
    """Send any picklable message."""
    buffers: list[pickle.PickleBuffer] = []
    body = pickle.dumps(message, protocol=5, buffer_callback=buffers.append)
    parts = [memoryview(body), *(buffer.raw() for buffer in buffers)]
    sizes = [part.nbytes for part in parts]
    if sum(sizes) <= limit:
        connection.send_bytes(pickle.dumps((None, [bytes(part) for part in parts]), protocol=5))
        return
    if not _CAN_SEND_FDS:
        connection.send_bytes(pickle.dumps((sizes, _write_named_file(parts)), protocol=5))
        return
    descriptor = _write_unnamed_file(parts)
    try:
        connection.send_bytes(pickle.dumps((sizes, None), protocol=5))
        _send_descriptor(connection, descriptor)
    finally:
        os.close(descriptor)


def _write_named_file(parts: list[memoryview]) -> str:
    """Write the parts to a new named file and return its path."""
    descriptor, path = tempfile.mkstemp(prefix="torchlite-message-")
    try:
        with open(descriptor, "wb", buffering=0) as file:
            for part in parts:
                _write_all(file, part)
    except BaseException:
        os.unlink(path)
        raise
    return path


def _write_unnamed_file(parts: list[memoryview]) -> int:
    """Write the parts to a new anonymous file: in memory, or if that is full, in the temporary folder."""
    error: OSError | None = None
    for make in (_open_memfd, _open_temporary):
        try:
            descriptor = make()
        except OSError as raised:
            error = raised
            continue
        try:
            with open(descriptor, "wb", buffering=0, closefd=False) as file:
                for part in parts:
                    _write_all(file, part)
            return descriptor
        except OSError as raised:
            os.close(descriptor)
            error = raised
        except BaseException:
            os.close(descriptor)
            raise
    raise error or RuntimeError("no place for messages")


def _open_memfd() -> int:
    if not hasattr(os, "memfd_create"):
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    return os.memfd_create("torchlite-message")


def _open_temporary() -> int:
    with contextlib.suppress(OSError, AttributeError):  # not every file system has files without a name
        return os.open(tempfile.gettempdir(), os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
    descriptor, path = tempfile.mkstemp(prefix="torchlite-message-")
    os.unlink(path)
    return descriptor


def _write_all(file: Any, part: memoryview) -> None:
    part, done = part.cast("B") if part.nbytes else part, 0
    while done < part.nbytes:
        done += file.write(part[done:])


@contextlib.contextmanager
def _socket_of(connection: Any) -> Any:
    """Return the socket of a two-way pipe."""
    found = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, connection.fileno())
    try:
        found.settimeout(None)  # a default time limit is not for this
        yield found
    finally:
        found.detach()


def _send_descriptor(connection: Any, descriptor: int) -> None:
    deadline = time.monotonic() + _TIMEOUT
    with _socket_of(connection) as pipe:
        while True:
            try:
                socket.send_fds(pipe, [_SENT], [descriptor])
                return
            except OSError as error:
                if error.errno != errno.ETOOMANYREFS or time.monotonic() > deadline:
                    with contextlib.suppress(OSError):
                        pipe.send(_TAKEN_BACK)
                    raise
            time.sleep(0.01)  # until the other side has taken some


def _receive_descriptor(connection: Any) -> int:
    """Return the descriptor that follows a message; -1 if the sender had to cancel the message."""
    with _socket_of(connection) as pipe:
        mark, descriptors, *_ = socket.recv_fds(pipe, 1, 1)
    if not mark:
        raise EOFError
    if mark == _TAKEN_BACK:
        return -1
    if not descriptors:
        raise OSError(errno.EMFILE, "a batch could not be received: this process has too many open files")
    return descriptors[0]


def _allocate(nbytes: int) -> np.ndarray:
    return np.empty(nbytes, np.uint8)


def _copy_part(part: bytes, allocate: Callable[[int], np.ndarray]) -> np.ndarray:
    array = allocate(len(part))
    memoryview(array).cast("B")[:] = part  # type: ignore[arg-type]
    return array


def receive(connection: Any, allocate: Callable[[int], np.ndarray] = _allocate) -> Any:
    """The next message; `allocate` gives the memory of arrays. EOFError when the other side is gone."""
    while True:
        sizes, rest = pickle.loads(connection.recv_bytes())
        if sizes is None:
            return pickle.loads(rest[0], buffers=[_copy_part(part, allocate) for part in rest[1:]])
        source = rest if rest is not None else _receive_descriptor(connection)
        if source != -1:
            break
    # Each array gets a separate aligned buffer, so that a reference to one does not keep the batch alive.
    pieces = [_allocate(sizes[0]), *map(allocate, sizes[1:])]
    with open(source, "rb", buffering=0) as file:
        file.seek(0)
        for piece in pieces:
            view, done = memoryview(piece), 0  # type: ignore[arg-type]
            while done < piece.nbytes:
                done += file.readinto(view[done:])  # type: ignore[attr-defined]
    if rest is not None:
        os.unlink(rest)
    return pickle.loads(pieces[0], buffers=pieces[1:])  # type: ignore[arg-type]
