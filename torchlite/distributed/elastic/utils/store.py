"""Values of all ranks in a store, and a barrier by it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

from torchlite.distributed.distributed_c10d import DistStoreError

__all__ = ["barrier", "get_all", "store_timeout", "synchronize"]


@contextlib.contextmanager
def store_timeout(store: Any, timeout: float) -> Iterator[None]:
    """Context manager: a store waits for values for some seconds.

    Args:
        store: The store.
        timeout: The seconds.

    Example:
        >>> from torchlite.distributed.elastic.utils.store import store_timeout
        >>> store = torch.distributed.HashStore()
        >>> with store_timeout(store, 2.0):
        ...     store.timeout.total_seconds()
        2.0
    """
    before = store.timeout
    store.set_timeout(timedelta(seconds=timeout))
    try:
        yield
    finally:
        store.set_timeout(before)


def get_all(store: Any, rank: int, prefix: str, world_size: int) -> list[bytes]:
    """Returns the values of all ranks, once they are there. Rank 0 returns after the others have read them.

    Args:
        store: The store.
        rank: The rank of this process.
        prefix: The beginning of the names, which the ranks follow.
        world_size: The number of ranks.

    Example:
        >>> from torchlite.distributed.elastic.utils.store import get_all
        >>> store = torch.distributed.HashStore()
        >>> store.set("x0", "a")
        >>> get_all(store, 0, "x", 1)
        [b'a']
    """
    values: list[bytes] = store.multi_get([f"{prefix}{other}" for other in range(world_size)])
    read = _count(store, world_size, f"{prefix}/finished")
    if rank == 0:  # which may serve the store
        store.wait([read])
    return values


def synchronize(
    store: Any, data: bytes, rank: int, world_size: int, key_prefix: str, timeout: float = 300
) -> list[bytes]:
    """Gives the other ranks a value, and returns those of all.

    Args:
        store: The store.
        data: The value.
        rank: The rank of this process.
        world_size: The number of ranks.
        key_prefix: The beginning of the names.
        timeout: Seconds to wait. Default: 300.

    Raises:
        DistStoreError: The time is over.

    Example:
        >>> from torchlite.distributed.elastic.utils.store import synchronize
        >>> synchronize(torch.distributed.HashStore(), b"a", 0, 1, "x")
        [b'a']
    """
    with store_timeout(store, timeout):
        store.set(f"{key_prefix}{rank}", data)
        return get_all(store, rank, key_prefix, world_size)


def _count(store: Any, world_size: int, prefix: str) -> str:
    """Count this process; return the name of a value that the last of the ranks sets."""
    last = f"{prefix}/last_member"
    if store.add(f"{prefix}/num_members", 1) == world_size:
        store.set(last, "<val_ignored>")
    return last


def barrier(
    store: Any,
    world_size: int,
    key_prefix: str,
    barrier_timeout: float = 300,
    rank: int | None = None,
    rank_tracing_decoder: Callable[[int], str] | None = None,
    trace_timeout: float = 10,
) -> None:
    """Waits until all ranks have come here.

    Args:
        store: The store.
        world_size: The number of ranks.
        key_prefix: The beginning of the names, another one for each barrier.
        barrier_timeout: Seconds to wait. Default: 300.
        rank: The rank of this process, so that the error names the ranks that are missing. Default: it names none.
        rank_tracing_decoder: Gives the name of a rank in the error. Default: its number.
        trace_timeout: Seconds in which rank 0 waits for the ranks that came. Default: 10.

    Raises:
        DistStoreError: The time is over.

    Example:
        >>> from torchlite.distributed.elastic.utils.store import barrier
        >>> barrier(torch.distributed.HashStore(), 1, "end")
    """
    last = _count(store, world_size, key_prefix)
    came = f"{key_prefix}/came"
    if rank is not None:
        store.set(f"{came}{rank}", "")
    try:
        with store_timeout(store, barrier_timeout):
            store.wait([last])
    except DistStoreError as error:
        if rank != 0:  # one process tells
            raise
        name = str if rank_tracing_decoder is None else rank_tracing_decoder
        missing = [name(other) for other in range(world_size) if not _has(store, f"{came}{other}", trace_timeout)]
        raise DistStoreError(
            f"Timed out waiting on barrier at {world_size} ranks, for key prefix: {key_prefix} (world_size="
            f"{world_size}, missing_ranks={missing}, timeout={barrier_timeout})"
        ) from error


def _has(store: Any, key: str, seconds: float) -> bool:
    """Return whether a store has a value, for which it waits."""
    try:
        store.wait([key], timedelta(seconds=seconds))
    except DistStoreError:
        return False
    return True
