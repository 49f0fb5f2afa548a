"""Ranks tell each other which collective they are in before its data moves.

MPI does not say what happens where ranks disagree in a collective: they may get what nobody sent, or never return. So
each collective begins with a header of fixed size that all ranks gather: it says call, operation or root, elements and
size. Where headers differ, every rank raises and no data moves. The headers have a communicator of their own, and the
data of collectives begins in the order of the headers.
"""

from __future__ import annotations

import hashlib
import threading
from collections import deque
from collections.abc import Callable, Generator
from typing import Any

import numpy as np
from mpi4py import MPI

from .requests import EAGER, Request, greed, lines, moved

ROOM = 96  # bytes of a header
Steps = Generator[MPI.Request, None, MPI.Request | None]  # what is waited for in turn; at last what moves the data


class Disagreement(RuntimeError):
    """Ranks of a group are in different collectives."""


def header(call: str, how: Any, what: str, size: Any) -> bytes:
    """What a rank says of a collective: the call, the operation or root, its elements, and their size."""
    said = f"{call}{'' if how is None else f'({how})'} of {what}, {size}"
    text = said.encode()
    if len(text) > ROOM:
        text = text[: ROOM - 20] + b"... " + hashlib.blake2s(text, digest_size=8).hexdigest().encode()
    return text.ljust(ROOM)


class Header:
    """A header as MPI sends it."""

    def __init__(self, text: bytes, size: int) -> None:
        self.text = text
        self.expected = text * size
        self.given = [np.frombuffer(text, np.uint8), MPI.BYTE]


class Line:
    """The collectives of a group, in their order."""

    def __init__(self, comm: MPI.Comm) -> None:
        self.comm, self.size, self.lock = comm, comm.Get_size(), threading.RLock()
        self._waiting: deque[Agreed] = deque()  # their data has not begun
        self._greedy = greed(self.size)
        self._spare: list[np.ndarray] = []

    def check(self, everyone: np.ndarray, mine: bytes, begins: int = ROOM) -> None:
        """Disagreement where a rank's header is another one, or begins otherwise."""
        rank = self.comm.Get_rank()
        for other in range(self.size):
            if (text := everyone[other].tobytes())[:begins] != mine[:begins]:
                raise Disagreement(
                    f"Detected mismatch between collectives on ranks. Rank {rank} is running collective: "
                    f"{read(mine)}, but Rank {other} is running collective: {read(text)}. No data was sent. "
                    "TORCH_DISTRIBUTED_DEBUG=DETAIL says more."
                )

    def begin(
        self,
        head: bytes | Header,
        start: Callable[[], MPI.Request | None] | None,
        kept: tuple[Any, ...],
        written: int = 0,
        differing: Callable[[np.ndarray], Steps] | None = None,
    ) -> Agreed:
        """A collective whose `start` moves the data once the headers agree. `differing` says what follows where they do
        not (an error without it), and in any case where there is no `start`.
        """
        with self.lock:
            said = Header(head, self.size) if isinstance(head, bytes) else head
            everyone = np.empty((self.size, ROOM), np.uint8)
            words = self.comm.Iallgather(said.given, [everyone, MPI.BYTE])
            made = self._queue(words, everyone, said, start, kept, written, differing)
            self.advance()
            return made

    def at_once(
        self,
        head: Header,
        start: Callable[[Any, Any], MPI.Request],
        out: np.ndarray,
        array: np.ndarray | None,
        differing: Callable[[np.ndarray], Steps] | None,
    ) -> Request | None:
        """The same for a caller who waits: None when all is done."""
        with self.lock:
            everyone = self._spare.pop() if self._spare else np.empty((self.size, ROOM), np.uint8)
            words = self.comm.Iallgather(head.given, [everyone, MPI.BYTE])
            arrived = not self._waiting and moved(words.Test, EAGER, self._greedy)
            agreed = arrived and everyone.tobytes() == head.expected
            if not agreed:
                if arrived and differing is None:
                    self.check(everyone, head.text)
                begin = lambda: start(out, array)
                return self._queue(words, everyone, head, begin, (out, array), out.nbytes, differing)
            self._spare.append(everyone)
            request = start(out, array)
        try:
            if moved(request.Test, EAGER, self._greedy):
                return None
        except BaseException:  # MPI has the memory still
            Request(request, (out, array))
            raise
        return Request(request, (out, array), out.nbytes)

    def _queue(
        self, words: Any, everyone: Any, head: Header, start: Any, kept: tuple[Any, ...], written: int, differing: Any
    ) -> Agreed:
        def steps() -> Steps:
            yield words
            if start is None or (everyone.tobytes() != head.expected and differing is not None):
                return (yield from differing(everyone))
            self.check(everyone, head.text)
            return start()

        made = Agreed(self, steps(), (kept, head, everyone), written)
        self._waiting.append(made)
        lines.add(self)
        return made

    def advance(self) -> None:
        """Begin what can begin."""
        with self.lock:
            while self._waiting and self._waiting[0].move():
                self._waiting.popleft()
            if not self._waiting:
                lines.discard(self)

    def free(self) -> None:
        """The group is not used any more."""
        lines.discard(self)
        self.comm.Free()


class Agreed(Request):
    """A collective whose data begins when the ranks agree."""

    def __init__(self, line: Line, steps: Steps, kept: tuple[Any, ...], written: int) -> None:
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


def read(text: bytes) -> str:
    """A header as an error shows it."""
    return text.decode(errors="replace").rstrip()
