"""Protocol between TCPStore clients and server: handshake, frames and limits.

The server sends its state and a nonce. The client answers with its nonce and an HMAC of both nonces under the secret;
the server answers with another HMAC. Without a secret the key is empty. After that each message is a frame: a length of
four bytes, then the message. An empty message has no answer: it confirms a popped value.
"""

from __future__ import annotations

import contextlib
import functools
import hmac
import os
import queue
import secrets
import socket
import struct
import threading
import time
import weakref
from typing import Any

MAGIC = b"TLS1"
OPEN, FULL = b"O", b"F"
NONCE = 32
GREETING = len(MAGIC) + 1 + NONCE
MAX_FRAME = 32 << 20  # maximum bytes of a client's frame
MAX_REPLY = 257 << 20  # maximum bytes of a server's frame
_LONGEST = 2e6  # seconds that one step of a connection may take at most: the system counts milliseconds in 32 bits
SECRET = "TORCHLITE_STORE_SECRET"  # the variable that `torchlite-run` sets for its processes


def read_secret() -> bytes:
    """Return the secret of this world; empty if unset."""
    return os.environ.get(SECRET, "").encode()


def compute_proof(secret: bytes, who: bytes, server_nonce: bytes, client_nonce: bytes) -> bytes:
    """Return the HMAC that proves knowledge of the secret."""
    return hmac.digest(secret, MAGIC + who + server_nonce + client_nonce, "sha256")


class WrongSecret(Exception):
    """The server has another secret."""


class _Socket(socket.SocketType):
    """Socket that closes without a warning when its store is freed.

    Its creation and closing contain no Python step at which an interrupt could leave it open.
    """

    __slots__ = ()
    __del__ = socket.SocketType.close


class StoreConnection:
    """Connection of a client. Every method takes a deadline of `time.monotonic`, with TimeoutError."""

    def __init__(self, connected: _Socket) -> None:
        self._socket = connected
        _channels.add(self)

    @classmethod
    def connect(cls, host: str, port: int, secret: bytes, end: float) -> StoreConnection:
        """Connect to the first address of a host that answers; OSError if none does."""
        found = _resolve_addresses(host, port, end)
        for left, (family, kind, protocol, _, address) in zip(range(len(found), 0, -1), found, strict=True):
            channel = None
            try:
                channel = cls(_Socket(family, kind, protocol))
                channel._socket.settimeout(_remaining_seconds(end) / left)
                channel._socket.connect(address)
                channel._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                channel._authenticate(secret, end)
            except BaseException as error:  # close the socket; all but the last OSError are raised again
                if channel is not None:
                    channel.close()
                if left == 1 or not isinstance(error, OSError):
                    raise
            else:
                return channel
        raise OSError(f"{host} has no address")

    def _authenticate(self, secret: bytes, end: float) -> None:
        greeting = self._read(GREETING, end)
        if greeting[: len(MAGIC)] != MAGIC:
            raise ConnectionError("what listens there is no store of torchlite")
        if greeting[len(MAGIC) : len(MAGIC) + 1] == FULL:
            raise ConnectionError("it has as many connections as it takes")
        theirs, ours = bytes(greeting[-NONCE:]), secrets.token_bytes(NONCE)
        self._write(ours + compute_proof(secret, b"client", theirs, ours), end)
        if not hmac.compare_digest(bytes(self._read(32, end)), compute_proof(secret, b"server", theirs, ours)):
            raise WrongSecret

    def ask(self, message: bytes, end: float) -> bytes:
        """Send a message and receive the answer."""
        if len(message) > MAX_FRAME:
            raise ValueError(f"a message of {len(message)} bytes: at most {MAX_FRAME} are sent")
        self._write(struct.pack("<I", len(message)) + message, end)
        data = bytearray()
        while len(data) < 4:
            data += self._receive_part(1 << 16, end)
        (size,) = struct.unpack_from("<I", data)
        if size > MAX_REPLY:
            raise ConnectionError(f"it declares an answer of {size} bytes")
        while len(data) < 4 + size:  # memory grows with received, not declared, bytes
            data += self._receive_part(4 + size - len(data), end)
        if len(data) > 4 + size:
            raise ConnectionError("it sent more than an answer")
        return bytes(memoryview(data)[4:])

    def confirm(self, end: float) -> None:
        """Confirm an answer by an empty message, which has no answer."""
        self._write(bytes(4), end)

    def _write(self, data: bytes, end: float) -> None:
        self._socket.settimeout(_remaining_seconds(end))
        self._socket.sendall(data)

    def _read(self, size: int, end: float) -> bytearray:
        data = bytearray()
        while len(data) < size:
            data += self._receive_part(size - len(data), end)
        return data

    def _receive_part(self, most: int, end: float) -> bytes:
        self._socket.settimeout(_remaining_seconds(end))
        part = self._socket.recv(min(most, 1 << 20))
        if not part:
            raise ConnectionError("it closed the connection")
        return part

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    @property
    def closed(self) -> bool:
        """True if it was closed."""
        return self._socket.fileno() < 0


_channels: weakref.WeakSet[StoreConnection] = weakref.WeakSet()


def _close_channels() -> None:
    """Close a forked child's copies of its parent's connections: interrupted calls must not continue there."""
    for channel in list(_channels):
        channel.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_channels)


def _remaining_seconds(end: float) -> float:
    left = end - time.monotonic()
    if left <= 0:
        raise TimeoutError("timed out")
    return min(left, _LONGEST)


def _resolve_addresses(host: str, port: int, end: float) -> list[Any]:
    """Return the addresses of a host, with a deadline: the look-up runs in a thread and may outlast it."""
    look_up = functools.partial(socket.getaddrinfo, host or None, port, type=socket.SOCK_STREAM)
    with contextlib.suppress(socket.gaierror):
        return look_up(flags=socket.AI_NUMERICHOST)
    found: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def resolve() -> None:
        try:
            found.put(look_up())
        except BaseException as error:  # raised again in the thread that waits
            found.put(error)

    threading.Thread(target=resolve, name="torchlite getaddrinfo", daemon=True).start()
    try:
        answer = found.get(timeout=_remaining_seconds(end))
    except queue.Empty:
        raise TimeoutError(f"{host} was not looked up in time") from None
    if isinstance(answer, BaseException):
        raise answer
    return answer
