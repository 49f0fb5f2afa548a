"""Rank and size of this process from arguments, URL, environment or MPI."""

from __future__ import annotations

import atexit
import contextlib
import os
from datetime import timedelta
from typing import Any, NamedTuple
from urllib.parse import urlparse

from ._rank_arguments import check_rank, handlers, master_from_environment, rank_from_environment, rank_from_url
from ._transports import find_transport
from ._work import DistStoreError


class _Joined:
    """The store of a world that no launcher of MPI started, and how many default groups have used it."""

    store: Any = None
    uses = 0


class RankInfo(NamedTuple):
    """A rank among `size`, and the given store."""

    rank: int
    size: int
    store: Any


def find_rank(backend: str, init_method: str | None, rank: int, size: int, store: Any, timeout: timedelta) -> RankInfo:
    """Return rank and size from arguments, address or environment, which must match MPI's.

    RuntimeError with instructions if no source defines them.
    """
    messages = find_transport("mpi")
    started = messages.started()
    if init_method is not None and store is None:
        url = urlparse(init_method)
        if url.scheme in handlers:
            store, rank, size = next(handlers[url.scheme](init_method, rank=rank, world_size=size, timeout=timeout))
        elif url.scheme != "env":
            rank, size = rank_from_url(url, init_method, rank, size)
    check_rank(rank, size)
    explicit = size > 0
    if not started:
        rank, size = rank_from_environment(rank, size, backend != "mpi")
        check_rank(rank, size)
        if size > 1:
            _Joined.store = _join_world(messages, init_method, rank, size, store, timeout)
            rank, size = _rank_from_transport(messages, timeout)
            return RankInfo(rank, size, _store_of_joined_world())
        return RankInfo(0, 1, store)
    if explicit and size == 1:
        return RankInfo(0, 1, store)
    rank, size = rank_from_environment(rank, size, False)
    check_rank(rank, size)
    why = messages.why_not()
    if why:
        raise RuntimeError(f"Distributed package doesn't have MPI built in: {why}")
    place = _rank_from_transport(messages, timeout)
    requested = (place[0] if rank < 0 else rank, place[1] if size < 0 else size)
    if requested != place:
        how = "mpiexec started this process" if _Joined.store is None else "this process has joined its only world"
        raise ValueError(
            f"rank {requested[0]} of {requested[1]} was asked for, but {how} as rank {place[0]} of {place[1]}"
        )
    return RankInfo(place[0], place[1], _store_of_joined_world() if store is None else store)


def _store_of_joined_world() -> Any:
    """Return a part of the joined world's store that no earlier default group has used; None without such a world."""
    from ._stores import PrefixStore

    if _Joined.store is None:
        return None
    _Joined.uses += 1
    return PrefixStore(f"default_pg_{_Joined.uses}", _Joined.store)


def _join_world(messages: Any, init_method: str | None, rank: int, size: int, store: Any, timeout: timedelta) -> Any:
    """Join processes that MPI's launcher did not start to one world, by a store. Return the store."""
    from ._rendezvous_handlers import rendezvous
    from ._stores import FileStore, PrefixStore

    url, file = "env://" if init_method is None else init_method, ""
    if store is None and url.startswith("env:"):
        master_from_environment()  # an unset variable is reported before an absent library
    if why := messages.why_not():
        raise RuntimeError(f"Distributed package doesn't have MPI built in: {why}")
    if store is None:
        store, rank, size = next(rendezvous(url, rank, size, timeout=timeout, _wait_for_workers=False))
        file = store.path if isinstance(store, FileStore) and rank == 0 else ""
    seconds = timeout.total_seconds()
    try:
        messages.join(rank, size, PrefixStore("torchlite_mpi", store), seconds)
    except TimeoutError as error:
        raise DistStoreError(f"Timed out after {round(seconds)} seconds waiting for clients. {error}") from None
    if file:
        atexit.register(_remove_file, file)
    return store


def _remove_file(path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)


def _rank_from_transport(messages: Any, timeout: timedelta) -> tuple[int, int]:
    """Return MPI's rank and size, once all processes have arrived. DistStoreError if they do not."""
    seconds = timeout.total_seconds()
    try:
        return messages.place(seconds)
    except TimeoutError as error:
        raise DistStoreError(f"Timed out after {round(seconds)} seconds waiting for clients. {error}") from None
