"""Check that all ranks are in the same collective before its data moves.

MPI does not define what happens if ranks disagree in a collective: they may get wrong data, or never return. Each
collective therefore begins by exchanging a header of fixed size: call, operation or root, number of elements and size.
If headers differ, every rank raises and no data moves. The headers have communicators of their own, and data transfers
start in the order of the headers.

Few ranks send each other their headers as messages, which may be longer: small collectives append their data and need
no second round. Many ranks gather headers alone.
"""

from __future__ import annotations

import hashlib
import threading
import weakref
from collections import deque
from collections.abc import Callable, Generator
from typing import Any

import numpy as np
from mpi4py import MPI

from .requests import EAGER_POLLS, Request, active_queues, poll, spin_polls

HEADER_BYTES = 96  # bytes of a header
MAX_INLINE_BYTES = 1 << 10  # bytes of data that go with a header
_MAX_EXCHANGE_RANKS = 4  # ranks that send each other their headers as messages
_MAX_SPARE = 8  # maximum cached exchanges of one header
# yields requests to wait for; returns the request that moves the data
Steps = Generator[MPI.Request, None, MPI.Request | None]


class CollectiveMismatch(RuntimeError):
    """Ranks of a group are in different collectives."""


def header(call: str, how: Any, what: str, size: Any) -> bytes:
    """Return a rank's description of a collective: the call, the operation or root, its elements, and their size."""
    said = f"{call}{'' if how is None else f'({how})'} of {what}, {size}"
    text = said.encode()
    if len(text) > HEADER_BYTES:
        text = text[: HEADER_BYTES - 20] + b"... " + hashlib.blake2s(text, digest_size=8).hexdigest().encode()
    return text.ljust(HEADER_BYTES)


class InlineData:
    """Data of a small collective, appended to the header: so many bytes from each rank that `sends`.

    `finishing` takes the ranks' buffers and returns a function that computes the result from them.
    """

    def __init__(
        self, nbytes: int, dtype: np.dtype, sends: bool, finishing: Callable[[list[Any]], Callable[[np.ndarray], Any]]
    ) -> None:
        self.nbytes, self.dtype, self.sends, self.finishing = nbytes, dtype, sends, finishing


class Header:
    """A header in MPI's form."""

    def __init__(self, text: bytes, size: int, small: InlineData | None = None) -> None:
        self.text, self.small = text, small
        self.expected = text * size
        self.given = [np.frombuffer(text, np.uint8), MPI.BYTE]
        self.spare: list[PairwiseCheck | AllgatherCheck] = []


class AllgatherCheck:
    """Header check of many ranks by all-gather."""

    def __init__(self, line: CollectiveQueue, head: Header) -> None:
        self._comm, self._head = line.comm, head
        self._everyone = np.empty((line.size, HEADER_BYTES), np.uint8)

    def begin(self, array: np.ndarray | None) -> None:
        """Start the exchange of this rank's header."""
        self.Test = self._comm.Iallgather(self._head.given, [self._everyone, MPI.BYTE]).Test

    def agree(self) -> bool:
        """True if all received headers are equal."""
        return self._everyone.tobytes() == self._head.expected

    def texts(self) -> list[bytes]:
        """Return the headers of all ranks."""
        return [row.tobytes() for row in self._everyone]

    def free(self) -> None:
        """Do nothing: there is nothing to free."""


