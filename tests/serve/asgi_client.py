"""A client that calls an ASGI application without a socket, and models for it."""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import Any, NamedTuple

import torchlite as torch


class Answer(NamedTuple):
    """The application's answer; `parts` are the pieces of the body as they came."""

    status: int
    headers: dict[str, str]
    parts: list[bytes]

    @property
    def body(self) -> bytes:
        return b"".join(self.parts)

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Client:
    """Calls an application. `cut` leaves a request after so many seconds, as a client that goes away does."""

    def __init__(self, app: Any) -> None:
        self.app = app

    @staticmethod
    def encode(body: Any) -> bytes:
        """Return bytes as they are, and other values as JSON."""
        return body if isinstance(body, bytes) else json.dumps(body).encode()

    async def call(
        self, method: str, path: str, body: Any = b"", headers: Any = (), cut: float | None = None
    ) -> Answer:
        path, _, query = path.partition("?")
        data = self.encode(body)
        given = {"host": "localhost", "content-length": str(len(data)), **dict(headers)}
        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "scheme": "http",
            "path": path, "raw_path": path.encode(), "query_string": query.encode(), "root_path": "",
            "headers": [(k.lower().encode(), v.encode()) for k, v in given.items()],
            "client": ("127.0.0.1", 5), "server": ("localhost", 80),
        }  # fmt: skip
        sent, found = False, {}
        parts: list[bytes] = []
        ended = asyncio.Event()

        async def receive():
            nonlocal sent
            if not sent:
                sent = True
                return {"type": "http.request", "body": data, "more_body": False}
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(ended.wait(), cut)
            return {"type": "http.disconnect"}

        async def send(message):
            if message["type"] == "http.response.start":
                found["status"] = message["status"]
                found["headers"] = {k.decode(): v.decode() for k, v in message["headers"]}
            elif message["type"] == "http.response.body":
                parts.append(message.get("body", b""))

        try:
            await self.app(scope, receive, send)
        finally:
            ended.set()
        return Answer(found["status"], found["headers"], parts)

    async def get(self, path: str, **headers: str) -> Answer:
        return await self.call("GET", path, headers={k.replace("_", "-"): v for k, v in headers.items()})

    async def post(self, path: str, body: Any = b"", **headers: str) -> Answer:
        return await self.call("POST", path, body, {k.replace("_", "-"): v for k, v in headers.items()})


@contextlib.asynccontextmanager
async def running(*models: Any, **options: Any):
    """A client of an application whose models are loaded."""
    from torchlite.serve import Settings, create_app

    app = create_app(Settings(models=tuple(map(str, models)), **{"access_log": False, **options}))
    async with app.router.lifespan_context(app):
        yield Client(app)


def network() -> torch.nn.Module:
    """A small network with fixed weights."""
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3)).eval()


def write_onnx(path: Any, model: torch.nn.Module | None = None) -> str:
    """Write an ONNX file of the network, whose rows are free; inputs `x`, output `y`."""
    rows = torch.export.Dim("rows", min=1, max=256)
    torch.onnx.export(
        model or network(), (torch.ones(2, 4),), str(path), dynamic_shapes=({0: rows},), external_data=False,
        input_names=["x"], output_names=["y"],
    )  # fmt: skip
    return str(path)


def infer_body(rows: list[list[float]], **more: Any) -> dict[str, Any]:
    """The JSON request of the network."""
    return {"inputs": [{"name": "x", "shape": [len(rows), 4], "datatype": "FP32", "data": rows}], **more}


def expected(rows: list[list[float]]) -> list[float]:
    """The network's answer as a flat list."""
    with torch.inference_mode():
        return network()(torch.tensor(rows)).flatten().tolist()
