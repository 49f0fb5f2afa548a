"""Where this process stands in its world: who says so, and that all who say it agree."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlparse

import numpy as np

from ._stores import FileStore, HashStore, Store, TCPStore
from ._transports import transport_of
from ._work import DistStoreError

_LAUNCH_HINT = (
    "A world of {size} processes is started by mpiexec, which connects them: python -m torchlite.distributed.run "
    "--nproc-per-node {size} SCRIPT, or mpiexec -n {size} python SCRIPT; processes that were started by hand cannot "
    "join each other."
)


class RankInfo(NamedTuple):
    """A rank among `size`, and the store that was given."""

    rank: int
    size: int
    store: Any


def find_rank(backend: str, init_method: str | None, rank: int, size: int, store: Any, timeout: timedelta) -> RankInfo:
    """The rank and size that arguments, address or environment say, which must be those of the processes that MPI
    started. RuntimeError with the way to start a world where nothing did.
    """
    messages = transport_of("mpi")
    started = messages.started()
    if init_method is not None and store is None:
        url = urlparse(init_method)
        if url.scheme in _handlers:
            store, rank, size = next(_handlers[url.scheme](init_method, rank=rank, world_size=size, timeout=timeout))
        elif url.scheme != "env":
            rank, size = _rank_from_url(url, init_method, rank, size)
    _check_rank(rank, size)
    explicit = size > 0
    if not started:
        rank, size = _rank_from_environment(rank, size, backend != "mpi")
        _check_rank(rank, size)
        if size > 1:
            _join(messages, rank, size, _meeting_address(init_method, store), timeout)
            rank, size = _rank_from_transport(messages, timeout)
            return RankInfo(rank, size, store)
        return RankInfo(0, 1, store)
    if explicit and size == 1:
        return RankInfo(0, 1, store)
    rank, size = _rank_from_environment(rank, size, False)
    _check_rank(rank, size)
    why = messages.why_not()
    if why:
        raise RuntimeError(f"Distributed package doesn't have MPI built in: {why}")
    place = _rank_from_transport(messages, timeout)
    said = (place[0] if rank < 0 else rank, place[1] if size < 0 else size)
    if said != place:
        raise ValueError(
            f"rank {said[0]} of {said[1]} was asked for, but mpiexec started this process as rank {place[0]} of "
            f"{place[1]}"
        )
    return RankInfo(place[0], place[1], store)


def _meeting_address(init_method: str | None, store: Any) -> str:
    """Where the processes of a world say that they meet; "" where that is no place on this machine."""
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


def _join(messages: Any, rank: int, size: int, meeting: str, timeout: timedelta) -> None:
    """Make one world of processes that nothing of MPI started. RuntimeError where they meet on another machine."""
    why = messages.why_not() if not meeting else ""
    if not meeting or why:
        raise RuntimeError(_LAUNCH_HINT.format(size=size))
    try:
        messages.join(rank, size, meeting, timeout.total_seconds())
    except TimeoutError as error:
        from ._work import DistNetworkError

        raise DistNetworkError(f"Timed out after {round(timeout.total_seconds())} seconds: {error}") from None


def _rank_from_transport(messages: Any, timeout: timedelta) -> tuple[int, int]:
    """The rank and size that MPI says, once all processes have come. DistStoreError where they do not."""
    seconds = timeout.total_seconds()
    try:
        return messages.place(seconds)
    except TimeoutError as error:
        raise DistStoreError(f"Timed out after {round(seconds)} seconds waiting for clients. {error}") from None


def _check_rank(rank: int, size: int) -> None:
    """ValueError for a rank that a world of this size does not have; negative numbers are not known yet."""
    if size == 0:
        raise ValueError("TCPStore world size cannot be 0")
    if 0 < size <= rank:
        raise ValueError(f"rank {rank} is not in a world of {size} {'process' if size == 1 else 'processes'}")


def _parse_number(name: str, text: str) -> int:
    """What a variable or a parameter of an address says, which is no negative number."""
    try:
        value = int(text)
    except ValueError:
        raise ValueError(f"{name} must be an integer: invalid literal for int() with base 10: {text!r}") from None
    if value < 0:
        raise ValueError(f"{name} must not be negative, but it is {text}")
    return value


def _rank_from_environment(rank: int, size: int, needed: bool) -> tuple[int, int]:
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
    if not needed and max(found) < 0 and not transport_of("mpi").started():
        return 0, 1
    return found[0], found[1]


def _rank_from_url(url: Any, text: str, rank: int, size: int) -> tuple[int, int]:
    if url.scheme not in ("tcp", "file"):
        raise RuntimeError(f"No rendezvous handler for {url.scheme}://")
    query = parse_qs(url.query)
    rank = _parse_number("rank", query["rank"][0]) if "rank" in query else rank
    size = _parse_number("world_size", query["world_size"][0]) if "world_size" in query else size
    if url.scheme == "tcp" and url.port is None:
        raise ValueError(f"Error initializing torch.distributed using tcp:// rendezvous: port number missing in {text}")
    if not transport_of("mpi").started():
        for value, name in ((rank, "rank"), (size, "world size")):
            if value < 0:
                raise ValueError(
                    f"Error initializing torch.distributed using {url.scheme}:// rendezvous: {name} parameter missing"
                )
    return rank, size


def create_default_store(rank: int, size: int, communicator: Any, timeout: timedelta) -> Any:
    """The store of a world, under an address that rank 0 tells the others: a file where all are on one machine."""
    if size == 1:
        return HashStore()
    if communicator is None:
        return None  # a backend of somebody else's
    import secrets
    import socket

    from .._settings.temporary_folders import process_folder

    near = transport_of("mpi").local_rank_and_size()[1] == size
    secret = secrets.token_hex(16)
    message, served = np.zeros(256, np.uint8), None
    if rank == 0:
        if near:
            address = os.path.join(process_folder(), f"store_{uuid.uuid4().hex}")  # goes with rank 0
        else:
            served = TCPStore("0.0.0.0", 0, None, True, timeout, wait_for_workers=False, _secret=secret.encode())
            address = f"{secret}@{socket.gethostname()}:{served.port}"
        message[: len(address.encode())] = list(address.encode())
    communicator.broadcast(message, 0).wait(timeout.total_seconds())
    address = bytes(message).rstrip(b"\0").decode()
    if near:
        return _once(lambda: FileStore(address, size))
    if served is not None:
        return served
    secret, _, place = address.partition("@")  # rank 0's, which nobody but the ranks has seen
    host, _, port = place.rpartition(":")
    return _once(lambda: TCPStore(host, int(port), None, False, timeout, _secret=secret.encode()))


def _once(make: Callable[[], Store]) -> Callable[[], Store]:
    made: list[Store] = []
    return lambda: made[0] if made else made.append(make()) or made[0]  # type: ignore[func-returns-value]


_handlers: dict[str, Callable[..., Iterator[tuple[Store, int, int]]]] = {}


def register_rendezvous_handler(scheme: str, handler: Callable[..., Iterator[tuple[Store, int, int]]]) -> None:
    """Have `init_method="scheme://..."` ask `handler(url, rank=..., world_size=...)` for store, rank and size."""
    if scheme in _handlers or scheme in ("env", "tcp", "file"):
        raise RuntimeError(f"Rendezvous handler for {scheme}:// already registered")
    _handlers[scheme] = handler


def rendezvous(url: str, rank: int = -1, world_size: int = -1, **kwargs: Any) -> Iterator[tuple[Store, int, int]]:
    """A store at an address, with the rank and size that go with it: `tcp://`, `file://` or `env://`."""
    if not isinstance(url, str):
        raise RuntimeError(f"`url` must be a string. {type(url)}: {url}")
    parsed = urlparse(url)
    if parsed.scheme in _handlers:
        yield from _handlers[parsed.scheme](url, rank=rank, world_size=world_size, **kwargs)
        return
    timeout = kwargs.get("timeout", timedelta(minutes=5))
    if parsed.scheme == "env":
        rank, world_size = _rank_from_environment(rank, world_size, True)
        _check_rank(rank, world_size)
        host, port = os.environ.get("MASTER_ADDR", "localhost"), int(os.environ.get("MASTER_PORT", "29500"))
    else:
        rank, world_size = _rank_from_url(parsed, url, rank, world_size)
        _check_rank(rank, world_size)
        if parsed.scheme == "file":
            yield FileStore(parsed.path, world_size), rank, world_size
            return
        host, port = parsed.hostname or "localhost", parsed.port or 0
    yield TCPStore(host, port, world_size, rank == 0, timeout), rank, world_size