class PairwiseCheck:
    """Header check of few ranks by messages, with the data of a small collective.

    Everything is prepared once, messages and functions, as a call lasts a few microseconds.
    """

    def __init__(self, line: CollectiveQueue, head: Header) -> None:
        comm, rank, small = line.near, line.rank, head.small
        assert comm is not None
        nbytes = small.nbytes if small is not None else 0
        mine = np.empty(HEADER_BYTES + (nbytes if small is not None and small.sends else 0), np.uint8)
        mine[:HEADER_BYTES] = np.frombuffer(head.text, np.uint8)
        rooms = [mine if r == rank else np.empty(HEADER_BYTES + MAX_INLINE_BYTES, np.uint8) for r in range(line.size)]
        self._heads = [room[:HEADER_BYTES] for room in rooms]
        others = [r for r in range(line.size) if r != rank]
        receives = [comm.Recv_init([rooms[r], MPI.BYTE], r, 0) for r in others]
        sends = [comm.Send_init([mine, MPI.BYTE], r, 0) for r in others]
        self._requests = [*receives, *sends]
        line.made.add(self)
        own = None
        if small is not None:
            parts = [room[HEADER_BYTES : HEADER_BYTES + nbytes] for room in rooms]
            parts = [part.view(small.dtype) if part.size else part for part in parts]
            own = parts[rank] if small.sends else None
            self.finish = small.finishing(parts)  # makes the result in memory of one dimension
        self.begin = _header_sender([request.Start for request in self._requests], own)
        tests = [request.Test for request in self._requests]
        read, text = [self._heads[r].tobytes for r in others], head.text
        if len(others) == 1:
            (came, went), (only,) = tests, read
            self.Test = lambda: came() and went()
            self.agree = lambda: only() == text
        else:
            self.Test = lambda: all(test() for test in tests)
            self.agree = lambda: all(said() == text for said in read)

    def texts(self) -> list[bytes]:
        """Return the headers of all ranks."""
        return [head.tobytes() for head in self._heads]

    def free(self) -> None:
        """Free the prepared messages in MPI, which must not be in flight."""
        while self._requests:
            self._requests.pop().Free()

    def __del__(self) -> None:
        if self._requests and not MPI.Is_finalized():
            self.free()


def _header_sender(starts: list[Callable[[], None]], own: np.ndarray | None) -> Callable[[Any], None]:
    """Return the function that sends this rank's header, with its data if `own` is the buffer for it."""
    copy = np.copyto
    if len(starts) == 2:
        receive, send = starts

        def begin(array: Any) -> None:
            if own is not None:
                copy(own, array if array.ndim == 1 else array.ravel("K"))
            receive()
            send()

        return begin

    def begin_all(array: Any) -> None:
        if own is not None:
            copy(own, as_flat(array))
        for start in starts:
            start()

    return begin_all


def as_flat(array: Any) -> np.ndarray:
    """Return contiguous memory in one dimension."""
    return array if array.ndim == 1 else array.ravel("K")


