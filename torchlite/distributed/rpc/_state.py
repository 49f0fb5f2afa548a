"""The agent of this process."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._agent import Agent

_current: list[Agent] = []


def agent() -> Agent:
    """Return the agent; raise RuntimeError without one."""
    if not _current:
        raise RuntimeError("RPC has not been initialized. Call torch.distributed.rpc.init_rpc first.")
    return _current[0]


def is_set() -> bool:
    """Return whether there is an agent."""
    return bool(_current)


def put(made: Agent) -> None:
    """Make an agent that of this process."""
    _current[:] = [made]


def take() -> Agent:
    """Return the agent and forget it."""
    return _current.pop()


def _forget_in_child() -> None:
    for inherited in _current:
        inherited.close_in_child()
    _current.clear()


os.register_at_fork(after_in_child=_forget_in_child)
