"""TorchServe's inference and management API."""

from __future__ import annotations

import asyncio
import contextlib
import json
import uuid
from collections.abc import AsyncIterator
from typing import Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from . import _torchserve_management as management
from ._errors import InvalidRequest, ModelFailed
from ._handler_context import EXPLAIN, HandlerAnswer, HandlerRequest
from ._handler_model import HandlerModel
from ._http import body_of, by_method, json_response, read_body, service_of, timeout_of, while_connected
from ._plain_values import inputs_of, nested_values
from ._protocol import InferRequest, parse_json
from ._repository import Entry
from ._service import PartQueue, Service


def _place(request: Request) -> tuple[str, str]:
    return request.path_params["name"], request.path_params.get("version", "")


async def ping(request: Request) -> Response:
    """Answer whether the server is healthy."""
    healthy = service_of(request).is_ready
    return json_response({"status": "Healthy" if healthy else "Unhealthy"}, 200 if healthy else 500)


# -- inference -----------------------------------------------------------------------------


async def predictions(request: Request) -> Response:
    """Answer a prediction: by the model's handler, or of JSON values by the model itself."""
    name, version = _place(request)
    service = service_of(request)
    entry = service.repository.find(name, version)
    with body_of(request) as body:
        data = await read_body(request, body)
        if isinstance(entry.model, HandlerModel):
            return await _handled(request, service, await _parts_of(request, data))
        asked = await service.translate(len(data), values_of, data, entry, service.settings.max_body)
        call = service.begin("torchserve", timeout_of(request))
        found, answer = await while_connected(request, service.infer(name, version, asked, call))
    values = {key: nested_values(array) for key, array in answer.items()}
    headers = {"x-request-id": asked.id, "model-version": found.version}
    return json_response(next(iter(values.values())) if len(values) == 1 else values, headers=headers)


async def explanations(request: Request) -> Response:
    """Answer an explanation of a prediction, by the handler's `explain_handle`."""
    service = service_of(request)
    entry = service.repository.find(*_place(request))
    if not isinstance(entry.model, HandlerModel):
        raise InvalidRequest(f"model '{entry.name}' has no handler that explains its predictions")
    with body_of(request) as body:
        data = await read_body(request, body)
        return await _handled(request, service, await _parts_of(request, data), explain=True)


def values_of(data: bytes, entry: Entry, most_bytes: int) -> InferRequest:
    """Return the request of a JSON body: an object by the inputs' names, or the value of the one input."""
    specs = entry.model.inputs  # type: ignore[union-attr]
    value = parse_json(data)
    if type(value) is not dict:
        if len(specs) != 1:
            names = ", ".join(spec.name for spec in specs)
            raise InvalidRequest(f"the model has the inputs {names}; send a JSON object with a value for each")
        value = {specs[0].name: value}
    return InferRequest(inputs_of(value, specs, most_bytes), str(uuid.uuid4()))


async def _parts_of(request: Request, data: bytes) -> dict[str, Any]:
    """Return a request's parts by name: fields of a form, or `body`; and the query's values."""
    found: dict[str, Any] = {key: value.encode() for key, value in request.query_params.items()}
    kind = _media_type(request.headers.get("content-type"))
    if kind in ("multipart/form-data", "application/x-www-form-urlencoded"):
        return found | await _form_of(request, data)
    if kind == "application/json" or data or not found:
        found["body"] = _decoded(data, kind)
    return found


def _media_type(header: str | None) -> str:
    """Return the type that a header `content-type` states, without its parameters."""
    return (header or "").partition(";")[0].strip().lower()


def _decoded(content: bytes, kind: str) -> Any:
    """Return what a handler gets of a body or a file of this media type: the value of JSON, a text, or bytes."""
    if kind == "application/json":
        return parse_json(content)
    if kind.startswith("text/"):
        with contextlib.suppress(UnicodeDecodeError):
            return content.decode()
    return bytearray(content)


async def _form_of(request: Request, data: bytes) -> dict[str, Any]:
    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": data, "more_body": False}

    made: dict[str, Any] = {}
    form = await Request(request.scope, receive).form(max_part_size=service_of(request).settings.max_body)
    try:
        for key, value in form.multi_items():
            if isinstance(value, str):
                content = bytearray(value.encode())
            else:
                content = _decoded(await value.read(), _media_type(value.content_type))
            made[key] = [*_listed(made[key]), content] if key in made else content
    finally:
        await form.close()
    return made


def _listed(value: Any) -> list:
    return value if isinstance(value, list) else [value]


