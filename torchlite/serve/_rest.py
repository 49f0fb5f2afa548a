"""REST endpoints of the Open Inference Protocol v2."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from . import _protocol
from ._errors import InvalidRequest, ServeError
from ._http import body_of, header_of, json_response, read_body, service_of, timeout_of, while_connected
from ._plain_values import plain_request_of, plain_values
from ._protocol import InferRequest, infer_answer, infer_request_of, parse_json, raw_request_of
from ._service import NAME, tensor_model

_HEADER = b"inference-header-content-length"


def _place(request: Request) -> tuple[str, str]:
    """Return the model's name and version of an address; "" for no version."""
    return request.path_params["name"], request.path_params.get("version", "")


# -- state ---------------------------------------------------------------------------------


async def server_metadata(_request: Request) -> Response:
    """Answer the server's name, version and extensions."""
    return json_response(server_description())


def server_description() -> dict[str, Any]:
    """Return the server's name, version and extensions."""
    from torchlite import __torchlite_version__

    return {"name": NAME, "version": __torchlite_version__, "extensions": list(_protocol.EXTENSIONS)}


async def live(_request: Request) -> Response:
    """Answer that the server runs."""
    return json_response({"live": True})


async def ready(request: Request) -> Response:
    """Answer whether requests are answered; status 503 if not."""
    state = service_of(request).is_ready
    return json_response({"ready": state}, 200 if state else 503)


async def model_ready(request: Request) -> Response:
    """Answer whether a model is ready."""
    name, version = _place(request)
    service = service_of(request)
    state = service.is_model_ready(service.repository.find(name, version))
    return json_response({"name": name, "ready": state}, 200 if state else 503)


async def model_metadata(request: Request) -> Response:
    """Answer a model's versions, inputs and outputs."""
    name, version = _place(request)
    repository = service_of(request).repository
    entry = repository.find(name, version)
    return json_response(
        {
            "name": name,
            "versions": repository.versions(name),
            "platform": entry.model.platform,
            "inputs": [spec.describe() for spec in getattr(entry.model, "inputs", ())],
            "outputs": [spec.describe() for spec in getattr(entry.model, "outputs", ())],
        }
    )


async def statistics(request: Request) -> Response:
    """Answer counts and times of one version, of all of a model, or of all models."""
    entries = service_of(request).repository.loaded(
        request.path_params.get("name", ""), request.path_params.get("version", "")
    )
    return json_response({"model_stats": [e.statistics.describe(e.name, e.version) for e in entries]})


# -- inference -----------------------------------------------------------------------------


async def infer(request: Request) -> Response:
    """Answer an inference request."""
    name, version = _place(request)
    service = service_of(request)
    with body_of(request) as body:
        asked = await _infer_request(request, await read_body(request, body))
        call = service.begin("rest", timeout_of(request, asked.timeout))
        entry, answer = await while_connected(request, service.infer(name, version, asked, call))
    size = sum(array.nbytes for array in answer.values())
    made, parts = await service.translate(size, infer_answer, name, entry.version, asked, answer)
    if not parts:
        return await service.translate(size, json_response, made)
    head = json.dumps(made, separators=(",", ":")).encode()
    headers = {"Inference-Header-Content-Length": str(len(head))}
    return Response(b"".join([head, *parts]), 200, headers, "application/octet-stream")


async def _infer_request(request: Request, data: bytes) -> InferRequest:
    service = service_of(request)
    word = header_of(request, _HEADER)
    if word is not None and not (word.isdecimal() and word.isascii() and len(word) < 20):
        raise InvalidRequest(f"the header Inference-Header-Content-Length must be a number of bytes, not {word!r}")
    if word is not None and int(word) == 0:
        model = tensor_model(service.repository.find(*_place(request)))
        return raw_request_of(data, model.inputs, service.settings.max_body)
    length = None if word is None else int(word)
    return await service.translate(len(data), infer_request_of, data, length, service.settings.max_body)


async def generate(request: Request) -> Response:
    """Answer a request of plain values: `{"text_input": "…"}`, each input by its name."""
    name, version = _place(request)
    service = service_of(request)
    with body_of(request) as body:
        asked = await _plain_request(request, await read_body(request, body))
        call = service.begin("rest", timeout_of(request, asked.timeout))
        entry, answer = await while_connected(request, service.infer(name, version, asked, call))
    return json_response(_plain_answer(name, entry.version, asked, answer))


