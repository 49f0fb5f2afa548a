"""TorchServe's gRPC services for inference and management."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator
from typing import Any

import grpc

from . import _torchserve_management as models
from . import _torchserve_messages as messages
from ._errors import InvalidRequest, ServeError
from ._grpc_calls import GuardedCalls, shorter
from ._handler_context import EXPLAIN, HandlerAnswer, HandlerRequest
from ._handler_model import HandlerModel
from ._plain_values import nested_values
from ._service import PartQueue, Service
from ._torchserve import bytes_of, values_of

_INFERENCE, _MANAGEMENT = messages.inference, messages.management
_BODY_NAMES = ("data", "body")  # of an input that holds what the body of a request by HTTP does
# Statuses of HTTP that a handler sets, as statuses of gRPC; others above 399 are INVALID_ARGUMENT or INTERNAL.
_CODES = {
    401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 408: "DEADLINE_EXCEEDED",
    409: "ALREADY_EXISTS", 413: "RESOURCE_EXHAUSTED", 429: "RESOURCE_EXHAUSTED", 501: "UNIMPLEMENTED",
    503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED",
}  # fmt: skip


def torchserve_handlers(service: Service) -> list[Any]:
    """Return what a server of gRPC takes: the services for inference and management."""
    return [_InferenceCalls(service).handler(), _ManagementCalls(service).handler()]


class _HandlerStatus(ServeError):
    """A handler has set a status that says that its request failed."""

    def __init__(self, answer: HandlerAnswer) -> None:
        super().__init__(bytes_of(answer.body).decode("utf-8", "replace"))
        self.status = answer.status
        usual = "INVALID_ARGUMENT" if answer.status < 500 else "INTERNAL"
        self.grpc_code = _CODES.get(answer.status, usual)


class _InferenceCalls(GuardedCalls):
    open_calls = ("Ping",)

    def handler(self) -> Any:
        """Return what a server of gRPC takes."""
        given, made = _INFERENCE.PredictionsRequest.FromString, _INFERENCE.PredictionResponse.SerializeToString
        ping = grpc.unary_unary_rpc_method_handler(
            self._guarded("Ping", self._ping), _INFERENCE.Empty.FromString,
            _INFERENCE.TorchServeHealthResponse.SerializeToString,
        )  # fmt: skip
        calls = {
            "Ping": ping,
            "Predictions": grpc.unary_unary_rpc_method_handler(
                self._guarded("Predictions", self._predictions), given, made
            ),
            "StreamPredictions": grpc.unary_stream_rpc_method_handler(
                self._guarded_stream("StreamPredictions", self._stream), given, made
            ),
            "StreamPredictions2": grpc.stream_stream_rpc_method_handler(
                self._guarded_stream("StreamPredictions2", self._stream_each), given, made
            ),
        }
        return grpc.method_handlers_generic_handler(f"{messages.INFERENCE}.InferenceAPIsService", calls)

    async def _ping(self, _request: Any, _context: Any) -> Any:
        health = json.dumps({"status": "Healthy" if self._service.is_ready else "Unhealthy"})
        return _INFERENCE.TorchServeHealthResponse(health=health)

    async def _predictions(self, request: Any, context: Any) -> Any:
        parts = [part async for part in self._answers(request, context, False)]
        return _INFERENCE.PredictionResponse(prediction=b"".join(parts))

    async def _stream(self, request: Any, context: Any) -> AsyncIterator[Any]:
        async for part in self._answers(request, context, True):
            yield _INFERENCE.PredictionResponse(prediction=part)

    async def _stream_each(self, requests: AsyncIterator[Any], context: Any) -> AsyncIterator[Any]:
        """Answer each request of a stream, an error by its status. Answers have the request's `sequenceId`."""
        async for request in requests:
            about = {"sequenceId": request.sequenceId} if request.HasField("sequenceId") else {}
            try:
                async for part in self._answers(request, context, True):
                    yield _INFERENCE.PredictionResponse(prediction=part, **about)
            except ServeError as error:
                code = getattr(grpc.StatusCode, error.grpc_code).value[0]
                status = _INFERENCE.Status(code=code, message=str(error))
                yield _INFERENCE.PredictionResponse(status=status, **about)

    async def _answers(self, request: Any, context: Any, streams: bool) -> AsyncIterator[bytes]:
        """Yield the parts of a model's answer. streams: a model of tensors may answer several times."""
        service, place = self._service, (request.model_name, request.model_version)
        entry = service.repository.find(*place)
        call = service.begin("torchserve_grpc", shorter(context.time_remaining()))
        if isinstance(entry.model, HandlerModel):
            async for part in self._handled(place, request, context, call):
                yield part
            return
        data = _body_of(request.input)
        asked = await service.translate(len(data), values_of, data, entry, service.settings.max_body)
        if not streams:
            yield _value_of((await service.infer(*place, asked, call))[1])
            return
        async for _, answer in service.stream(*place, asked, call):
            yield _value_of(answer)

    async def _handled(self, place: tuple[str, str], request: Any, context: Any, call: Any) -> AsyncIterator[bytes]:
        queue = PartQueue()
        headers = {key: value for key, value in context.invocation_metadata() or () if isinstance(value, str)}
        identifier = headers.get("x-request-id") or str(uuid.uuid4())
        parts = {key: bytearray(value) for key, value in request.input.items()}
        asked = HandlerRequest(parts, {**headers, EXPLAIN: "False"}, identifier, queue.put)
        work = asyncio.ensure_future(self._service.predict(*place, asked, call))
        pieces = queue.iterate(work, call.deadline)
        sent = False
        try:
            async for piece in pieces:
                sent = True
                yield bytes_of(piece)
        finally:
            await pieces.aclose()  # type: ignore[attr-defined]
        answer = work.result()[1]
        if answer.status >= 400:
            raise _HandlerStatus(answer)
        if answer.body is not None or not sent:
            yield bytes_of(answer.body)


