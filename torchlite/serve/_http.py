"""Parts that the HTTP endpoints share: reading bodies within limits, errors, and clients that go away."""

from __future__ import annotations

import asyncio
import json
import math
import zlib
from collections.abc import Awaitable
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from ._errors import Busy, InvalidRequest, ServeError, SlowClient, TooLarge, WrongEncoding
from ._service import Service

TIMEOUT_HEADER = b"request-timeout"  # seconds
_WATCH_DELAY = 0.02  # seconds until a request looks whether its client has gone
_WINDOW = {"gzip": 31, "deflate": 47}  # `wbits` of zlib; 47 takes zlib's header and gzip's


class BodyBudget:
    """The bytes of all bodies that are in memory, and their limit."""

    def __init__(self, most: int) -> None:
        self._most, self._taken = most, 0

    def take(self, count: int) -> None:
        """Count bytes before they are read. Busy if the limit is reached."""
        if self._taken + count > self._most:
            raise Busy("the bodies of other requests take the memory that the server may use", 1.0)
        self._taken += count

    def give_back(self, count: int) -> None:
        """Count bytes that are no longer in memory."""
        self._taken -= count


class Body:
    """The body of a request, and its share of the budget. Use it in a `with` statement."""

    def __init__(self, budget: BodyBudget) -> None:
        self._budget, self._taken = budget, 0
        self.data = b""

    def __enter__(self) -> Body:
        return self

    def __exit__(self, *error: Any) -> None:
        self._budget.give_back(self._taken)

    def take(self, count: int) -> None:
        """Take bytes of the budget for this body."""
        self._budget.take(count)
        self._taken += count


def by_method(path: str, **endpoints: Any) -> Route:
    """Return the route of an address: an endpoint for each method, `GET=…`. Others get status 405 with the methods."""

    async def endpoint(request: Request) -> Response:
        method = "GET" if request.method == "HEAD" else request.method
        return await endpoints[method](request)

    return Route(path, endpoint, methods=list(endpoints))


def service_of(request: Request) -> Service:
    """Return the server's core."""
    return request.app.state.service


def body_of(request: Request) -> Body:
    """Return the empty body of a request, for a `with` statement around `read_body`."""
    return Body(request.app.state.budget)


def header_of(request: Request, name: bytes) -> str | None:
    """Return the first header of a name in lower case. `Request.headers` takes ten times as long if there is none."""
    for key, value in request.scope["headers"]:
        if key == name:
            return value.decode("latin-1")
    return None


async def read_body(request: Request, body: Body) -> bytes:
    """Read a body.

    Raises:
        TooLarge: It is over the limit; what the client announces counts before anything is read.
        Busy: Other bodies take the memory.
        SlowClient: It did not arrive in time.
        WrongEncoding: It is compressed in an unknown way.
    """
    settings = service_of(request).settings
    most = settings.max_body
    announced = header_of(request, b"content-length")
    if announced is not None and announced.isdecimal() and int(announced) > most:
        raise TooLarge(f"the body has {announced} bytes; at most {most} are allowed")
    named = header_of(request, b"content-encoding")
    encoding = "identity" if named is None else named.strip().lower()
    if encoding not in ("identity", *_WINDOW):
        raise WrongEncoding(f"content-encoding '{encoding}' is unknown; known are gzip and deflate")
    parts: list[bytes] = []
    total, is_whole = 0, False
    limit = _Limit(settings.timeout)
    try:
        while not is_whole:
            message = await request.receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            part, is_whole = message.get("body", b""), not message.get("more_body", False)
            total += len(part)
            if total > most:
                raise TooLarge(f"the body has over {most} bytes, which is the limit")
            body.take(len(part))
            parts.append(part)
    except asyncio.CancelledError:
        if limit.has_passed and limit.is_only_reason():
            raise SlowClient(f"the body did not arrive within {settings.timeout:g} seconds") from None
        raise
    finally:
        limit.end()
    body.data = b"".join(parts)
    if encoding != "identity":
        body.data = await service_of(request).translate(total, _decompressed, body.data, encoding, most)
        body.take(len(body.data))
    return body.data


def _decompressed(data: bytes, encoding: str, most: int) -> bytes:
    """Return the content of a compressed body, of which never more than the limit is made."""
    stream = zlib.decompressobj(_WINDOW[encoding])
    try:
        found = stream.decompress(data, most + 1)
        if len(found) > most:
            raise TooLarge(f"the body has over {most} bytes when it is unpacked, which is the limit")
        if not stream.eof or stream.unused_data:
            raise InvalidRequest(f"the body does not end where its {encoding} data ends")
    except zlib.error as error:
        raise InvalidRequest(f"the body is no {encoding} data: {error}") from None
    return found


