"""The default store of a world, at an address that rank 0 sends to the others."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import numpy as np

from ._stores import FileStore, HashStore, Store, TCPStore
from ._transports import find_transport


def create_default_store(rank: int, size: int, communicator: Any, timeout: timedelta) -> Any:
    """Create a world's store, at an address that rank 0 sends to the others: a file if all are on one machine."""
    if size == 1:
        return HashStore()
    if communicator is None:
        return None  # a third-party backend
    import secrets
    import socket

    from .._settings.temporary_folders import process_folder

    near = find_transport("mpi").local_rank_and_size()[1] == size
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
        return _call_once(lambda: FileStore(address, size))
    if served is not None:
        return served
    secret, _, place = address.partition("@")  # of rank 0, known only to the ranks
    host, _, port = place.rpartition(":")
    return _call_once(lambda: TCPStore(host, int(port), None, False, timeout, _secret=secret.encode()))


def _call_once(make: Callable[[], Store]) -> Callable[[], Store]:
    made: list[Store] = []
    return lambda: made[0] if made else made.append(make()) or made[0]  # type: ignore[func-returns-value]
