"""TorchServe's inference and management API."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from ._errors import Conflict, InvalidRequest, ModelFailed, UnknownModel
from ._handler_context import HandlerAnswer, HandlerRequest
from ._handler_model import HandlerModel
from ._http import body_of, by_method, json_response, read_body, service_of, timeout_of, while_connected
from ._plain_values import inputs_of, nested_values
from ._protocol import InferRequest, check_model_name, parse_json
from ._repository import Entry
from ._rest import check_management
from ._service import PartQueue, Service
from ._sources import SUFFIXES, read_manifest

_PAGE = 100  # models of a list's page


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
        asked = await service.translate(len(data), _values_of, data, entry, service.settings.max_body)
        call = service.begin("torchserve", timeout_of(request))
        found, answer = await while_connected(request, service.infer(name, version, asked, call))
    values = {key: nested_values(array) for key, array in answer.items()}
    headers = {"x-request-id": asked.id, "model-version": found.version}
    return json_response(next(iter(values.values())) if len(values) == 1 else values, headers=headers)


def _values_of(data: bytes, entry: Entry, most_bytes: int) -> InferRequest:
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
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind in ("multipart/form-data", "application/x-www-form-urlencoded"):
        return found | await _form_of(request, data)
    if kind == "application/json":
        return found | {"body": parse_json(data)}
    return found | ({"body": bytearray(data)} if data or not found else {})


async def _form_of(request: Request, data: bytes) -> dict[str, Any]:
    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": data, "more_body": False}

    made: dict[str, Any] = {}
    form = await Request(request.scope, receive).form(max_part_size=service_of(request).settings.max_body)
    try:
        for key, value in form.multi_items():
            content = bytearray(value.encode() if isinstance(value, str) else await value.read())
            made[key] = [*_listed(made[key]), content] if key in made else content
    finally:
        await form.close()
    return made


def _listed(value: Any) -> list:
    return value if isinstance(value, list) else [value]


async def _handled(request: Request, service: Service, parts: dict[str, Any]) -> Response:
    """Answer by a handler. If it sends parts before its last answer, they are sent as they come."""
    name, version = _place(request)
    queue = PartQueue()
    identifier = request.headers.get("x-request-id") or str(uuid.uuid4())
    asked = HandlerRequest(parts, dict(request.headers), identifier, queue.put)
    call = service.begin("torchserve", timeout_of(request))
    work = asyncio.ensure_future(service.predict(name, version, asked, call))
    pieces = queue.iterate(work, call.deadline)
    first = await while_connected(request, anext(pieces, _NOTHING))  # type: ignore[arg-type]
    if first is _NOTHING:
        entry, answer = work.result()
        return _response_of(answer, {"x-request-id": identifier, "model-version": entry.version})

    async def send() -> AsyncIterator[bytes]:
        try:
            yield _bytes_of(first)
            async for piece in pieces:
                yield _bytes_of(piece)
            last = work.result()[1].body
            if last is not None:
                yield _bytes_of(last)
        finally:
            await pieces.aclose()  # type: ignore[attr-defined]

    return StreamingResponse(send(), headers={"x-request-id": identifier})


_NOTHING = object()


def _bytes_of(body: Any) -> bytes:
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
    return Response(_bytes_of(answer.body), answer.status, given)


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
    limit = _whole(request, "limit", _PAGE, 1)
    start = _whole(request, "next_page_token", 0, 0)
    entries = service_of(request).repository.loaded()
    every = list({entry.name: entry for entry in entries}.values())
    page = every[start : start + limit]
    made: dict[str, Any] = {"models": [{"modelName": e.name, "modelUrl": _url_of(e)} for e in page]}
    if start + limit < len(every):
        made["nextPageToken"] = str(start + limit)
    return json_response(made)


def _url_of(entry: Entry) -> str:
    path = entry.source.versions[entry.version]
    return path.name if path is not None else str(entry.source.config.factory or entry.source.config.handler)


async def describe_model(request: Request) -> Response:
    """Answer the state of a version of a model, or of all."""
    name, version = _place(request)
    repository = service_of(request).repository
    if version == "all":
        entries = repository.loaded(name)
    else:
        entries = [repository.find(name, version)]
    return json_response([_describe(repository.default_version(name), entry) for entry in entries])


def _describe(default: str | None, entry: Entry) -> dict[str, Any]:
    limits = entry.scheduler.limits
    return {
        "modelName": entry.name,
        "modelVersion": entry.version,
        "modelUrl": _url_of(entry),
        "engine": "torchlite",
        "runtime": "python",
        "minWorkers": limits.workers,
        "maxWorkers": limits.workers,
        "batchSize": limits.max_batch,
        "maxBatchDelay": limits.delay * 1000,
        "loadedAtStartup": True,
        "defaultVersion": entry.version == default,
        "workers": _workers_of(entry),
        "jobQueueStatus": {
            "remainingCapacity": max(limits.max_queue - entry.scheduler.queue_length, 0),
            "pendingRequests": entry.scheduler.queue_length,
        },
    }


def _workers_of(entry: Entry) -> list[dict[str, Any]]:
    gpu = entry.source.config.device.startswith("cuda")
    if entry.workers is None:
        return [{"id": str(number), "status": "READY", "gpu": gpu} for number in range(entry.scheduler.limits.workers)]
    return [{"id": str(number), "pid": number, "status": "READY", "gpu": gpu} for number in entry.workers.processes]


_REGISTRATION = ("url", "model_name", "initial_workers", "synchronous", "batch_size", "max_batch_delay")


async def register_model(request: Request) -> Response:
    """Load a model that is in the folder of models, by its file's name."""
    check_management(request)
    query = request.query_params
    _check_query(request, *_REGISTRATION)
    service = service_of(request)
    path = _stored(service, query.get("url", ""))
    workers = _whole(request, "initial_workers", 1, 0)
    name = check_model_name(query.get("model_name", "") or await asyncio.to_thread(_name_of, path))
    limits: dict[str, Any] = {}
    if "batch_size" in query:
        limits["max_batch"] = _whole(request, "batch_size", 1, 1)
    if "max_batch_delay" in query:
        limits["delay"] = _whole(request, "max_batch_delay", 0, 0) / 1000
    repository = service.repository
    if name in repository.sources():
        if name in {entry.name for entry in repository.loaded()}:
            raise Conflict(f"model '{name}' is registered already")
        version = (await repository.load(name))[-1]
    else:
        version = await repository.register(name, f"{name}={path}")
    for entry in repository.loaded(name):
        entry.scheduler.limits = dataclasses.replace(entry.scheduler.limits, **limits)
    if workers > 1:
        _scale(service, repository.loaded(name), workers)
    text = f'Model "{name}" Version: {version} registered with {max(workers, 1)} initial workers'
    return json_response({"status": text})


