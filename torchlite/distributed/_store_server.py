"""The server of a TCPStore: one thread that serves all connections and survives what strangers send.

A connection has to complete the handshake within seconds. Those that have not are few: a new one ends the oldest.
Frames are bounded before memory is taken, and so is the memory that all connections hold together: where that is full
the connection ends that has held the most for the longest, so that a sender who comes to an end is served.
"""

from __future__ import annotations

import contextlib
import errno
import hmac
import os
import secrets
import selectors
import socket
import struct
import threading
import time
import weakref
from typing import Any

from ._store_table import COMMANDS, Refused, Table, pack, unpack
from ._store_wire import FULL, MAGIC, MAX_FRAME, NONCE, OPEN, proof

_HANDSHAKE = 5.0  # seconds
_FRAME = 60.0  # seconds from a frame's first byte to its last, and for a client to read its answer
_STRANGERS = 64  # connections before the end of their handshake
_MAX_PEERS = 4096
_MAX_HELD = 512 << 20  # bytes of unfinished frames and unread answers
_ACCEPTS = 16  # connections that are accepted before others are served
_PAUSE = 0.1  # seconds without accepting after an error
_TRANSIENT = (errno.EAGAIN, errno.EINTR, errno.ECONNABORTED)
_HELLO = NONCE + 32


class _Gone(Exception):
    """A connection that ends."""


class _Peer:
    """One connection: what has arrived, and what is still to be sent."""

    __slots__ = ("end", "inside", "known", "nonce", "outside", "since", "socket", "writing")

    def __init__(self, channel: socket.socket) -> None:
        self.socket, self.inside, self.outside = channel, bytearray(), memoryview(b"")
        self.known, self.writing, self.nonce = False, False, secrets.token_bytes(NONCE)
        self.since = time.monotonic()  # when it began to hold memory
        self.end: float | None = self.since + _HANDSHAKE

    def burden(self, now: float) -> float:
        """The memory that it holds, times the seconds for which it has held any. Bytes that trickle in make it no
        smaller.
        """
        return (len(self.inside) + len(self.outside)) * (now - self.since)