def _body_of(given: Any) -> bytes:
    """Return a JSON body of the inputs of a message: the one that is called `data` or `body`, or an object of all."""
    if len(given) == 1 and (found := next((given[key] for key in _BODY_NAMES if key in given), None)) is not None:
        return found
    return b"{%s}" % b", ".join(json.dumps(key).encode() + b": " + value for key, value in given.items())


def _value_of(answer: dict[str, Any]) -> bytes:
    values = {key: nested_values(array) for key, array in answer.items()}
    return bytes_of(next(iter(values.values())) if len(values) == 1 else values)


class _ManagementCalls(GuardedCalls):
    def handler(self) -> Any:
        """Return what a server of gRPC takes."""
        calls = {
            name: grpc.unary_unary_rpc_method_handler(
                self._guarded(name, self._answering(getattr(self, name))),
                request_deserializer=getattr(_MANAGEMENT, f"{name}Request").FromString,
                response_serializer=_MANAGEMENT.ManagementResponse.SerializeToString,
            )
            for name in messages.MANAGEMENT_CALLS
        }
        return grpc.method_handlers_generic_handler(f"{messages.MANAGEMENT}.ManagementAPIsService", calls)

    @staticmethod
    def _answering(method: Any) -> Any:
        async def answer(request: Any, _context: Any) -> Any:
            for field, value in request.ListFields():
                if field.name in _WITHOUT_EFFECT:
                    raise InvalidRequest(f"the server has no parameter '{field.name}'")
                if isinstance(value, int) and value < 0:
                    raise InvalidRequest(f"'{field.name}' must not be negative")
            return _MANAGEMENT.ManagementResponse(msg=await method(request))

        return answer

    async def DescribeModel(self, request: Any) -> str:
        """Answer the state of a version of a model, or of all."""
        return json.dumps(models.describe_model(self._service, request.model_name, request.model_version))

    async def ListModels(self, request: Any) -> str:
        """Answer the models that are loaded, a page at a time."""
        return json.dumps(models.list_models(self._service, request.limit or models.PAGE, request.next_page_token))

    async def RegisterModel(self, request: Any) -> str:
        """Load a model that is in the folder of models."""
        return await models.register_model(
            self._service, request.url, request.model_name, request.initial_workers or 1, request.batch_size or None,
            request.max_batch_delay or None,
        )  # fmt: skip

    async def ScaleWorker(self, request: Any) -> str:
        """Set how many calls of a model run at the same time."""
        least = request.min_worker or 1
        place = request.model_name, request.model_version
        return models.scale_workers(self._service, *place, least, request.max_worker or least)

    async def SetDefault(self, request: Any) -> str:
        """Let a version answer the requests that name none."""
        return models.set_default(self._service, request.model_name, request.model_version)

    async def UnregisterModel(self, request: Any) -> str:
        """Unload a model, or one of its versions."""
        return await models.unregister_model(self._service, request.model_name, request.model_version)


_WITHOUT_EFFECT = (
    "customized", "handler", "response_timeout", "runtime", "s3_sse_kms", "queue_timeout", "number_gpu", "timeout",
)  # fmt: skip