def timeout_of(request: Request, of_parameters: float | None = None) -> float | None:
    """Return the seconds that a client waits: those of the header `Request-Timeout`, or of the body's parameter."""
    word = header_of(request, TIMEOUT_HEADER)
    if word is None:
        return of_parameters
    try:
        seconds = float(word)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise InvalidRequest(f"the header Request-Timeout must be a number of seconds above 0, not {word!r}")
    return seconds if of_parameters is None else min(seconds, of_parameters)


async def while_connected(request: Request, work: Awaitable[Any]) -> Any:
    """Return the result of `work`; cancel it when the client goes away, and raise ClientDisconnect."""
    watch = _Watch(request)
    try:
        return await work
    except asyncio.CancelledError:
        if watch.has_passed and watch.is_only_reason():
            raise ClientDisconnect from None
        raise
    finally:
        watch.end()


class _Limit:
    """Cancels the task that makes it after some seconds, in a fifth of the time of `asyncio.timeout`."""

    def __init__(self, seconds: float) -> None:
        self._task = asyncio.current_task()
        self._timer = asyncio.get_running_loop().call_later(seconds, self._pass)
        self.has_passed = False

    def _pass(self) -> None:
        self.has_passed = True
        assert self._task is not None
        self._task.cancel()

    def is_only_reason(self) -> bool:
        """True if nobody else has cancelled the task."""
        assert self._task is not None
        return self._task.uncancel() == 0

    def end(self) -> None:
        """Cancel no more."""
        self._timer.cancel()


class _Watch(_Limit):
    """Cancels the task that makes it when the client goes away. It begins to look after a while, as most answers come
    before.
    """

    def __init__(self, request: Request) -> None:
        super().__init__(_WATCH_DELAY)
        self._request = request
        self._watcher: asyncio.Task | None = None

    def _pass(self) -> None:
        self._watcher = asyncio.ensure_future(self._disconnect())

    async def _disconnect(self) -> None:
        while (await self._request.receive())["type"] != "http.disconnect":
            pass
        super()._pass()

    def end(self) -> None:
        """Look no more."""
        super().end()
        if self._watcher is not None:
            self._watcher.cancel()


# -- answers -------------------------------------------------------------------------------


def json_response(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Return an answer of JSON. NaN and infinity are written as `NaN` and `Infinity`, which clients read."""
    text = json.dumps(value, separators=(",", ":"))
    return Response(text, status, headers, "application/json")


def error_headers(error: ServeError) -> dict[str, str]:
    """Return the headers of an error's answer."""
    headers = {}
    if error.retry_after is not None:
        headers["Retry-After"] = str(math.ceil(error.retry_after))
    if error.status == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="torchlite"'
    return headers


def is_of_torchserve(path: str) -> bool:
    """True for an address of TorchServe's API, whose errors have another form."""
    return path == "/ping" or path.startswith(("/predictions", "/explanations", "/models"))


def is_of_openai(path: str) -> bool:
    """True for an address of OpenAI's API, whose errors have another form."""
    return path.startswith(("/v1/", "/openai/"))


_OPENAI_KINDS = {401: "authentication_error", 403: "permission_error", 404: "not_found_error"} | {
    429: "rate_limit_error",
}  # fmt: skip


def openai_error(status: int, text: str) -> dict[str, Any]:
    """Return an error as a client of OpenAI's API reads it."""
    kind = _OPENAI_KINDS.get(status, "invalid_request_error" if status < 500 else "server_error")
    return {"error": {"message": text, "type": kind, "param": None, "code": None}}


def error_response(path: str, status: int, kind: str, text: str, headers: dict[str, str] | None = None) -> Response:
    """Return an error in the form of the API that an address belongs to."""
    value: dict[str, Any] = {"error": text}
    if is_of_torchserve(path):
        value = {"code": status, "type": kind, "message": text}
    elif is_of_openai(path):
        value = openai_error(status, text)
    return json_response(value, status, headers)


def serve_error_response(path: str, error: ServeError) -> Response:
    """Return the answer of an error."""
    return error_response(path, error.status, error.kind, str(error), error_headers(error))


def gone_response() -> Response:
    """Return the answer to a client that has gone. Nobody reads it; the access log counts it."""
    return Response(status_code=499)
