"""Message transports: packages by backend name, imported on first use, and their protocols (docs/backend.md)."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

# By backend name of `init_process_group`: the package, and its requirement.
_PACKAGES = {
    "mpi": ("torchlite_backends.mpi", "mpi4py"),
    "gloo": ("torchlite_backends.mpi", "mpi4py"),
    "nccl": ("torchlite_backends.nccl", "cupy"),
}


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


def transport_of(backend: str) -> Any:
    """Return the transport of a backend name."""
    return importlib.import_module(_PACKAGES[backend][0]).engine


def is_installed(backend: str) -> bool:
    """True if a transport's dependency is installed; imports nothing."""
    return importlib.util.find_spec(_PACKAGES[backend][1]) is not None
