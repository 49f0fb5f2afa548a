"""How requests go to a worker process and the parts of their answers come back."""

from __future__ import annotations

import functools
from typing import Any, Protocol

from ._handler_context import HandlerRequest
from ._tensor_model import Stream


class PartSender(Protocol):
    """A worker's call, which sends parts of the answer to its request number `place`."""

    def send_part(self, place: int, part: Any) -> None:
        """Send a part."""

    def is_cancelled(self) -> bool:
        """True if no more parts are wanted."""


def leaving(payload: Any) -> Any:
    """Return a request without the functions that take its parts, which stay in the server's process."""
    if isinstance(payload, Stream):
        return Stream(payload.request, None, None)  # type: ignore[arg-type]
    if isinstance(payload, HandlerRequest):
        return HandlerRequest(payload.data, payload.headers, payload.id, None)  # type: ignore[arg-type]
    return payload


def arrived(payload: Any, place: int, call: PartSender) -> Any:
    """Return a request in the worker, with functions that send its parts."""
    send = functools.partial(call.send_part, place)
    if isinstance(payload, Stream):
        return Stream(payload.request, send, call.is_cancelled)
    if isinstance(payload, HandlerRequest):
        return HandlerRequest(payload.data, payload.headers, payload.id, send)
    return payload


def deliver(payload: Any, part: Any) -> bool:
    """Hand a part to the request that waits for it; False if the client wants no more."""
    if isinstance(payload, Stream):
        payload.emit(part)
        return not payload.is_cancelled()
    payload.on_part(part)
    return True
