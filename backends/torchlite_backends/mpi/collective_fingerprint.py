"""Ranks tell each other which collective they are in before its data moves.

MPI does not say what happens where ranks disagree in a collective: they may get what nobody sent, or never return. So
each collective begins with a header of fixed size that all ranks get: it says call, operation or root, elements and
size. Where headers differ, every rank raises and no data moves. The headers have communicators of their own, and the
data of collectives begins in the order of the headers.

Few ranks send each other their headers as messages, which may be longer than the header: small collectives have their
data there, and need no other round. Many ranks gather headers alone.
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
_MAX_SPARE = 8  # exchanges of one header that are kept
Steps = Generator[MPI.Request, None, MPI.Request | None]  # what is waited for in turn; at last what moves the data


class CollectiveMismatch(RuntimeError):
    """Ranks of a group are in different collectives."""


def header(call: str, how: Any, what: str, size: Any) -> bytes:
    """What a rank says of a collective: the call, the operation or root, its elements, and their size."""
    said = f"{call}{'' if how is None else f'({how})'} of {what}, {size}"
    text = said.encode()
    if len(text) > HEADER_BYTES:
        text = text[: HEADER_BYTES - 20] + b"... " + hashlib.blake2s(text, digest_size=8).hexdigest().encode()
    return text.ljust(HEADER_BYTES)


class InlineData:
    """The data of a small collective: a rank that `sends` has so many bytes behind its header. `finishing` is given the
    places of the ranks' data and returns a function that makes the result of what is there.
    """

    def __init__(
        self, nbytes: int, dtype: np.dtype, sends: bool, finishing: Callable[[list[Any]], Callable[[np.ndarray], Any]]
    ) -> None:
        self.nbytes, self.dtype, self.sends, self.finishing = nbytes, dtype, sends, finishing


class Header:
    """A header as MPI sends it."""

    def __init__(self, text: bytes, size: int, small: InlineData | None = None) -> None:
        self.text, self.small = text, small
        self.expected = text * size
        self.given = [np.frombuffer(text, np.uint8), MPI.BYTE]
        self.spare: list[PairwiseCheck | AllgatherCheck] = []


class AllgatherCheck:
    """One agreement of many ranks."""

    def __init__(self, line: CollectiveQueue, head: Header) -> None:
        self._comm, self._head = line.comm, head
        self._everyone = np.empty((line.size, HEADER_BYTES), np.uint8)

    def begin(self, array: np.ndarray | None) -> None:
        """Say this rank's header."""
        self.Test = self._comm.Iallgather(self._head.given, [self._everyone, MPI.BYTE]).Test

    def agree(self) -> bool:
        """Whether all that arrived is alike."""
        return self._everyone.tobytes() == self._head.expected

    def texts(self) -> list[bytes]:
        """The headers of all ranks."""
        return [row.tobytes() for row in self._everyone]

    def free(self) -> None:
        """Nothing is kept."""


class PairwiseCheck:
    """One agreement of few ranks, with the data of a small collective. All that it does is prepared once: its messages,
    and functions that take no detours, as a call lasts a few microseconds.
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
        """The headers of all ranks."""
        return [head.tobytes() for head in self._heads]

    def free(self) -> None:
        """Give MPI its prepared messages back, which are not under way."""
        while self._requests:
            self._requests.pop().Free()

    def __del__(self) -> None:
        if self._requests and not MPI.Is_finalized():
            self.free()


def _header_sender(starts: list[Callable[[], None]], own: np.ndarray | None) -> Callable[[Any], None]:
    """The function that sends this rank's header, with its data where `own` is the place of that."""
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
    """Contiguous memory in one dimension."""
    return array if array.ndim == 1 else array.ravel("K")


class CollectiveQueue:
    """The collectives of a group, in their order."""

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
        """Disagreement where a rank's header is another one, or begins otherwise."""
        for other, text in enumerate(everyone):
            if text[:begins] != mine[:begins]:
                raise CollectiveMismatch(
                    f"Detected mismatch between collectives on ranks. Rank {self.rank} is running collective: "
                    f"{format_header(mine)}, but Rank {other} is running collective: {format_header(text)}. No data was sent. "
                    "TORCH_DISTRIBUTED_DEBUG=DETAIL says more."
                )

    def begin(
        self,
        head: bytes | Header,
        start: Callable[[], MPI.Request | None] | None,
        kept: tuple[Any, ...],
        written: int = 0,
        differing: Callable[[list[bytes]], Steps] | None = None,
    ) -> CheckedCollective:
        """A collective whose `start` moves the data once the headers agree; a small one has it with the header, and its
        memory is what is `kept`: written, and read. `differing` says what follows where they do not (an error without
        it), and in any case where there is no `start`.
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
        """The same for a caller who waits: None when all is done."""
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
        """Begin what can begin."""
        with self.lock:
            while self._waiting and self._waiting[0].move():
                self._waiting.popleft()
            if not self._waiting:
                active_queues.discard(self)

    def free(self) -> None:
        """The group is not used any more."""
        active_queues.discard(self)
        self.release()
        self.comm.Free()
        if self.near is not None:
            self.near.Free()

    def release(self) -> None:
        """Give MPI the prepared messages back."""
        for exchange in list(self.made):
            exchange.free()


def _read(out: np.ndarray, array: np.ndarray | None) -> np.ndarray:
    return out if array is None else array


_queues: weakref.WeakSet[CollectiveQueue] = weakref.WeakSet()


def release_all() -> None:
    """Give MPI the prepared messages of all groups back, before it ends."""
    for line in list(_queues):
        line.release()


class CheckedCollective(Request):
    """A collective whose data begins when the ranks agree."""

    def __init__(self, line: CollectiveQueue, steps: Steps, kept: tuple[Any, ...], written: int) -> None:
        self._line, self._steps = line, steps
        self._step: MPI.Request = next(steps)
        self._begun = False
        self._failed: Exception | None = None
        self._data: MPI.Request | None = None
        super().__init__(self._step, kept, written)
        self._test = self._arrived

    def move(self) -> bool:
        """Go on before the data: whether that has begun, or failed."""
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
    """A header as an error shows it."""
    return text.decode(errors="replace").rstrip()
