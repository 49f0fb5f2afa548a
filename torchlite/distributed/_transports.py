"""Transports of messages, which installed packages offer by entry points, and their protocol (docs/backend.md)."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from torchlite._settings.entry_points import EntryPoint, entry_points


class Request(Protocol):
    """Protocol of messages in flight."""

    source: int

    def done(self) -> bool: ...
    def wait(self, limit: float | None = None) -> bool: ...
    def cancel(self) -> None: ...


class Communicator(Protocol):
    """Protocol of a group of processes. Arrays are contiguous; a Request reads and writes them until it is complete.

    `what` describes the elements if the dtype does not (docs/backend.md).
    """

    rank: int
    size: int

    def all_reduce(self, array: np.ndarray, op: str, what: str = "") -> Request: ...
    def reduce(self, array: np.ndarray, op: str, root: int, what: str = "") -> Request: ...
    def reduce_scatter(
        self, out: np.ndarray, array: np.ndarray, op: str, counts: Sequence[int], what: str = ""
    ) -> Request: ...
    def broadcast(self, array: np.ndarray, root: int, what: str = "") -> Request: ...
    def all_gather(self, out: np.ndarray, array: np.ndarray, what: str = "") -> Request: ...
    def gather(self, out: np.ndarray | None, array: np.ndarray, root: int, what: str = "") -> Request: ...
    def scatter(self, out: np.ndarray, array: np.ndarray | None, root: int, what: str = "") -> Request: ...
    def all_to_all(
        self, out: np.ndarray, array: np.ndarray, out_counts: Sequence[int], counts: Sequence[int], what: str = ""
    ) -> Request: ...
    def barrier(self) -> Request: ...
    def send(self, array: np.ndarray, to: int, tag: int, what: str = "") -> Request: ...
    def receive(self, array: np.ndarray, source: int | None, tag: int, what: str = "") -> Request: ...
    def free(self) -> None: ...


@functools.cache
def installed_transports() -> dict[str, EntryPoint]:
    """The transports that installed packages offer, by the name of a backend of `init_process_group`."""
    return entry_points("torchlite.transports")


@functools.cache
def find_transport(backend: str) -> Any:
    """The transport behind a backend's name. RuntimeError where no installed package offers one."""
    point = installed_transports().get(backend)
    if point is None:
        raise RuntimeError(f"no installed package has an entry point '{backend}' in the group torchlite.transports")
    return point.load()


def is_installed(backend: str) -> bool:
    """True if a transport's library is installed; does not import it."""
    return backend in installed_transports() and find_transport(backend).is_installed()
