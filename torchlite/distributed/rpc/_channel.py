"""A proven connection between two ranks: the handshake, then frames.

The two sides prove to each other that they know the secret of the world, by HMACs of two nonces and both ranks. A side
that fails is closed before anything else is read. A frame is a kind, a number, a length and that many bytes.
"""

from __future__ import annotations

import contextlib
import hmac
import secrets
import socket
import struct
import threading

from .._tcp_store_protocol import compute_proof

CALL, REMOTE, REPLY, ERROR, FETCH, ADD, DROP = range(1, 8)
_HEADER = struct.Struct("!BQQ")
_RANK = struct.Struct("!I")
_NONCE, _PROOF, _HANDSHAKE_SECONDS = 32, 32, 20.0
SILENT_SECONDS = 15  # a connection whose other machine answers nothing for so long is lost


def _limit_silence(connection: socket.socket) -> None:
    """Have the system ask an idle peer for signs of life, and give up one that acknowledges nothing.

    Systems other than Linux lack some of the options, and give up later.
    """
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    limits = {
        "TCP_KEEPIDLE": SILENT_SECONDS // 3, "TCP_KEEPINTVL": SILENT_SECONDS // 3, "TCP_KEEPCNT": 2,
        "TCP_USER_TIMEOUT": SILENT_SECONDS * 1000,  # of data that was sent
    }  # fmt: skip
    for name, value in limits.items():
        if hasattr(socket, name):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _read(connection: socket.socket, size: int) -> bytearray:
    data = bytearray(size)
    view, got = memoryview(data), 0
    while got < size:
        count = connection.recv_into(view[got:])
        if not count:
            raise ConnectionError("the connection was closed")
        got += count
    return data


def _prove(secret: bytes, side: bytes, client: int, server: int, server_nonce: bytes, client_nonce: bytes) -> bytes:
    who = b"rpc " + side + _RANK.pack(client) + _RANK.pack(server)
    return compute_proof(secret, who, server_nonce, client_nonce)


class Channel:
    """One end of a proven connection; threads may send at the same time."""

    def __init__(self, connection: socket.socket, peer: int) -> None:
        self.peer, self._socket, self._lock = peer, connection, threading.Lock()
        connection.settimeout(None)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        _limit_silence(connection)

    @classmethod
    def dial(cls, address: tuple[str, int], secret: bytes, me: int, peer: int, seconds: float) -> Channel:
        """Connect to a rank; raise ConnectionError if it does not prove itself."""
        connection = socket.create_connection(address, seconds)
        try:
            server_nonce, nonce = bytes(_read(connection, _NONCE)), secrets.token_bytes(_NONCE)
            proof = _prove(secret, b"client", me, peer, server_nonce, nonce)
            connection.sendall(_RANK.pack(me) + nonce + proof)
            if not hmac.compare_digest(
                bytes(_read(connection, _PROOF)), _prove(secret, b"server", me, peer, server_nonce, nonce)
            ):
                raise ConnectionError(f"rank {peer} did not prove that it knows the secret of this world")
        except BaseException:
            connection.close()
            raise
        return cls(connection, peer)

    @classmethod
    def accept(cls, connection: socket.socket, secret: bytes, me: int, size: int) -> Channel:
        """Check the peer that connected; raise ConnectionError if it does not prove itself."""
        connection.settimeout(_HANDSHAKE_SECONDS)
        server_nonce = secrets.token_bytes(_NONCE)
        connection.sendall(server_nonce)
        given = bytes(_read(connection, _RANK.size + _NONCE + _PROOF))
        peer, nonce, proof = _RANK.unpack(given[:4])[0], given[4 : 4 + _NONCE], given[4 + _NONCE :]
        if peer >= size or not hmac.compare_digest(proof, _prove(secret, b"client", peer, me, server_nonce, nonce)):
            raise ConnectionError("the peer did not prove that it knows the secret of this world")
        connection.sendall(_prove(secret, b"server", peer, me, server_nonce, nonce))
        return cls(connection, peer)

    def send(self, kind: int, number: int, data: bytes = b"") -> None:
        """Send one frame."""
        with self._lock:
            self._socket.sendall(_HEADER.pack(kind, number, len(data)))
            if data:
                self._socket.sendall(data)

    def receive(self) -> tuple[int, int, bytearray]:
        """Return the next frame; raise OSError at the end of the connection."""
        kind, number, size = _HEADER.unpack(_read(self._socket, _HEADER.size))
        return kind, number, _read(self._socket, size)

    def close(self) -> None:
        """Close the connection; a thread that receives gets an error."""
        with contextlib.suppress(OSError):  # the peer closed it first
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def close_copy(self) -> None:
        """Close this process's copy of the socket; the connection stays that of the parent."""
        self._socket.close()
