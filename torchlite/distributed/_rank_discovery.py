"""Rank and size of this process from arguments, URL, environment or MPI."""

from __future__ import annotations

import atexit
import contextlib
import os
from datetime import timedelta
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlparse

from ._transports import find_transport
from ._work import DistStoreError

# {URL scheme: handler}
handlers: dict[str, Any] = {}


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

    if why := messages.why_not():
        raise RuntimeError(f"Distributed package doesn't have MPI built in: {why}")
    if store is None:
        url = "env://" if init_method is None else init_method
        store, rank, size = next(rendezvous(url, rank, size, timeout=timeout, _wait_for_workers=False))
        if isinstance(store, FileStore) and rank == 0:
            atexit.register(_remove_file, store.path)  # after MPI's end, at which all ranks meet
    seconds = timeout.total_seconds()
    try:
        messages.join(rank, size, PrefixStore("torchlite_mpi", store), seconds)
    except TimeoutError as error:
        raise DistStoreError(f"Timed out after {round(seconds)} seconds waiting for clients. {error}") from None
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


def check_rank(rank: int, size: int) -> None:
    """Raise ValueError for a rank beyond the world's size; negative numbers are unset."""
    if size == 0:
        raise ValueError("TCPStore world size cannot be 0")
    if 0 < size <= rank:
        raise ValueError(f"rank {rank} is not in a world of {size} {'process' if size == 1 else 'processes'}")


def parse_number(name: str, text: str) -> int:
    """Return a non-negative integer from a variable or URL parameter."""
    try:
        value = int(text)
    except ValueError:
        raise ValueError(f"{name} must be an integer: invalid literal for int() with base 10: {text!r}") from None
    if value < 0:
        raise ValueError(f"{name} must not be negative, but it is {text}")
    return value


def missing_variable(name: str) -> ValueError:
    """Return PyTorch's error for an environment variable that is not set."""
    return ValueError(
        "Error initializing torch.distributed using env:// rendezvous: environment variable "
        f"{name} expected, but not set"
    )


def rank_from_environment(rank: int, size: int, needed: bool) -> tuple[int, int]:
    found = []
    for value, name in ((rank, "RANK"), (size, "WORLD_SIZE")):
        if value < 0 and name in os.environ:
            value = parse_number(name, os.environ[name])
        if value < 0 and needed:
            raise missing_variable(name)
        found.append(value)
    if not needed and max(found) < 0 and not find_transport("mpi").started():
        return 0, 1
    return found[0], found[1]


def rank_from_url(url: Any, text: str, rank: int, size: int) -> tuple[int, int]:
    if url.scheme not in ("tcp", "file"):
        raise RuntimeError(f"No rendezvous handler for {url.scheme}://")
    query = parse_qs(url.query)
    rank = parse_number("rank", query["rank"][0]) if "rank" in query else rank
    size = parse_number("world_size", query["world_size"][0]) if "world_size" in query else size
    if url.scheme == "tcp" and url.port is None:
        raise ValueError(f"Error initializing torch.distributed using tcp:// rendezvous: port number missing in {text}")
    if not find_transport("mpi").started():
        for value, name in ((rank, "rank"), (size, "world size")):
            if value < 0:
                raise ValueError(
                    f"Error initializing torch.distributed using {url.scheme}:// rendezvous: {name} parameter missing"
                )
    return rank, size