async def generate_stream(request: Request) -> Response:
    """Answer a request of plain values by server-sent events, one for each answer of the model."""
    name, version = _place(request)
    service = service_of(request)
    with body_of(request) as body:
        asked = await _plain_request(request, await read_body(request, body))
    call = service.begin("rest", timeout_of(request, asked.timeout))
    answers = service.stream(name, version, asked, call)
    # The first answer is awaited, so that an error before it has a status.
    first = await while_connected(request, anext(answers, None))  # type: ignore[arg-type]

    async def events() -> AsyncIterator[bytes]:
        try:
            if first is not None:
                yield _event(_plain_answer(name, first[0].version, asked, first[1]))
            async for entry, answer in answers:
                yield _event(_plain_answer(name, entry.version, asked, answer))
        except ServeError as error:  # the status is sent already
            yield _event({"error": str(error)})
        finally:
            await answers.aclose()  # type: ignore[attr-defined]

    return StreamingResponse(events(), media_type="text/event-stream", headers={"Cache-Control": "no-store"})


async def _plain_request(request: Request, data: bytes) -> InferRequest:
    service = service_of(request)
    model = tensor_model(service.repository.find(*_place(request)))
    return await service.translate(len(data), _plain_request_of, data, model.inputs, service.settings.max_body)


def _plain_request_of(data: bytes, specs: Any, most_bytes: int) -> InferRequest:
    return plain_request_of(parse_json(data), specs, most_bytes)


def _plain_answer(name: str, version: str, asked: InferRequest, answer: Any) -> dict[str, Any]:
    made = {"model_name": name, "model_version": version}
    if asked.id:
        made["id"] = asked.id
    return {**made, **plain_values(answer)}


def _event(value: Any) -> bytes:
    return b"data: " + json.dumps(value, separators=(",", ":")).encode() + b"\n\n"


# -- repository ----------------------------------------------------------------------------


async def _optional_table(request: Request) -> dict[str, Any]:
    """Return the JSON object of a body; an empty one if there is no body."""
    with body_of(request) as body:
        data = await read_body(request, body)
    table = parse_json(data) if data.strip() else {}
    if type(table) is not dict:
        raise InvalidRequest("the body must be a JSON object")
    return table


async def index(request: Request) -> Response:
    """Answer all models there are, or those that are ready."""
    wanted = (await _optional_table(request)).get("ready", False)
    if type(wanted) is not bool:
        raise InvalidRequest("'ready' must be true or false")
    try:
        return json_response(service_of(request).repository.index(wanted))
    except (ValueError, OSError) as error:
        raise InvalidRequest(str(error)) from None


async def load(request: Request) -> Response:
    """Load a model anew, or for the first time."""
    service_of(request).check_management()
    _protocol.check_load_parameters(_protocol.parameters_of(await _optional_table(request), "request"))
    await service_of(request).repository.load(request.path_params["name"])
    return Response()


async def unload(request: Request) -> Response:
    """Unload a model."""
    service_of(request).check_management()
    _protocol.check_unload_parameters(_protocol.parameters_of(await _optional_table(request), "request"))
    await service_of(request).repository.unload(request.path_params["name"])
    return Response()


def routes() -> list[Route]:
    """Return the endpoints."""
    places = ("/v2/models/{name}", "/v2/models/{name}/versions/{version}")
    # They are searched in this order: the most frequent first.
    made = [Route(f"{model}/infer", infer, methods=["POST"]) for model in places]
    made += [
        Route("/v2", server_metadata),
        Route("/v2/health/live", live),
        Route("/v2/health/ready", ready),
        Route("/v2/models/stats", statistics),
        Route("/v2/repository/index", index, methods=["POST"]),
        Route("/v2/repository/models/{name}/load", load, methods=["POST"]),
        Route("/v2/repository/models/{name}/unload", unload, methods=["POST"]),
    ]
    for model in places:
        made += [
            Route(model, model_metadata),
            Route(f"{model}/ready", model_ready),
            Route(f"{model}/stats", statistics),
            Route(f"{model}/generate", generate, methods=["POST"]),
            Route(f"{model}/generate_stream", generate_stream, methods=["POST"]),
        ]
    return made
