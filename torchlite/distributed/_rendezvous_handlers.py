"""Rendezvous handlers by URL scheme: register_rendezvous_handler, rendezvous."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import urlparse

from ._rank_arguments import check_rank, handlers, master_from_environment, rank_from_environment, rank_from_url
from ._stores import FileStore, Store, TCPStore


def register_rendezvous_handler(scheme: str, handler: Callable[..., Iterator[tuple[Store, int, int]]]) -> None:
    """Registers a function for ``init_method="scheme://..."``.

    Args:
        scheme: The scheme.
        handler: Called as ``handler(url, rank=..., world_size=...)``; yields a store, the rank and the size.

    Raises:
        RuntimeError: The scheme has a handler.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.register_rendezvous_handler("env", lambda url, **words: None)
        Traceback (most recent call last):
        RuntimeError: Rendezvous handler for env:// already registered
    """
    if scheme in handlers or scheme in ("env", "tcp", "file"):
        raise RuntimeError(f"Rendezvous handler for {scheme}:// already registered")
    handlers[scheme] = handler


def rendezvous(url: str, rank: int = -1, world_size: int = -1, **kwargs: Any) -> Iterator[tuple[Store, int, int]]:
    """Yields the store at an address, with this process's rank and the size of the world.

    Args:
        url: ``tcp://host:port``, ``file:///path`` or ``env://``, with ``?rank=`` and ``&world_size=`` if needed.
        rank: The rank. Default: -1, from the address or the environment.
        world_size: The size. Default: -1, from the address or the environment.
        kwargs: ``timeout``, 5 minutes by default; others go to a registered handler.

    Yields:
        A store, the rank and the size.

    Raises:
        RuntimeError: ``url`` is not a string.
        ValueError: Rank or size is missing or wrong.

    Example:
        >>> import torchlite.distributed as dist
        >>> store, rank, size = next(dist.rendezvous("tcp://localhost:0?rank=0&world_size=1"))
        >>> rank, size
        (0, 1)
    """
    if not isinstance(url, str):
        raise RuntimeError(f"`url` must be a string. {type(url)}: {url}")
    parsed = urlparse(url)
    if parsed.scheme in handlers:
        yield from handlers[parsed.scheme](url, rank=rank, world_size=world_size, **kwargs)
        return
    timeout = kwargs.get("timeout", timedelta(minutes=5))
    if parsed.scheme == "env":
        rank, world_size = rank_from_environment(rank, world_size, True)
        check_rank(rank, world_size)
        host, port = master_from_environment()
    else:
        rank, world_size = rank_from_url(parsed, url, rank, world_size)
        check_rank(rank, world_size)
        if parsed.scheme == "file":
            yield FileStore(parsed.path, world_size), rank, world_size
            return
        host, port = parsed.hostname or "localhost", parsed.port or 0
    patient = kwargs.get("_wait_for_workers", True)
    yield TCPStore(host, port, world_size, rank == 0, timeout, patient), rank, world_size
