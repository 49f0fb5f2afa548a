"""The context that a handler gets: its model, and the requests of one call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

EXPLAIN = "explain"  # the header, "True" or "False", that says to a handler whether to explain a prediction


@dataclass
class HandlerAnswer:
    """What a handler answers to one request."""

    body: Any = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class HandlerRequest:
    """One request to a handler: its parts by name, and the headers. `on_part` gets the parts of a streamed answer."""

    data: dict[str, Any]
    headers: dict[str, str]
    id: str
    on_part: Callable[[Any], None]

    @property
    def signature(self) -> str:
        """Key of requests that one call can answer: the same for all of them."""
        return f"handler, {EXPLAIN}={self.headers.get(EXPLAIN)}"


Record = Callable[[str, float, str], None]


class HandlerMetrics:
    """A handler's own figures, which /metrics shows. Dimensions and request ids are not kept."""

    def __init__(self, record: Record) -> None:
        self._record = record

    def add_time(self, name: str, value: float, idx: Any = None, unit: str = "ms") -> None:
        """Record a time. `idx` has no effect: figures are of the model."""
        self._record(name, value, unit)

    def add_size(self, name: str, value: float, idx: Any = None, unit: str = "MB") -> None:
        """Record a size. `idx` has no effect: figures are of the model."""
        self._record(name, value, unit)

    def add_percent(self, name: str, value: float, idx: Any = None) -> None:
        """Record a share. `idx` has no effect: figures are of the model."""
        self._record(name, value, "percent")

    def add_counter(self, name: str, value: float, idx: Any = None) -> None:
        """Record a count. `idx` has no effect: figures are of the model."""
        self._record(name, value, "count")

    def add_metric(self, name: str, value: float, unit: str, idx: Any = None) -> None:
        """Record a figure. `idx` has no effect: figures are of the model."""
        self._record(name, value, unit)


class Context:
    """The model's context during `initialize`, and that of a batch during `handle`."""

    def __init__(
        self,
        model_name: str,
        model_dir: str,
        manifest: dict[str, Any],
        batch_size: int,
        device: str,
        metrics: HandlerMetrics,
        model_yaml_config: dict[str, Any] | None = None,
        server_version: str = "",
    ) -> None:
        self.model_name = model_name
        self.manifest = manifest
        self.device = device
        self.metrics = metrics
        self.model_yaml_config = model_yaml_config or {}
        kind, _, number = device.partition(":")
        self.system_properties = {
            "model_dir": model_dir,
            "gpu_id": int(number or 0) if kind == "cuda" else None,
            "batch_size": batch_size,
            "server_name": "torchlite",
            "server_version": server_version,
        }
        self._requests: list[HandlerRequest] = []
        self._answers: list[HandlerAnswer] = []

    def begin(self, requests: list[HandlerRequest]) -> list[HandlerAnswer]:
        """Take up the requests of a call; return their answers, which are empty as yet."""
        self._requests = requests
        self._answers = [HandlerAnswer() for _ in requests]
        return self._answers

    @property
    def request_ids(self) -> dict[int, str]:
        """The identifiers of the requests."""
        return {place: request.id for place, request in enumerate(self._requests)}

    def get_request_id(self, idx: int = 0) -> str | None:
        """Return the identifier of a request."""
        return self.request_ids.get(idx)

    def get_request_header(self, idx: int, key: str) -> str | None:
        """Return a header of a request."""
        return self._requests[idx].headers.get(key.lower())

    @property
    def explains(self) -> bool:
        """True if the requests of this call ask for explanations."""
        return bool(self._requests) and self.get_request_header(0, EXPLAIN) == "True"

    def get_all_request_header(self, idx: int) -> dict[str, str]:
        """Return the headers of a request."""
        return dict(self._requests[idx].headers)

    def set_response_content_type(self, idx: int, value: str) -> None:
        """Set the type of an answer's body."""
        self.set_response_header(idx, "content-type", value)

    def get_response_content_type(self, idx: int) -> str | None:
        """Return the type of an answer's body."""
        return self._answers[idx].headers.get("content-type")

    def set_response_header(self, idx: int, key: str, value: str) -> None:
        """Set a header of an answer."""
        self._answers[idx].headers[key.lower()] = str(value)

    def get_response_headers(self, idx: int) -> dict[str, str]:
        """Return the headers of an answer."""
        return self._answers[idx].headers

    def set_response_status(self, code: int = 200, phrase: str = "", idx: int = 0) -> None:
        """Set the status of an answer. `phrase` has no effect: HTTP/2 has none, and clients read the code."""
        self._answers[idx].status = int(code)

    def set_all_response_status(self, code: int = 200, phrase: str = "") -> None:
        """Set the status of all answers. `phrase` has no effect: HTTP/2 has none, and clients read the code."""
        for answer in self._answers:
            answer.status = int(code)

    def get_response_status(self, idx: int) -> tuple[int, str]:
        """Return the status of an answer."""
        return self._answers[idx].status, ""

    def send_parts(self, parts: list) -> None:
        """Send a part of the answer to each request."""
        if len(parts) != len(self._requests):
            raise ValueError(f"{len(parts)} parts for {len(self._requests)} requests")
        for request, part in zip(self._requests, parts, strict=True):
            request.on_part(part)