async def _handled(
    request: Request, service: Service, parts: dict[str, Any], explain: bool = False
) -> Response:  # fmt: skip
    """Answer by a handler. If it sends parts before its last answer, they are sent as they come."""
    name, version = _place(request)
    queue = PartQueue()
    identifier = request.headers.get("x-request-id") or str(uuid.uuid4())
    asked = HandlerRequest(parts, {**request.headers, EXPLAIN: str(explain)}, identifier, queue.put)
    call = service.begin("torchserve", timeout_of(request))
    work = asyncio.ensure_future(service.predict(name, version, asked, call))
    pieces = queue.iterate(work, call.deadline)
    first = await while_connected(request, anext(pieces, _NOTHING))  # type: ignore[arg-type]
    if first is _NOTHING:
        entry, answer = work.result()
        return _response_of(answer, {"x-request-id": identifier, "model-version": entry.version})

    async def send() -> AsyncIterator[bytes]:
        try:
            yield bytes_of(first)
            async for piece in pieces:
                yield bytes_of(piece)
            last = work.result()[1].body
            if last is not None:
                yield bytes_of(last)
        finally:
            await pieces.aclose()  # type: ignore[attr-defined]

    return StreamingResponse(send(), headers={"x-request-id": identifier})


_NOTHING = object()


def bytes_of(body: Any) -> bytes:
    if isinstance(body, bytes | bytearray):
        return bytes(body)
    if isinstance(body, str):
        return body.encode()
    try:
        return json.dumps(body, separators=(",", ":")).encode()
    except (TypeError, ValueError, RecursionError):
        raise ModelFailed(f"the handler's answer is a {type(body).__name__}, which is no JSON") from None


def _response_of(answer: HandlerAnswer, headers: dict[str, str]) -> Response:
    kind = "application/json"
    if isinstance(answer.body, str | bytes | bytearray):
        kind = "text/plain" if isinstance(answer.body, str) else "application/octet-stream"
    given = {"content-type": kind, **answer.headers, **headers}
    if any(not (key.isascii() and value.isascii() and value.isprintable()) for key, value in given.items()):
        raise ModelFailed("the handler set a header that is not plain ASCII")
    return Response(bytes_of(answer.body), answer.status, given)


# -- management ----------------------------------------------------------------------------


def _whole(request: Request, key: str, default: int, least: int) -> int:
    word = request.query_params.get(key)
    if word is None:
        return default
    if not (word.isdecimal() and word.isascii() and len(word) < 10 and int(word) >= least):
        raise InvalidRequest(f"'{key}' must be a whole number of at least {least}, not {word!r}")
    return int(word)


def _check_query(request: Request, *known: str) -> None:
    """Raise InvalidRequest for a parameter of the query that has no effect, and for a wrong `synchronous`: the answer
    always comes when all is done.
    """
    query = request.query_params
    for key in query:
        if key not in known:
            raise InvalidRequest(f"unknown parameter '{key}'; known are {', '.join(known)}")
    if query.get("synchronous", "true").lower() not in ("true", "false"):
        raise InvalidRequest("'synchronous' must be true or false")


async def list_models(request: Request) -> Response:
    """Answer the models that are loaded, a page at a time."""
    limit = _whole(request, "limit", management.PAGE, 1)
    start = _whole(request, "next_page_token", 0, 0)
    return json_response(management.list_models(service_of(request), limit, start))


async def describe_model(request: Request) -> Response:
    """Answer the state of a version of a model, or of all."""
    return json_response(management.describe_model(service_of(request), *_place(request)))


_REGISTRATION = ("url", "model_name", "initial_workers", "synchronous", "batch_size", "max_batch_delay")


async def register_model(request: Request) -> Response:
    """Load a model that is in the folder of models, by its file's name."""
    service_of(request).check_management()
    query = request.query_params
    _check_query(request, *_REGISTRATION)
    workers = _whole(request, "initial_workers", 1, 0)
    size = _whole(request, "batch_size", 1, 1) if "batch_size" in query else None
    delay = _whole(request, "max_batch_delay", 0, 0) if "max_batch_delay" in query else None
    url, name = query.get("url", ""), query.get("model_name", "")
    return _status(await management.register_model(service_of(request), url, name, workers, size, delay))


def _status(text: str) -> Response:
    return json_response({"status": text})


async def scale_workers(request: Request) -> Response:
    """Set how many calls of a model run at the same time."""
    service_of(request).check_management()
    _check_query(request, "min_worker", "max_worker", "synchronous")
    least = _whole(request, "min_worker", 1, 1)
    most = _whole(request, "max_worker", least, 1)
    return _status(management.scale_workers(service_of(request), *_place(request), least, most))


async def unregister_model(request: Request) -> Response:
    """Unload a model, or one of its versions."""
    return _status(await management.unregister_model(service_of(request), *_place(request)))


async def set_default(request: Request) -> Response:
    """Let a version answer the requests that name none."""
    return _status(management.set_default(service_of(request), *_place(request)))


def routes() -> list[Route]:
    """Return the endpoints."""
    made = [
        Route("/ping", ping),
        by_method("/models", GET=list_models, POST=register_model),
        Route("/models/{name}/{version}/set-default", set_default, methods=["PUT"]),
    ]
    for place in ("{name}", "{name}/{version}"):
        made += [
            by_method(f"/predictions/{place}", GET=predictions, POST=predictions, PUT=predictions),
            by_method(f"/explanations/{place}", GET=explanations, POST=explanations, PUT=explanations),
            by_method(f"/models/{place}", GET=describe_model, PUT=scale_workers, DELETE=unregister_model),
        ]
    return made
