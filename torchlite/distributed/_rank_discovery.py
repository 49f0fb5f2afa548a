"""Rank and size of this process from arguments, URL, environment or MPI."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlparse

from ._transports import find_transport
from ._work import DistStoreError

_LAUNCH_HINT = (
    "A world of {size} processes is started by mpiexec, which connects them: python -m torchlite.distributed.run "
    "--nproc-per-node {size} SCRIPT, or mpiexec -n {size} python SCRIPT; processes that were started by hand cannot "
    "join each other."
)

# {URL scheme: handler}
handlers: dict[str, Any] = {}


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
            _join_world(messages, rank, size, _meeting_address(init_method, store), timeout)
            rank, size = _rank_from_transport(messages, timeout)
            return RankInfo(rank, size, store)
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
        raise ValueError(
            f"rank {requested[0]} of {requested[1]} was asked for, but mpiexec started this process as rank {place[0]} "
            f"of {place[1]}"
        )
    return RankInfo(place[0], place[1], store)


def _meeting_address(init_method: str | None, store: Any) -> str:
    """Return the rendezvous address of a world; "" if it is not on this machine."""
    import socket

    host, port = os.environ.get("MASTER_ADDR", ""), os.environ.get("MASTER_PORT", "")
    if store is not None:
        host, port = getattr(store, "host", ""), str(getattr(store, "port", ""))
    elif init_method is not None and not init_method.startswith("env"):
        url = urlparse(init_method)
        if url.scheme == "file":
            return os.path.realpath(url.path)
        host, port = url.hostname or "", str(url.port or "")
    here = host in ("localhost", "::1", socket.gethostname()) or host.startswith("127.")
    return f"{host}:{port}" if here and port else ""


def _join_world(messages: Any, rank: int, size: int, meeting: str, timeout: timedelta) -> None:
    """Join processes that MPI's launcher did not start to one world. RuntimeError for a rendezvous on another
    machine.
    """
    why = messages.why_not() if not meeting else ""
    if not meeting or why:
        raise RuntimeError(_LAUNCH_HINT.format(size=size))
    try:
        messages.join(rank, size, meeting, timeout.total_seconds())
    except TimeoutError as error:
        from ._work import DistNetworkError

        raise DistNetworkError(f"Timed out after {round(timeout.total_seconds())} seconds: {error}") from None


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


def _parse_number(name: str, text: str) -> int:
    """Return a non-negative integer from a variable or URL parameter."""
    try:
        value = int(text)
    except ValueError:
        raise ValueError(f"{name} must be an integer: invalid literal for int() with base 10: {text!r}") from None
    if value < 0:
        raise ValueError(f"{name} must not be negative, but it is {text}")
    return value


def rank_from_environment(rank: int, size: int, needed: bool) -> tuple[int, int]:
    found = []
    for value, name in ((rank, "RANK"), (size, "WORLD_SIZE")):
        if value < 0 and name in os.environ:
            value = _parse_number(name, os.environ[name])
        if value < 0 and needed:
            raise ValueError(
                "Error initializing torch.distributed using env:// rendezvous: environment variable "
                f"{name} expected, but not set"
            )
        found.append(value)
    if not needed and max(found) < 0 and not find_transport("mpi").started():
        return 0, 1
    return found[0], found[1]


def rank_from_url(url: Any, text: str, rank: int, size: int) -> tuple[int, int]:
    if url.scheme not in ("tcp", "file"):
        raise RuntimeError(f"No rendezvous handler for {url.scheme}://")
    query = parse_qs(url.query)
    rank = _parse_number("rank", query["rank"][0]) if "rank" in query else rank
    size = _parse_number("world_size", query["world_size"][0]) if "world_size" in query else size
    if url.scheme == "tcp" and url.port is None:
        raise ValueError(f"Error initializing torch.distributed using tcp:// rendezvous: port number missing in {text}")
    if not find_transport("mpi").started():
        for value, name in ((rank, "rank"), (size, "world size")):
            if value < 0:
                raise ValueError(
                    f"Error initializing torch.distributed using {url.scheme}:// rendezvous: {name} parameter missing"
                )
    return rank, size
