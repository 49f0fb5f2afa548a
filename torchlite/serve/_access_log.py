"""Access logs: a line of JSON for each request, and the header `traceparent` passed through."""

from __future__ import annotations

import json
import re
import sys
import time
from datetime import UTC, datetime
from typing import Any

_TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")


def traceparent_of(headers: list[tuple[bytes, bytes]]) -> str | None:
    """Return the header `traceparent` if it is one of W3C's Trace Context."""
    for key, value in headers:
        if key == b"traceparent":
            word = value.decode("latin-1")
            return word if _TRACEPARENT.fullmatch(word) else None
    return None


def write_line(values: dict[str, Any]) -> None:
    """Write a line of JSON to standard output."""
    sys.stdout.write(json.dumps(values, separators=(",", ":")) + "\n")
    sys.stdout.flush()


class AccessLog:
    """ASGI middleware that logs each request when its answer is sent, and answers with its `traceparent`."""

    def __init__(self, app: Any, enabled: bool) -> None:
        self._app, self._enabled = app, enabled

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        trace = traceparent_of(scope["headers"])
        if trace is None and not self._enabled:
            await self._app(scope, receive, send)
            return
        started, status, sent = time.perf_counter(), 0, 0

        async def log_and_send(message: Any) -> None:
            nonlocal status, sent
            if message["type"] == "http.response.start":
                status = message["status"]
                if trace is not None:
                    message["headers"] = [*message.get("headers", []), (b"traceparent", trace.encode())]
            elif message["type"] == "http.response.body":
                sent += len(message.get("body", b""))
            await send(message)

        try:
            await self._app(scope, receive, log_and_send)
        finally:
            if self._enabled:
                write_line(_line(scope, status, sent, time.perf_counter() - started, trace))


def _line(scope: Any, status: int, sent: int, seconds: float, trace: str | None) -> dict[str, Any]:
    client = scope.get("client")
    found = scope.get("path_params") or {}
    values = {
        "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "protocol": "http",
        "client": client[0] if client else None,
        "method": scope["method"],
        "path": scope["path"],
        "status": status,
        "ms": round(seconds * 1000, 3),
        "bytes": sent,
        "model": found.get("name"),
        "version": found.get("version"),
        "trace_id": trace.split("-")[1] if trace else None,
    }
    return {key: value for key, value in values.items() if value is not None}
