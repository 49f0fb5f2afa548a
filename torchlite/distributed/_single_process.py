"""Communicator of a single process: collectives copy locally."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


class _CompletedRequest:
    """Completed request."""

    source = 0

    def done(self) -> bool:
        return True

    def wait(self, limit: float | None = None) -> bool:
        return True

    def cancel(self) -> None:
        """Do nothing: it is complete."""


_COMPLETED = _CompletedRequest()


class SingleProcessCommunicator:
    """Communicator of one rank, also for a group with a single member."""

    rank, size = 0, 1

    def all_reduce(self, array: np.ndarray, op: str, what: str = "") -> Any:
        return _COMPLETED

    def reduce(self, array: np.ndarray, op: str, root: int, what: str = "") -> Any:
        return _COMPLETED

    def reduce_scatter(self, out: np.ndarray, array: np.ndarray, op: str, counts: Sequence[int], what: str = "") -> Any:
        return _copy_into(out, array)

    def broadcast(self, array: np.ndarray, root: int, what: str = "") -> Any:
        return _COMPLETED

    def all_gather(self, out: np.ndarray, array: np.ndarray, what: str = "") -> Any:
        return _copy_into(out, array)

    def gather(self, out: np.ndarray | None, array: np.ndarray, root: int, what: str = "") -> Any:
        return _copy_into(out, array)

    def scatter(self, out: np.ndarray, array: np.ndarray | None, root: int, what: str = "") -> Any:
        return _copy_into(out, array)

    def all_to_all(
        self, out: np.ndarray, array: np.ndarray, out_counts: Sequence[int], counts: Sequence[int], what: str = ""
    ) -> Any:
        return _copy_into(out, array)

    def barrier(self) -> Any:
        return _COMPLETED

    def send(self, array: np.ndarray, to: int, tag: int, what: str = "") -> Any:
        raise RuntimeError("a process that is alone has nobody to send to")

    def receive(self, array: np.ndarray, source: int | None, tag: int, what: str = "") -> Any:
        raise RuntimeError("a process that is alone has nobody to receive from")

    def free(self) -> None:
        """Do nothing: there is nothing to free."""


def _copy_into(out: Any, array: Any) -> Any:
    np.copyto(out, array)
    return _COMPLETED