def _most_peers() -> int:
    """Half of the files that this process may open."""
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MAX_PEERS if soft == resource.RLIM_INFINITY else max(16, min(_MAX_PEERS, soft // 2))


class Server:
    """A table, and the thread that answers for it until `close`."""

    def __init__(self, listeners: list[socket.socket], secret: bytes) -> None:
        self._listeners, self._secret, self._table = listeners, secret, Table(limited=True)
        self.port: int = listeners[0].getsockname()[1]
        self._process, self._closed, self._held = os.getpid(), False, 0
        self._again = self._next_look = 0.0
        self._strangers: dict[_Peer, None] = {}  # the oldest first
        self._peers: dict[_Peer, None] = {}
        self._selector = selectors.DefaultSelector()
        self._wake, self._woken = socket.socketpair()
        self._selector.register(self._woken, selectors.EVENT_READ, None)
        for listener in listeners:
            listener.setblocking(False)
            self._selector.register(listener, selectors.EVENT_READ, listener)
        _all.add(self)
        self._thread = threading.Thread(target=self._serve, name="torchlite store", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End all connections and listen no more."""
        if self._process != os.getpid() or self._closed:  # a fork has no thread, and shares the selector
            return
        self._closed = True
        with contextlib.suppress(OSError):
            self._wake.send(b"x")
        if threading.current_thread() is not self._thread:
            self._thread.join(5)

    def _leave(self) -> None:
        """Close what a forked child has of the connections, which would keep them open after the master's end."""
        for channel in (*self._listeners, *(p.socket for p in (*self._strangers, *self._peers))):
            with contextlib.suppress(OSError):
                channel.close()
        self._closed = True

    def _serve(self) -> None:
        while not self._closed:
            for key, events in self._selector.select(self._wait()):
                if isinstance(key.data, _Peer):
                    self._attend(key.data, events)
                elif key.data is not None:
                    self._accept(key.data)
            self._look_at_the_time()
        for peer in [*self._strangers, *self._peers]:
            self._drop(peer)
        self._selector.close()
        for channel in (*self._listeners, self._wake, self._woken):
            channel.close()

    def _wait(self) -> float | None:
        """Seconds until something is late: a tenth of a second where anything may be."""
        return _PAUSE if self._again or self._strangers or self._held else None

    def _look_at_the_time(self) -> None:
        now = time.monotonic()
        if now < self._next_look:
            return
        self._next_look = now + _PAUSE / 2
        if self._again and now >= self._again:
            self._again = 0.0
            for listener in self._listeners:
                self._selector.register(listener, selectors.EVENT_READ, listener)
        if self._strangers or self._held:
            late = [p for p in (*self._strangers, *self._peers) if p.end is not None and now >= p.end]
            for peer in late:
                self._drop(peer)

    def _accept(self, listener: socket.socket) -> None:
        for _ in range(_ACCEPTS):
            try:
                channel, _ = listener.accept()
            except OSError as error:
                if error.errno not in _TRANSIENT:  # no more files or memory: strangers give theirs back
                    self._pause()
                return
            try:
                channel.setblocking(False)
                self._welcome(channel)
            except (OSError, MemoryError):
                channel.close()

    def _pause(self) -> None:
        for peer in list(self._strangers):
            self._drop(peer)
        if not self._again:
            self._again = time.monotonic() + _PAUSE
            for listener in self._listeners:
                self._selector.unregister(listener)

    def _welcome(self, channel: socket.socket) -> None:
        channel.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        peer = _Peer(channel)
        if len(self._peers) >= _most_peers():
            channel.send(MAGIC + FULL + peer.nonce)
            channel.close()
            return
        channel.send(MAGIC + OPEN + peer.nonce)  # it fits into a new connection's buffer
        if len(self._strangers) >= _STRANGERS:
            self._drop(next(iter(self._strangers)))
        self._selector.register(channel, selectors.EVENT_READ, peer)
        self._strangers[peer] = None

    def _attend(self, peer: _Peer, events: int) -> None:
        if peer not in self._peers and peer not in self._strangers:
            return  # dropped in this round
        try:
            if events & selectors.EVENT_WRITE:
                self._send(peer)
            else:
                self._receive(peer)
        except Exception:  # whatever a connection does, the thread goes on for the others
            self._drop(peer)

    def _receive(self, peer: _Peer) -> None:
        try:
            data = peer.socket.recv(1 << 18 if peer.known else _HELLO)
        except (BlockingIOError, InterruptedError):
            return
        if not data:
            raise _Gone
        peer.inside += data
        self._held += len(data)
        if not peer.known:
            self._meet(peer)
        if peer.known:
            self._answer(peer)
            self._make_room()

    def _make_room(self) -> None:
        """End the connections that are the greatest burden until the others fit."""
        while self._held > _MAX_HELD:
            now = time.monotonic()
            self._drop(max(self._peers, key=lambda peer: peer.burden(now)))

    def _meet(self, peer: _Peer) -> None:
        """Check the secret once the client's part of the handshake is here."""
        if len(peer.inside) < _HELLO:
            return
        nonce, given = bytes(peer.inside[:NONCE]), bytes(peer.inside[NONCE:_HELLO])
        self._used(peer, _HELLO)
        if not hmac.compare_digest(given, proof(self._secret, b"client", peer.nonce, nonce)):
            with contextlib.suppress(OSError):
                peer.socket.send(bytes(32))  # it says that the secrets differ
            raise _Gone
        peer.socket.send(proof(self._secret, b"server", peer.nonce, nonce))
        del self._strangers[peer]
        self._peers[peer] = None
        peer.known, peer.end = True, None

    def _answer(self, peer: _Peer) -> None:
        """Answer the frames that are complete, as long as the client reads the answers."""
        while not peer.outside:
            if len(peer.inside) < 4:
                break
            (size,) = struct.unpack_from("<I", peer.inside)
            if size > MAX_FRAME:
                raise _Gone
            if len(peer.inside) < 4 + size:
                break
            message = bytes(memoryview(peer.inside)[4 : 4 + size])
            self._used(peer, 4 + size)
            reply = pack(self._run(message))
            peer.outside = memoryview(struct.pack("<I", len(reply)) + reply)
            self._held += len(peer.outside)
            self._push_out(peer)
        if not peer.inside and not peer.outside:
            peer.end = None
        elif peer.end is None:
            peer.since = time.monotonic()
            peer.end = peer.since + _FRAME

    def _run(self, message: bytes) -> list[bytes]:
        try:
            command, *parts = unpack(message)
            return [b"", *COMMANDS[command](self._table, *parts)]
        except Refused as error:
            return [str(error).encode()]
        except (KeyError, TypeError, ValueError, struct.error) as error:
            return [f"a message that no store sends: {error!r}"[:500].encode()]

    def _push_out(self, peer: _Peer) -> None:
        """Send what the connection takes; the rest waits until it takes more, and nothing is read until then."""
        try:
            sent = peer.socket.send(peer.outside)
        except (BlockingIOError, InterruptedError):
            sent = 0
        self._held -= sent
        peer.outside = peer.outside[sent:]
        writing = bool(peer.outside)
        if peer.writing != writing:
            peer.writing = writing
            self._selector.modify(peer.socket, selectors.EVENT_WRITE if writing else selectors.EVENT_READ, peer)

    def _send(self, peer: _Peer) -> None:
        self._push_out(peer)
        if not peer.outside:
            peer.end = None
            self._answer(peer)

    def _used(self, peer: _Peer, size: int) -> None:
        del peer.inside[:size]
        self._held -= size

    def _drop(self, peer: _Peer) -> None:
        self._strangers.pop(peer, None)
        self._peers.pop(peer, None)
        self._held -= len(peer.inside) + len(peer.outside)
        peer.inside, peer.outside = bytearray(), memoryview(b"")
        with contextlib.suppress(KeyError, ValueError, OSError):
            self._selector.unregister(peer.socket)
        peer.socket.close()


_all: weakref.WeakSet[Server] = weakref.WeakSet()


def _leave_all() -> None:
    for server in list(_all):
        server._leave()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_all)


def listen(host: str, port: int) -> list[socket.socket]:
    """Sockets that listen on the addresses of a host and no other; "" stands for all. OSError where none can."""
    for _ in range(8):
        made: list[socket.socket] = []
        try:
            _listen_on(socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE), made)
        except OSError as error:
            for listener in made:
                listener.close()
            if port or error.errno != errno.EADDRINUSE:  # a free port of one address may be taken on the next
                raise
        else:
            return made
    raise OSError(errno.EADDRINUSE, f"no port is free on all addresses of {host}")


def _listen_on(found: list[Any], made: list[socket.socket]) -> None:
    absent: OSError | None = None
    for family, kind, protocol, _, address in dict.fromkeys(found):
        port = made[0].getsockname()[1] if made else address[1]
        try:
            listener = socket.socket(family, kind, protocol)
        except OSError as error:  # the system has no addresses of this family
            absent = error
            continue
        made.append(listener)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            listener.bind((address[0], port, *address[2:]))
            listener.listen(1024)
        except OSError as error:
            if error.errno not in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
                raise
            absent = error
            made.pop().close()
    if not made and absent is not None:
        raise absent
