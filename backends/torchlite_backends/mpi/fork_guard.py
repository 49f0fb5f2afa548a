"""Refuse messages of a forked child of a rank.

The child has the parent's connections to the other ranks. They would take its messages for the parent's, and it would
receive answers to the parent. In the child every function that sends or waits is therefore replaced by an error, which
costs the parent nothing.
"""

from __future__ import annotations

from typing import Any

from .collective_fingerprint import PairwiseCheck
from .collective_queue import CheckedCollective, CollectiveQueue
from .communicator import Communicator
from .requests import ReceiveRequest, Request

WORDS = (
    "MPI does not survive a fork: this process was forked by a rank, whose process groups it cannot use. Start "
    "processes with the 'spawn' method"
)


def _refuse_after_fork(*args: Any, **kwargs: Any) -> Any:
    raise RuntimeError(WORDS)


def _skip_free(*args: Any) -> None:
    """Free nothing: it belongs to the parent."""


def refuse_all() -> None:
    """Replace the functions; called in the child."""
    for kind in (Communicator, CollectiveQueue, Request, ReceiveRequest, CheckedCollective):
        for name, value in list(vars(kind).items()):
            if callable(value) and (name == "__init__" or not name.startswith("__")):
                setattr(kind, name, _skip_free if name in ("free", "release") else _refuse_after_fork)
    PairwiseCheck.__del__ = _skip_free  # type: ignore[method-assign]
