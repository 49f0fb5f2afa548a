"""Free ports, and a store between machines."""

from __future__ import annotations

import socket
from datetime import timedelta
from typing import Any

import torchlite.distributed as dist

__all__ = ["create_c10d_store", "get_free_port", "get_socket_with_port"]


def create_c10d_store(
    is_server: bool,
    server_addr: str,
    server_port: int = -1,
    world_size: int = 1,
    timeout: float = 60 * 10,
    wait_for_workers: bool = True,
    retries: int = 3,
    use_libuv: bool | None = None,
) -> Any:
    """Returns a `TCPStore`. A server without a port takes a free one, and tries again if another program was faster.

    Args:
        is_server: Whether this process serves.
        server_addr: The address of the server.
        server_port: Its port. Default: a free one.
        world_size: How many processes use it. Default: 1.
        timeout: Seconds to wait for the others and for values. Default: 600.
        wait_for_workers: Whether the server waits for the others. Default: ``True``.
        retries: How often it tries ports. Default: 3.
        use_libuv: Must not be ``False``.

    Raises:
        ValueError: A client has no port, or ``use_libuv`` is ``False``.
        DistNetworkError: No server answers.

    Example:
        >>> from torchlite.distributed.elastic.utils.distributed import create_c10d_store
        >>> store = create_c10d_store(True, "localhost")
        >>> store.set("x", "1"), store.get("x")
        (None, b'1')
    """
    if server_port == -1 and world_size > 1:
        raise ValueError(f"server_port must be specified when world_size > 1, got server_port={server_port}, "
                         f"world_size={world_size}")  # fmt: skip
    if use_libuv is False:
        raise ValueError("use_libuv=False: there is one server")
    free = server_port == -1
    for attempt in range(retries if free else 1):
        port = get_free_port() if free else server_port
        try:
            return dist.TCPStore(
                server_addr, port, world_size, is_server, timedelta(seconds=timeout), wait_for_workers=wait_for_workers
            )
        except RuntimeError:
            if attempt + 1 == (retries if free else 1):
                raise
    raise ValueError(f"retries must be positive, got {retries}")


def get_free_port() -> int:
    """Returns a port of this machine that was free a moment ago.

    Example:
        >>> from torchlite.distributed.elastic.utils.distributed import get_free_port
        >>> 0 < get_free_port() < 65536
        True
    """
    with get_socket_with_port() as found:
        return int(found.getsockname()[1])


def get_socket_with_port() -> socket.socket:
    """Returns a socket that is bound to a free port of this machine. It is closed before another takes the port.

    Raises:
        RuntimeError: No address of this machine can be bound.

    Example:
        >>> from torchlite.distributed.elastic.utils.distributed import get_socket_with_port
        >>> with get_socket_with_port() as found:
        ...     found.getsockname()[1] > 0
        True
    """
    for family, kind, protocol, _, _ in socket.getaddrinfo("localhost", None, type=socket.SOCK_STREAM):
        found = socket.socket(family, kind, protocol)
        try:
            found.bind(("localhost", 0))
            found.listen(0)
            return found
        except OSError:
            found.close()
    raise RuntimeError("Failed to create a socket")
