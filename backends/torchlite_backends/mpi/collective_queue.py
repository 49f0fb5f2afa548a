"""Queue of a group's collectives: each moves its data after the ranks' headers agree."""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
from mpi4py import MPI

from .collective_fingerprint import (
    _MAX_EXCHANGE_RANKS,
    _MAX_SPARE,
    HEADER_BYTES,
    AllgatherCheck,
    CollectiveMismatch,
    Header,
    PairwiseCheck,
    Steps,
    flatten,
    format_header,
)
from .requests import EAGER_POLLS, Request, active_queues, choose_spin_polls, poll_until_complete


class CollectiveQueue:
    """The collectives of a group, in order."""

    def __init__(self, comm: MPI.Comm) -> None:
        self.comm, self.size, self.rank, self.lock = comm, comm.Get_size(), comm.Get_rank(), threading.RLock()
        self.near = comm.Dup() if 1 < self.size <= _MAX_EXCHANGE_RANKS else None  # for the messages of few ranks
        self.made: weakref.WeakSet[PairwiseCheck] = weakref.WeakSet()
        self._waiting: deque[CheckedCollective] = deque()  # their data has not begun
        self._greedy = choose_spin_polls(self.size)
        _queues.add(self)

    def _take_header_exchange(self, head: Header) -> PairwiseCheck | AllgatherCheck:
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
            header = Header(head, self.size) if isinstance(head, bytes) else head
            words = self._take_header_exchange(header)
            words.begin(_read_array_or_out(*kept) if header.small is not None else None)
            request = self._append_collective(words, header, start, kept, written, differing)
            self.advance()
            return request

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
            words, small = head.spare.pop() if head.spare else self._take_header_exchange(head), head.small
            words.begin(out if array is None else array)
            try:
                arrived = not self._waiting and poll_until_complete(words.Test, EAGER_POLLS, self._greedy)
            except BaseException:  # MPI has the memory still
                Request(words, (words,))  # type: ignore[arg-type]
                raise
            if not arrived or not words.agree():
                if arrived and differing is None:
                    self.check(words.texts(), head.text)
                begin = lambda: start(out, array)
                return self._append_collective(words, head, begin, (out, array), out.nbytes, differing)
            if small is not None:
                words.finish(flatten(out))  # type: ignore[union-attr]
                head.spare.append(words)
                return None
            head.spare.append(words)
            request = start(out, array)
        try:
            if poll_until_complete(request.Test, EAGER_POLLS, self._greedy):
                return None
        except BaseException:  # MPI has the memory still
            Request(request, (out, array))
            raise
        return Request(request, (out, array), out.nbytes)

    def _append_collective(
        self, words: Any, head: Header, start: Any, kept: tuple[Any, ...], written: int, differing: Any
    ) -> CheckedCollective:
        def run_steps() -> Steps:
            yield words
            agree = words.agree()
            if start is None or (not agree and differing is not None):
                return (yield from differing(words.texts()))
            if not agree:
                self.check(words.texts(), head.text)
            if head.small is not None:
                words.finish(flatten(kept[0]))
            request = start() if head.small is None else None
            if len(head.spare) < _MAX_SPARE:
                head.spare.append(words)
            return request

        collective = CheckedCollective(self, run_steps(), (kept, head, words), written)
        self._waiting.append(collective)
        active_queues.add(self)
        return collective

    def advance(self) -> None:
        """Start the transfers that can start."""
        with self.lock:
            while self._waiting and self._waiting[0].advance_header_exchange():
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


def _read_array_or_out(out: np.ndarray, array: np.ndarray | None) -> np.ndarray:
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
        self._test = self._test_arrival

    def advance_header_exchange(self) -> bool:
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

    def _test_arrival(self) -> bool:
        if not self._begun:
            self._line.advance()
            if not self._begun:
                return False
        if self._failed is not None:
            raise self._failed
        return self._data is None or self._data.Test()
