"""Events: of agents and their processes, and of the meetings of machines."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import Union

__all__ = ["Event", "EventMetadataValue", "EventSource", "NodeState", "RdzvEvent"]

EventMetadataValue = Union[str, int, float, bool, None]


class EventSource(str, Enum):  # noqa: UP042 -- PyTorch's bases
    """Who made an event.

    Example:
        >>> from torchlite.distributed.elastic.events import EventSource
        >>> EventSource.WORKER.value
        'WORKER'
    """

    AGENT = "AGENT"
    WORKER = "WORKER"


@dataclass
class Event:
    """An event of an agent or of a process.

    Args:
        name: The name.
        source: Who made it.
        timestamp: The time, in milliseconds. Default: 0.
        metadata: Further values by name. Default: none.

    Example:
        >>> from torchlite.distributed.elastic.events import Event, EventSource
        >>> event = Event("started", EventSource.AGENT, metadata={"nodes": 2})
        >>> Event.deserialize(event.serialize()).metadata
        {'nodes': 2}
    """

    name: str
    source: EventSource
    timestamp: int = 0
    metadata: dict[str, EventMetadataValue] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.serialize()

    @staticmethod
    def deserialize(data: str | Event) -> Event:
        """Returns the event of a text of `serialize`.

        Args:
            data: The text. An event is returned as it is.
        """
        if isinstance(data, Event):
            return data
        values = json.loads(data)
        return Event(**{**values, "source": EventSource(values["source"])})

    def serialize(self) -> str:
        """Returns the event as JSON."""
        return json.dumps(asdict(self))


class NodeState(str, Enum):  # noqa: UP042 -- PyTorch's bases
    """State of a machine in a meeting.

    Example:
        >>> from torchlite.distributed.elastic.events import NodeState
        >>> [state.value for state in NodeState]
        ['INIT', 'RUNNING', 'SUCCEEDED', 'FAILED']
    """

    INIT = "INIT"
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"


@dataclass
class RdzvEvent:
    """An event of the meeting of machines.

    Args:
        name: The name.
        run_id: The identity of the run.
        message: What happened.
        hostname: The name of the machine.
        pid: The process.
        node_state: The state of the machine.
        master_endpoint: The address of the ranks' store. Default: none.
        rank: The rank of the machine. Default: none.
        local_id: The number of the process on the machine. Default: none.
        error_trace: The traceback of a failure. Default: none.

    Example:
        >>> from torchlite.distributed.elastic.events import NodeState, RdzvEvent
        >>> event = RdzvEvent("join", "run", "joined", "host", 1, NodeState.INIT)
        >>> RdzvEvent.deserialize(str(event)) == event
        True
    """

    name: str
    run_id: str
    message: str
    hostname: str
    pid: int
    node_state: NodeState
    master_endpoint: str = ""
    rank: int | None = None
    local_id: int | None = None
    error_trace: str = ""

    def __str__(self) -> str:
        return self.serialize()

    @staticmethod
    def deserialize(data: str | RdzvEvent) -> RdzvEvent:
        """Returns the event of a text of `serialize`.

        Args:
            data: The text. An event is returned as it is.
        """
        if isinstance(data, RdzvEvent):
            return data
        values = json.loads(data)
        return RdzvEvent(**{**values, "node_state": NodeState(values["node_state"])})

    def serialize(self) -> str:
        """Returns the event as JSON."""
        return json.dumps(asdict(self))
