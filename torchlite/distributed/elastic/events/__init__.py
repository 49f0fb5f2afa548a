"""Events of agents and of the meetings of machines, as lines of JSON for a logging handler.

A handler is chosen by a destination: "null" drops events, and "console" writes them to standard error. A program
registers others in `handlers._log_handlers`.
"""

from __future__ import annotations

import inspect
import logging
import os
import socket
import traceback

from . import api as api
from . import handlers as handlers
from .api import Event, EventMetadataValue, EventSource, NodeState, RdzvEvent
from .handlers import get_logging_handler

__all__ = [
    "Event", "EventMetadataValue", "EventSource", "NodeState", "RdzvEvent", "construct_and_record_rdzv_event",
    "get_logging_handler", "record", "record_rdzv_event",
]  # fmt: skip

_MEETINGS = "dynamic_rendezvous"


def _logger_of(destination: str) -> logging.Logger:
    """Return the logger of a destination; it has one handler, and its records reach no other."""
    logger = logging.getLogger(f"torchelastic-events-{destination}")
    if not logger.handlers:
        logger.setLevel(logging.INFO)
        logger.propagate = False
        logger.addHandler(get_logging_handler(destination))
    return logger


def record(event: Event, destination: str = "null") -> None:
    """Passes an event to the handler of a destination.

    Args:
        event: The event.
        destination: The handler's name. Default: "null", which drops it.

    Example:
        >>> from torchlite.distributed.elastic.events import Event, EventSource, record
        >>> record(Event("started", EventSource.AGENT))
    """
    _logger_of(destination).info(event.serialize())


def record_rdzv_event(event: RdzvEvent) -> None:
    """Passes an event of a meeting to the handler "dynamic_rendezvous".

    Args:
        event: The event.

    Example:
        >>> from torchlite.distributed.elastic.events import NodeState, RdzvEvent, record_rdzv_event
        >>> record_rdzv_event(RdzvEvent("join", "run", "joined", "host", 1, NodeState.INIT))
    """
    _logger_of(_MEETINGS).info(event.serialize())


def construct_and_record_rdzv_event(
    run_id: str,
    message: str,
    node_state: NodeState,
    name: str = "",
    hostname: str = "",
    pid: int | None = None,
    master_endpoint: str = "",
    local_id: int | None = None,
    rank: int | None = None,
) -> None:
    """Makes an event of a meeting and records it, unless its handler drops events.

    Args:
        run_id: The identity of the run.
        message: What happened.
        node_state: The state of the machine.
        name: The name of the event. Default: the file and function of the caller.
        hostname: The name of the machine. Default: this one's.
        pid: The process. Default: this one.
        master_endpoint: The address of the ranks' store. Default: none.
        local_id: The number of the process on the machine. Default: none.
        rank: The rank of the machine. Default: none.

    Example:
        >>> from torchlite.distributed.elastic.events import NodeState, construct_and_record_rdzv_event
        >>> construct_and_record_rdzv_event("run", "joined", NodeState.RUNNING)
    """
    if isinstance(get_logging_handler(_MEETINGS), logging.NullHandler):
        return
    if not name:
        caller = inspect.stack()[1]
        name = f"{os.path.basename(caller.filename)}:{caller.function}"
    record_rdzv_event(
        RdzvEvent(
            name, run_id, message, hostname or socket.getfqdn(), os.getpid() if pid is None else pid, node_state,
            master_endpoint, rank, local_id, traceback.format_exc() if node_state is NodeState.FAILED else "",
        )
    )  # fmt: skip