def _stored(service: Service, url: str) -> Path:
    """Return the path of a model's file in one of the folders that the server was started with."""
    if not url:
        raise InvalidRequest("the parameter 'url' is missing: the name of a file in the folder of models")
    if urlsplit(url).scheme or "/" in url or "\\" in url or url.startswith("."):
        raise InvalidRequest("'url' must be the name of a file in the folder of models; the server downloads nothing")
    for word in service.settings.models:
        path = Path(word) / url
        if Path(word).is_dir() and path.suffix.lower() in SUFFIXES and path.is_file():
            return path
    raise UnknownModel(f"there is no file '{url}' in the folder of models")


def _name_of(path: Path) -> str:
    try:
        return read_manifest(path)["model"].get("modelName", path.stem) if path.suffix == ".mar" else path.stem
    except ValueError as error:
        raise InvalidRequest(str(error)) from None


async def scale_workers(request: Request) -> Response:
    """Set how many calls of a model run at the same time."""
    check_management(request)
    name, version = _place(request)
    service = service_of(request)
    _check_query(request, "min_worker", "max_worker", "synchronous")
    least = _whole(request, "min_worker", 1, 1)
    most = _whole(request, "max_worker", least, 1)
    if most < least:
        raise InvalidRequest("'max_worker' must be at least 'min_worker'")
    _scale(service, [service.repository.find(name, version)], least)
    suffix = f", version: {version}" if version else ""
    return json_response({"status": f"Workers scaled to {least} for model: {name}{suffix}"})


def _scale(service: Service, entries: list[Entry], workers: int) -> None:
    kind = "workers" if service.settings.workers else "threads"
    most = getattr(service.settings, kind)
    if workers > most:
        raise InvalidRequest(f"the server has {most} {kind}; start it with more (--{kind})")
    for entry in entries:
        if isinstance(entry.model, HandlerModel) and workers > 1 and entry.workers is None:
            raise InvalidRequest("a handler has one call at a time; its workers must be 1")
        entry.scheduler.limits = dataclasses.replace(entry.scheduler.limits, workers=workers)
        if entry.workers is not None:
            entry.workers.resize(workers)


async def unregister_model(request: Request) -> Response:
    """Unload a model, or one of its versions."""
    check_management(request)
    name, version = _place(request)
    await service_of(request).repository.unload(name, version)
    return json_response({"status": f'Model "{name}" unregistered'})


async def set_default(request: Request) -> Response:
    """Let a version answer the requests that name none."""
    check_management(request)
    name, version = _place(request)
    service_of(request).repository.set_default(name, version)
    return json_response({"status": f'Default version successfully updated for model "{name}" to "{version}"'})


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
            by_method(f"/models/{place}", GET=describe_model, PUT=scale_workers, DELETE=unregister_model),
        ]
    return made
