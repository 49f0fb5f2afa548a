"""Steps of the creation of a group within a limit: its members meet, then MPI makes a communicator.

MPI busy-waits without a limit while it makes one, so a thread calls it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from mpi4py import MPI

from .requests import Request

_ANSWER_TIME = 2.0  # seconds for the sign of a member that waits too
_Made = TypeVar("_Made")


def wait_for_members(everyone: Any, ranks: Sequence[int], tag: int, limit: float | None) -> None:
    """Wait until all members have called this. TimeoutError after `limit` seconds."""
    word, mine, (first, *others) = np.zeros(1, np.uint8), everyone.Get_rank(), ranks
    words = np.zeros(len(others), np.uint8)
    end = None if limit is None else time.monotonic() + limit
    if mine == first:
        steps = [
            lambda: [everyone.Irecv(words[i : i + 1], rank, tag) for i, rank in enumerate(others)],
            lambda: [everyone.Isend(word, rank, tag) for rank in others],
        ]
    else:
        steps = [lambda: [everyone.Isend(word, first, tag)], lambda: [everyone.Irecv(word, first, tag)]]
    for step in steps:
        requests = [Request(request, (word, words)) for request in step()]
        late = [at for at, request in enumerate(requests) if not request.wait(_left(end))]
        if late:
            more = f": {[others[at] for at in late]} did not" if mine == first else ""
            raise TimeoutError(f"not all of the ranks {list(ranks)} came within {limit} seconds{more}")


def make_within(make: Callable[[], _Made], everyone: Any, ranks: Sequence[int], tag: int, limit: float | None) -> _Made:
    """Return what `make` makes with all members. TimeoutError after `limit` seconds, with the ranks that have ended."""
    results: list[_Made | BaseException] = []
    ended = threading.Event()

    def work() -> None:
        try:
            results.append(make())
        except BaseException as error:  # raised by the thread that waits
            results.append(error)
        ended.set()

    threading.Thread(target=work, name="torchlite new group", daemon=True).start()
    if not ended.wait(None if limit is None else min(limit, threading.TIMEOUT_MAX)):
        Request.gave_up = True
        raise TimeoutError(
            f"the ranks {list(ranks)} met, but did not make the group within {limit} seconds. These ranks ended, or "
            f"cannot be reached: {_find_silent(everyone, ranks, tag)}"
        )
    if isinstance(results[0], BaseException):
        raise results[0]
    return results[0]


def _find_silent(everyone: Any, ranks: Sequence[int], tag: int) -> list[int]:
    """Return the members that give no sign; those that wait as this one does give one within moments."""
    others = [rank for rank in ranks if rank != everyone.Get_rank()]
    word, words = np.zeros(1, np.uint8), np.zeros(len(others), np.uint8)
    silent, end = [], time.monotonic() + _ANSWER_TIME
    asked = {rank: everyone.Irecv(words[i : i + 1], rank, tag) for i, rank in enumerate(others)}
    for rank in others:
        try:
            Request(everyone.Isend(word, rank, tag), (word,))
        except MPI.Exception:  # its connection has ended: its own sign does not come either
            continue
    for rank, request in asked.items():
        try:
            if Request(request, (words,)).wait(_left(end)):
                continue
        except RuntimeError:
            pass
        silent.append(rank)
    return silent


def _left(end: float | None) -> float | None:
    return None if end is None else max(end - time.monotonic(), 0.0)
