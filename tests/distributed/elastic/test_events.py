"""Events as JSON, for the handlers of destinations."""

import json
import logging

import pytest

from torchlite.distributed.elastic import events
from torchlite.distributed.elastic.events import Event, EventSource, NodeState, RdzvEvent


class Kept(logging.Handler):
    def __init__(self):
        super().__init__()
        self.lines = []

    def emit(self, record):
        self.lines.append(json.loads(record.getMessage()))


@pytest.fixture
def kept(monkeypatch):
    """The handler of the destination "kept"."""
    handler = Kept()
    monkeypatch.setitem(events.handlers._log_handlers, "kept", handler)
    yield handler
    logging.getLogger("torchelastic-events-kept").handlers.clear()


def test_events_go_to_their_destination(kept):
    event = Event("a", EventSource.WORKER, 3, {"x": 1, "y": None})
    events.record(event, "kept")
    events.record(event)  # dropped
    assert kept.lines == [{"name": "a", "source": "WORKER", "timestamp": 3, "metadata": {"x": 1, "y": None}}]
    assert Event.deserialize(str(event)) == event and Event.deserialize(event) is event
    with pytest.raises(KeyError):
        events.record(event, "absent")


def test_events_of_meetings(kept, monkeypatch):
    events.construct_and_record_rdzv_event("run", "nobody hears it", NodeState.INIT)
    monkeypatch.setitem(events.handlers._log_handlers, "dynamic_rendezvous", kept)
    logging.getLogger("torchelastic-events-dynamic_rendezvous").handlers.clear()
    try:
        try:
            raise ValueError("lost")
        except ValueError:
            events.construct_and_record_rdzv_event("run", "failed", NodeState.FAILED, rank=2)
    finally:
        logging.getLogger("torchelastic-events-dynamic_rendezvous").handlers.clear()
    (line,) = kept.lines
    assert line["name"] == "test_events.py:test_events_of_meetings" and line["node_state"] == "FAILED"
    assert line["rank"] == 2 and "ValueError: lost" in line["error_trace"]
    assert RdzvEvent.deserialize(json.dumps(line)).node_state is NodeState.FAILED
