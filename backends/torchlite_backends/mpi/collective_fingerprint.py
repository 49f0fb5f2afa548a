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
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

import numpy as np
from mpi4py import MPI

if TYPE_CHECKING:
    from .collective_queue import CollectiveQueue


HEADER_BYTES = 96  # bytes of a header
MAX_INLINE_BYTES = 1 << 10  # bytes of data that go with a header
_MAX_EXCHANGE_RANKS = 4  # ranks that send each other their headers as messages
_MAX_SPARE = 8  # maximum cached exchanges of one header
# yields requests to wait for; returns the request that moves the data
Steps = Generator[MPI.Request, None, MPI.Request | None]


class CollectiveMismatch(RuntimeError):
    """Ranks of a group are in different collectives."""


def make_header(call: str, how: Any, what: str, size: Any) -> bytes:
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
        self.begin = _make_header_sender([request.Start for request in self._requests], own)
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


def _make_header_sender(starts: list[Callable[[], None]], own: np.ndarray | None) -> Callable[[Any], None]:
    """Return the function that sends this rank's header, with its data if `own` is the buffer for it."""
    copy = np.copyto
    if len(starts) == 2:
        receive, send = starts

        def begin_send(array: Any) -> None:
            if own is not None:
                copy(own, array if array.ndim == 1 else array.ravel("K"))
            receive()
            send()

        return begin_send

    def begin_all(array: Any) -> None:
        if own is not None:
            copy(own, flatten(array))
        for start in starts:
            start()

    return begin_all


def flatten(array: Any) -> np.ndarray:
    """Return contiguous memory in one dimension."""
    return array if array.ndim == 1 else array.ravel("K")


def format_header(text: bytes) -> str:
    """Return a header as an error message shows it."""
    return text.decode(errors="replace").rstrip()
