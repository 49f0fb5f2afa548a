"""The short way of inference requests to their endpoint."""

import asyncio

import pytest

pytest.importorskip("starlette", reason="the extra 'serve' is missing")
pytest.importorskip("prometheus_client", reason="the extra 'serve' is missing")

from starlette.applications import Starlette
from starlette.routing import Mount

from torchlite.serve import _direct
from torchlite.serve._http import _Limit

from .asgi_client import Client, infer_body, running

ROWS = [[1.0, 2.0, 3.0, 4.0]]
PATHS = ["/v2/models/net/infer", "/v2/models/net/versions/1/infer"]
OTHERS = [
    ("POST", "/v2/models/net/versions/7/infer"), ("POST", "/v2/models/none/infer"), ("POST", "/v2/models//infer"),
    ("POST", "/v2/models/net/infer/"), ("POST", "/v2/models/a/b/infer"), ("GET", PATHS[0]), ("PUT", PATHS[1]),
]  # fmt: skip


def answers(onnx_file):
    """The answers to right and wrong requests, without the dates of headers."""

    async def main():
        async with running(onnx_file, max_body_mb=0.01) as client:
            found = [await client.post(path, infer_body(ROWS)) for path in PATHS]
            found += [await client.call(method, path, infer_body(ROWS)) for method, path in OTHERS]
            found += [await client.post(PATHS[0], body) for body in (b"{", b"[]", b" " * 20_000)]
            return found

    return asyncio.run(main())


def test_answers_are_those_of_the_other_way(onnx_file, monkeypatch):
    direct = answers(onnx_file)
    assert [answer.status for answer in direct[:4]] == [200, 200, 404, 404] and direct[-1].status == 413

    async def pass_on(self, scope, receive, send):
        await self._app(scope, receive, send)

    monkeypatch.setattr(_direct.DirectInference, "__call__", pass_on)
    assert answers(onnx_file) == direct


def test_a_mounted_application(onnx_file):
    async def main():
        async with running(onnx_file) as client:
            outer = Client(Starlette(routes=[Mount("/models", client.app)]))
            found = await outer.post("/models/v2/models/net/infer", infer_body(ROWS))
            assert found.json == (await client.post(PATHS[0], infer_body(ROWS))).json

    asyncio.run(main())


@pytest.mark.parametrize("cut", [False, True])
def test_a_body_that_does_not_arrive(onnx_file, cut):
    """It gets status 408; a task that is cancelled for another reason stays cancelled."""

    async def main():
        async with running(onnx_file, timeout=30.0 if cut else 0.05) as client:
            sent = []

            async def receive():
                await asyncio.sleep(30)

            async def send(message):
                sent.append(message)

            headers = [(b"host", b"localhost"), (b"content-length", b"5")]
            scope = {"type": "http", "method": "POST", "path": PATHS[0], "headers": headers, "query_string": b""}
            call = asyncio.ensure_future(client.app({**scope, "root_path": ""}, receive, send))
            if cut:
                await asyncio.sleep(0)
                call.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await call
            else:
                await call
                assert sent[0]["status"] == 408 and b"did not arrive within 0.05 seconds" in sent[1]["body"]

    asyncio.run(main())


def test_a_limit_beside_another_reason():
    """A task that is cancelled twice is cancelled for both reasons."""

    async def main():
        limit = _Limit(0.0)
        asyncio.current_task().cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.sleep(10)
        asyncio.get_running_loop().call_soon(limit._pass)
        with pytest.raises(asyncio.CancelledError):
            await asyncio.sleep(10)
        assert limit.has_passed and not limit.is_only_reason()
        limit.end()

    asyncio.run(main())