class CollectiveQueue:
    """The collectives of a group, in order."""

    def __init__(self, comm: MPI.Comm) -> None:
        self.comm, self.size, self.rank, self.lock = comm, comm.Get_size(), comm.Get_rank(), threading.RLock()
        self.near = comm.Dup() if 1 < self.size <= _MAX_EXCHANGE_RANKS else None  # for the messages of few ranks
        self.made: weakref.WeakSet[PairwiseCheck] = weakref.WeakSet()
        self._waiting: deque[CheckedCollective] = deque()  # their data has not begun
        self._greedy = spin_polls(self.size)
        _queues.add(self)

    def _words(self, head: Header) -> PairwiseCheck | AllgatherCheck:
        if head.spare:
            return head.spare.pop()
        return AllgatherCheck(self, head) if self.near is None else PairwiseCheck(self, head)

    def check(self, everyone: list[bytes], mine: bytes, begins: int = HEADER_BYTES) -> None:
        """Raise CollectiveMismatch if the first `begins` bytes of a rank's header differ."""
        for other, text in enumerate(everyone):
            if text[:begins] != mine[:begins]:
                raise CollectiveMismatch(
                    f"Detected mismatch between collectives on ranks. Rank {self.rank} is running collective: "
                    f"{format_header(mine)}, but Rank {other} is running collective: {format_header(text)}. "
                    "No data was sent. TORCH_DISTRIBUTED_DEBUG=DETAIL says more."
                )

    def begin(
        self,
        head: bytes | Header,
        start: Callable[[], MPI.Request | None] | None,
        kept: tuple[Any, ...],
        written: int = 0,
        differing: Callable[[list[bytes]], Steps] | None = None,
    ) -> CheckedCollective:
        """Queue a collective whose `start` moves the data once the headers agree.

        A small one moves it with the header, between the arrays `kept`: (written, read). `differing` continues after
        different headers (without it they are an error), and always if there is no `start`.
        """
        with self.lock:
            said = Header(head, self.size) if isinstance(head, bytes) else head
            words = self._words(said)
            words.begin(_read(*kept) if said.small is not None else None)
            made = self._queue(words, said, start, kept, written, differing)
            self.advance()
            return made

    def run_blocking(
        self,
        head: Header,
        start: Callable[[Any, Any], MPI.Request],
        out: np.ndarray,
        array: np.ndarray | None,
        differing: Callable[[list[bytes]], Steps] | None,
    ) -> Request | None:
        """Like `begin`, but wait; return None when complete."""
        with self.lock:
            words, small = head.spare.pop() if head.spare else self._words(head), head.small
            words.begin(out if array is None else array)
            try:
                arrived = not self._waiting and poll(words.Test, EAGER_POLLS, self._greedy)
            except BaseException:  # MPI has the memory still
                Request(words, (words,))  # type: ignore[arg-type]
                raise
            if not arrived or not words.agree():
                if arrived and differing is None:
                    self.check(words.texts(), head.text)
                begin = lambda: start(out, array)
                return self._queue(words, head, begin, (out, array), out.nbytes, differing)
            if small is not None:
                words.finish(as_flat(out))  # type: ignore[union-attr]
                head.spare.append(words)
                return None
            head.spare.append(words)
            request = start(out, array)
        try:
            if poll(request.Test, EAGER_POLLS, self._greedy):
                return None
        except BaseException:  # MPI has the memory still
            Request(request, (out, array))
            raise
        return Request(request, (out, array), out.nbytes)

    def _queue(
        self, words: Any, head: Header, start: Any, kept: tuple[Any, ...], written: int, differing: Any
    ) -> CheckedCollective:
        def steps() -> Steps:
            yield words
            agree = words.agree()
            if start is None or (not agree and differing is not None):
                return (yield from differing(words.texts()))
            if not agree:
                self.check(words.texts(), head.text)
            if head.small is not None:
                words.finish(as_flat(kept[0]))
            request = start() if head.small is None else None
            if len(head.spare) < _MAX_SPARE:
                head.spare.append(words)
            return request

        made = CheckedCollective(self, steps(), (kept, head, words), written)
        self._waiting.append(made)
        active_queues.add(self)
        return made

    def advance(self) -> None:
        """Start the transfers that can start."""
        with self.lock:
            while self._waiting and self._waiting[0].move():
                self._waiting.popleft()
            if not self._waiting:
                active_queues.discard(self)

    def free(self) -> None:
        """Free the group's communicators and messages."""
        active_queues.discard(self)
        self.release()
        self.comm.Free()
        if self.near is not None:
            self.near.Free()

    def release(self) -> None:
        """Free the prepared messages in MPI."""
        for exchange in list(self.made):
            exchange.free()


def _read(out: np.ndarray, array: np.ndarray | None) -> np.ndarray:
    return out if array is None else array


_queues: weakref.WeakSet[CollectiveQueue] = weakref.WeakSet()


def release_all() -> None:
    """Free the prepared messages of all groups in MPI, before it is finalized."""
    for line in list(_queues):
        line.release()


class CheckedCollective(Request):
    """A collective whose data moves when the ranks agree."""

    def __init__(self, line: CollectiveQueue, steps: Steps, kept: tuple[Any, ...], written: int) -> None:
        self._line, self._steps = line, steps
        self._step: MPI.Request = next(steps)
        self._begun = False
        self._failed: Exception | None = None
        self._data: MPI.Request | None = None
        super().__init__(self._step, kept, written)
        self._test = self._arrived

    def move(self) -> bool:
        """Advance the header exchange; return True if the transfer has started or failed."""
        try:
            while self._step.Test():
                self._step = next(self._steps)
            return False
        except StopIteration as end:
            self._data = end.value
        except (MPI.Exception, RuntimeError) as error:
            self._failed = error
        self._begun = True
        return True

    def _arrived(self) -> bool:
        if not self._begun:
            self._line.advance()
            if not self._begun:
                return False
        if self._failed is not None:
            raise self._failed
        return self._data is None or self._data.Test()


def format_header(text: bytes) -> str:
    """Return a header as an error message shows it."""
    return text.decode(errors="replace").rstrip()
