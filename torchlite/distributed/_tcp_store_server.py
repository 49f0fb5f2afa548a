"""TCPStore server: one thread that serves all connections, robust against malicious clients.

A connection must complete the handshake within seconds. Incomplete ones are limited: a new one closes the oldest. Frame
sizes are checked before allocation, and the memory of all connections is limited: at the limit the connection with the
largest memory times duration is closed, so that a client whose frames complete is served.

Connections with complete frames are served round-robin, one frame at a time.
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
from collections import deque
from collections.abc import Sequence
from typing import Any

from ._byte_string_packing import pack_byte_strings, size_of, unpack_byte_strings
from ._key_value_table import COMMANDS, MAX_NAMED, KeyValueTable, LimitExceeded
from ._tcp_store_protocol import FULL, MAGIC, MAX_FRAME, NONCE, OPEN, compute_proof

_HANDSHAKE = 5.0  # seconds
_FRAME = 60.0  # seconds from a frame's first byte to its last, and for a client to read its answer
_STRANGERS = 64  # connections before the end of their handshake
_MAX_PEERS = 4096
_MAX_HELD = 512 << 20  # bytes of unfinished frames and unread answers
_ACCEPTS = 16  # connections that are accepted before others are served
_LARGE = 1 << 16  # bytes of a value that is sent from where it is
_SENT = 1 << 20  # bytes that are sent before others are served
_PAUSE = 0.1  # seconds without accepting after an error
_TRANSIENT = (errno.EAGAIN, errno.EINTR, errno.ECONNABORTED)
_HELLO = NONCE + 32
_size_of_frame = struct.Struct("<I").pack
_read_size = struct.Struct("<I").unpack_from


class _ConnectionClosed(Exception):
    """The connection is closed."""


class _Peer:
    """One connection: received bytes, and bytes to send."""

    __slots__ = (
        "end", "inside", "known", "nonce", "outside", "pinned", "since", "socket", "unconfirmed", "waits", "watched"
    )  # fmt: skip

    def __init__(self, channel: socket.socket) -> None:
        self.socket, self.inside = channel, bytearray()
        self.outside: deque[memoryview] = deque()
        self.pinned = 0  # bytes of `outside` objects, possibly partly sent
        self.unconfirmed: tuple[bytes, bytes] | None = None  # key and value of a `pop` that it has not confirmed
        self.known, self.nonce, self.watched = False, secrets.token_bytes(NONCE), selectors.EVENT_READ
        self.waits = False  # for its turn, with a complete frame
        self.since = time.monotonic()  # when it began to hold memory
        self.end: float | None = self.since + _HANDSHAKE

    def complete_frame_size(self) -> int:
        """Return the size of the complete frame, 0 if there is none."""
        if len(self.inside) < 4:
            return 0
        size = 4 + _read_size(self.inside)[0]
        if size > 4 + MAX_FRAME:
            raise _ConnectionClosed
        return size if len(self.inside) >= size else 0

    def memory_seconds(self, now: float) -> float:
        """Return its memory times the seconds since it has used any. Slowly arriving bytes do not reduce it."""
        return (len(self.inside) + self.pinned) * (now - self.since)


def _max_peers() -> int:
    """Return half of this process's file limit."""
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MAX_PEERS if soft == resource.RLIM_INFINITY else max(16, min(_MAX_PEERS, soft // 2))


class TCPStoreServer:
    """A table, and the thread that serves it until `close`."""

    def __init__(self, listeners: list[socket.socket], secret: bytes) -> None:
        self._listeners, self._secret, self._table = listeners, secret, KeyValueTable(limited=True)
        self.port: int = listeners[0].getsockname()[1]
        self._process, self._closed, self._buffered = os.getpid(), False, 0
        self._pins: dict[int, int] = {}  # number of connections per object of an answer, by identity
        self._again = self._next_look = 0.0
        self._strangers: dict[_Peer, None] = {}  # the oldest first
        self._peers: dict[_Peer, None] = {}
        self._turns: deque[_Peer] = deque()  # queue of turns
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
        """Close all connections and stop listening."""
        if self._process != os.getpid() or self._closed:  # a fork has no thread, and shares the selector
            return
        self._closed = True
        with contextlib.suppress(OSError):
            self._wake.send(b"x")
        if threading.current_thread() is not self._thread:
            self._thread.join(5)

    def _close_in_child(self) -> None:
        """Close a forked child's copies of the connections, which would outlive the master."""
        for channel in (*self._listeners, *(p.socket for p in (*self._strangers, *self._peers))):
            with contextlib.suppress(OSError):
                channel.close()
        self._closed = True

    def _serve(self) -> None:
        while not self._closed:
            for key, events in self._selector.select(self._seconds_to_next_deadline()):
                if isinstance(key.data, _Peer):
                    self._handle_events(key.data, events)
                elif key.data is not None:
                    self._accept(key.data)
            self._take_turns()
            self._check_deadlines()
        for peer in [*self._strangers, *self._peers]:
            self._drop_connection(peer)
        self._selector.close()
        for channel in (*self._listeners, self._wake, self._woken):
            channel.close()

    def _seconds_to_next_deadline(self) -> float | None:
        """Return the seconds until the next deadline: 0 if frames wait, at most a tenth of a second."""
        if self._turns:
            return 0
        return _PAUSE if self._again or self._strangers or self._buffered else None

    def _check_deadlines(self) -> None:
        now = time.monotonic()
        if now < self._next_look:
            return
        self._next_look = now + _PAUSE / 2
        if self._again and now >= self._again:
            self._again = 0.0
            for listener in self._listeners:
                self._selector.register(listener, selectors.EVENT_READ, listener)
        if self._strangers or self._buffered:
            late = [p for p in (*self._strangers, *self._peers) if p.end is not None and now >= p.end]
            for peer in late:
                self._drop_connection(peer)

    def _accept(self, listener: socket.socket) -> None:
        for _ in range(_ACCEPTS):
            try:
                channel, _ = listener.accept()
            except OSError as error:
                if error.errno not in _TRANSIENT:  # no more files or memory: strangers give theirs back
                    self._pause_accepting()
                return
            try:
                channel.setblocking(False)
                self._greet_client(channel)
            except (OSError, MemoryError):
                channel.close()

    def _pause_accepting(self) -> None:
        for peer in list(self._strangers):
            self._drop_connection(peer)
        if not self._again:
            self._again = time.monotonic() + _PAUSE
            for listener in self._listeners:
                self._selector.unregister(listener)

    def _greet_client(self, channel: socket.socket) -> None:
        channel.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        peer = _Peer(channel)
        if len(self._peers) >= _max_peers():
            channel.send(MAGIC + FULL + peer.nonce)
            channel.close()
            return
        channel.send(MAGIC + OPEN + peer.nonce)  # it fits into a new connection's buffer
        if len(self._strangers) >= _STRANGERS:
            self._drop_connection(next(iter(self._strangers)))
        self._selector.register(channel, selectors.EVENT_READ, peer)
        self._strangers[peer] = None

    def _handle_events(self, peer: _Peer, events: int) -> None:
        if peer not in self._peers and peer not in self._strangers:
            return  # dropped in this round
        try:
            if peer.waits:  # no more is read until its turn
                self._select_events(peer, 0)
                return
            if events & selectors.EVENT_WRITE:
                self._took(peer, _send_pieces(peer.socket, peer.outside))
            else:
                self._receive(peer)
            if peer.known:
                self._set_next_event(peer)
        except Exception:  # an error of one connection must not end the thread
            self._drop_connection(peer)

    def _receive(self, peer: _Peer) -> None:
        try:
            data = peer.socket.recv(1 << 18 if peer.known else _HELLO)
        except (BlockingIOError, InterruptedError):
            return
        if not data:
            raise _ConnectionClosed
        if not peer.inside:
            peer.since = time.monotonic()
        peer.inside += data
        self._buffered += len(data)
        if peer.known:
            self._make_room()
        else:
            self._authenticate_client(peer)

    def _make_room(self) -> None:
        """Close the connections with the largest burden until the others fit."""
        while self._buffered > _MAX_HELD:
            now = time.monotonic()
            self._drop_connection(max(self._peers, key=lambda peer: peer.memory_seconds(now)))

    def _authenticate_client(self, peer: _Peer) -> None:
        """Check the secret once the client's part of the handshake has arrived."""
        if len(peer.inside) < _HELLO:
            return
        nonce, given = bytes(peer.inside[:NONCE]), bytes(peer.inside[NONCE:_HELLO])
        self._consume_bytes(peer, _HELLO)
        if not hmac.compare_digest(given, compute_proof(self._secret, b"client", peer.nonce, nonce)):
            with contextlib.suppress(OSError):
                peer.socket.send(bytes(32))  # it reports that the secrets differ
            raise _ConnectionClosed
        peer.socket.send(compute_proof(self._secret, b"server", peer.nonce, nonce))
        del self._strangers[peer]
        self._peers[peer] = None
        peer.known, peer.end = True, None

    def _set_next_event(self, peer: _Peer) -> None:
        """Set a connection's next event: the client reads its answer, its next frame has a turn, or bytes arrive."""
        if peer not in self._peers:
            return  # it was the greatest burden
        if not peer.outside and peer.complete_frame_size():
            peer.waits, peer.end = True, None
            self._turns.append(peer)
            return
        self._select_events(peer, selectors.EVENT_WRITE if peer.outside else selectors.EVENT_READ)
        if not peer.inside and not peer.outside:
            peer.end = None
        elif peer.end is None:
            peer.end = time.monotonic() + _FRAME

    def _select_events(self, peer: _Peer, events: int) -> None:
        """Select on these events of a connection."""
        before, peer.watched = peer.watched, events
        if before == events:
            return
        if not events:
            self._selector.unregister(peer.socket)
        elif before:
            self._selector.modify(peer.socket, events, peer)
        else:
            self._selector.register(peer.socket, events, peer)

    def _take_turns(self) -> None:
        """Answer one frame of each waiting connection. New ones are accepted between rounds, a few at a time."""
        for _ in range(len(self._turns)):
            peer = self._turns.popleft()
            peer.waits = False
            if peer not in self._peers:
                continue
            try:
                self._answer_frame(peer)
                self._set_next_event(peer)
            except Exception:  # one connection's error must not end the server
                self._drop_connection(peer)

    def _answer_frame(self, peer: _Peer) -> None:
        """Answer a complete frame."""
        size = peer.complete_frame_size()
        message = bytes(memoryview(peer.inside)[4:size])
        self._consume_bytes(peer, size)
        if peer.unconfirmed is not None:  # a client that continues has received the answer
            self._table._took(peer.unconfirmed[1])
            peer.unconfirmed = None
        if not message:
            return
        pieces = _make_frame(*self._run_command(message, peer))
        sent, size = _send_pieces(peer.socket, pieces), sum(map(len, pieces))
        if sent < size:
            peer.outside.extend(map(memoryview, pieces))
            peer.since = time.monotonic()
            for one in pieces:
                self._count_shared_object(peer, one)
            self._took(peer, sent)
            self._make_room()

    def _run_command(self, message: bytes, peer: _Peer) -> tuple[list[bytes], bytes]:
        """Return the parts of the answer to a message, and those already encoded."""
        try:
            command, *parts = unpack_byte_strings(message, 1 + MAX_NAMED)
            if command not in COMMANDS:
                raise ValueError(f"no command {command[:50]!r}")
            if command == b"keys" and not parts:
                return [b""], self._table._names()
            if command == b"pop":
                found = self._table._pop_tentatively(*parts)
                peer.unconfirmed = (parts[0], found[0]) if found else None
                return [b"", *found], b""
            return [b"", *COMMANDS[command](self._table, *parts)], b""
        except LimitExceeded as error:
            return [str(error).encode()], b""
        except (TypeError, ValueError) as error:
            return [f"a message that no store sends: {error!r}"[:500].encode()], b""

    def _took(self, peer: _Peer, sent: int) -> None:
        """Drop the sent bytes; the rest waits until the client reads more, and nothing is received until then."""
        outside = peer.outside
        while outside and sent >= len(outside[0]):
            sent -= len(outside[0])
            self._uncount_shared_object(peer, outside.popleft())
        if sent:
            outside[0] = outside[0][sent:]
        if not outside:
            peer.end = None

    def _count_shared_object(self, peer: _Peer, data: bytes) -> None:
        """Account for an object that a connection references: once for the server, however many share it."""
        peer.pinned += len(data)
        self._pins[id(data)] = count = self._pins.get(id(data), 0) + 1
        if count == 1:
            self._buffered += len(data)

    def _uncount_shared_object(self, peer: _Peer, view: memoryview) -> None:
        data: Any = view.obj
        peer.pinned -= len(data)
        self._pins[id(data)] -= 1
        if not self._pins[id(data)]:
            del self._pins[id(data)]
            self._buffered -= len(data)

    def _consume_bytes(self, peer: _Peer, size: int) -> None:
        del peer.inside[:size]
        self._buffered -= size

    def _drop_connection(self, peer: _Peer) -> None:
        self._strangers.pop(peer, None)
        self._peers.pop(peer, None)
        self._buffered -= len(peer.inside)
        peer.inside = bytearray()
        while peer.outside:
            self._uncount_shared_object(peer, peer.outside.popleft())
        if peer.unconfirmed is not None:  # it may not have got the value
            self._table._undo_pop(*peer.unconfirmed)
            peer.unconfirmed = None
        with contextlib.suppress(KeyError, ValueError, OSError):
            self._selector.unregister(peer.socket)
        peer.socket.close()


def _make_frame(parts: list[bytes], packed: bytes = b"") -> list[bytes]:
    """Return the pieces of an answer. Large values are not copied."""
    size = 8 * len(parts) + sum(map(len, parts)) + len(packed)
    if size < _LARGE:
        return [_size_of_frame(size) + pack_byte_strings(parts) + packed]
    if packed:
        return [_size_of_frame(size) + pack_byte_strings(parts), packed]
    pieces: list[bytes] = []
    small = [_size_of_frame(size)]
    for part in parts:
        small.append(size_of(len(part)))
        if len(part) < _LARGE:
            small.append(part)
        else:
            pieces += b"".join(small), part
            small = []
    return [*pieces, b"".join(small)] if small else pieces


def _send_pieces(channel: socket.socket, pieces: Sequence[bytes | memoryview]) -> int:
    """Send the first pieces; return the number of bytes accepted."""
    first = pieces[0]
    try:
        if len(pieces) == 1 or len(first) >= _LARGE:
            return channel.send(first[:_SENT])
        return channel.sendmsg([first, memoryview(pieces[1])[:_SENT]])
    except (BlockingIOError, InterruptedError):
        return 0


_all: weakref.WeakSet[TCPStoreServer] = weakref.WeakSet()


def _close_all_in_child() -> None:
    for server in list(_all):
        server._close_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_all_in_child)


def listen_on_host(host: str, port: int) -> list[socket.socket]:
    """Return sockets that listen on the addresses of a host; "" means all. OSError if none can."""
    for _ in range(8):
        made: list[socket.socket] = []
        try:
            _listen_on(socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE), made)
        except OSError as error:
            for listener in made:
                listener.close()
            if port or error.errno != errno.EADDRINUSE:  # a free port of one address may be in use on the next
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
