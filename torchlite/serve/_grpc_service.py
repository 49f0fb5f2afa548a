"""The protocol's gRPC service."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import grpc

from ._access_log import traceparent_of, write_line
from ._errors import Forbidden, InvalidRequest, ServeError
from ._grpc_messages import SERVICE, UNARY_CALLS, messages
from ._grpc_tensors import infer_answer, infer_request_of, parameters_of
from ._guard import check_token
from ._protocol import check_load_parameters, check_unload_parameters
from ._rest import server_description
from ._service import Service

_ENVELOPE = 1 << 20  # bytes of a message beside its tensors
_OPEN = ("ServerLive", "ServerReady")  # for probes, which have no token


class InferenceService:
    """The calls of the service, each a method of its name."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def handler(self) -> Any:
        """Return what a server of gRPC takes."""
        made = {
            name: grpc.unary_unary_rpc_method_handler(
                self._guarded(name, getattr(self, name)),
                request_deserializer=getattr(messages, f"{name}Request").FromString,
                response_serializer=getattr(messages, f"{name}Response").SerializeToString,
            )
            for name in UNARY_CALLS
        }
        made["ModelStreamInfer"] = grpc.stream_stream_rpc_method_handler(
            self._stream_infer,
            request_deserializer=messages.ModelInferRequest.FromString,
            response_serializer=messages.ModelStreamInferResponse.SerializeToString,
        )
        return grpc.method_handlers_generic_handler(SERVICE, made)

    def _check_token(self, name: str, context: Any) -> None:
        if self._service.token and name not in _OPEN:
            check_token(dict(context.invocation_metadata() or ()).get("authorization"), self._service.token)

    def _guarded(self, name: str, method: Callable[[Any, Any], Any]) -> Any:
        """Return a call whose errors are statuses of gRPC, and which is logged."""

        async def call(request: Any, context: Any) -> Any:
            started, status = time.perf_counter(), "OK"
            try:
                self._check_token(name, context)
                return await method(request, context)
            except ServeError as error:
                status = error.grpc_code
                await _abort(context, error)
            except asyncio.CancelledError:
                status = "CANCELLED"
                raise
            except Exception:
                status = "INTERNAL"
                raise
            finally:
                self._log(
                    name,
                    getattr(request, "model_name", None) or getattr(request, "name", None),
                    status,
                    started,
                    context,
                )

        return call

    def _log(self, name: str, model: str | None, status: str, started: float, context: Any) -> None:
        if not self._service.settings.access_log:
            return
        trace = traceparent_of(
            [(k.encode(), v.encode()) for k, v in context.invocation_metadata() or () if k == "traceparent"]
        )
        values = {
            "protocol": "grpc",
            "client": context.peer(),
            "method": name,
            "status": status,
            "ms": round((time.perf_counter() - started) * 1000, 3),
            "model": model or None,
            "trace_id": trace.split("-")[1] if trace else None,
        }
        write_line({key: value for key, value in values.items() if value is not None})

    # -- state ---------------------------------------------------------------------------

    async def ServerLive(self, _request: Any, _context: Any) -> Any:
        """Answer that the server runs."""
        return messages.ServerLiveResponse(live=True)

    async def ServerReady(self, _request: Any, _context: Any) -> Any:
        """Answer whether requests are answered."""
        return messages.ServerReadyResponse(ready=self._service.is_ready)

    async def ModelReady(self, request: Any, _context: Any) -> Any:
        """Answer whether a model is ready."""
        entry = self._service.repository.find(request.name, request.version)
        return messages.ModelReadyResponse(ready=self._service.is_model_ready(entry))

    async def ServerMetadata(self, _request: Any, _context: Any) -> Any:
        """Answer the server's name, version and extensions."""
        return messages.ServerMetadataResponse(**server_description())

    async def ModelMetadata(self, request: Any, _context: Any) -> Any:
        """Answer a model's versions, inputs and outputs."""
        repository = self._service.repository
        entry = repository.find(request.name, request.version)
        return messages.ModelMetadataResponse(
            name=request.name,
            versions=repository.versions(request.name),
            platform=entry.model.platform,
            inputs=[spec.describe() for spec in getattr(entry.model, "inputs", ())],
            outputs=[spec.describe() for spec in getattr(entry.model, "outputs", ())],
        )

    async def ModelStatistics(self, request: Any, _context: Any) -> Any:
        """Answer counts and times."""
        entries = self._service.repository.loaded(request.name, request.version)
        found = [entry.statistics.describe(entry.name, entry.version) for entry in entries]
        for about in found:
            for key in ("response_stats", "memory_usage"):
                del about[key]
        return messages.ModelStatisticsResponse(model_stats=found)

    # -- inference -----------------------------------------------------------------------

    async def ModelInfer(self, request: Any, context: Any) -> Any:
        """Answer an inference request."""
        service = self._service
        size = sum(map(len, request.raw_input_contents))
        asked = await service.translate(size, infer_request_of, request, service.settings.max_body)
        call = service.begin("grpc", _shorter(context.time_remaining(), asked.timeout))
        entry, answer = await service.infer(request.model_name, request.model_version, asked, call)
        size = sum(array.nbytes for array in answer.values())
        return await service.translate(size, infer_answer, entry.name, entry.version, asked, answer)

    async def _stream_infer(self, requests: AsyncIterator[Any], context: Any) -> AsyncIterator[Any]:
        """Answer each request of a stream by the model's answers, or by its error."""
        started, service = time.perf_counter(), self._service
        try:
            self._check_token("ModelStreamInfer", context)
        except ServeError as error:
            await _abort(context, error)
        async for request in requests:
            try:
                asked = infer_request_of(request, service.settings.max_body)
                call = service.begin("grpc", _shorter(context.time_remaining(), asked.timeout))
                answers = service.stream(request.model_name, request.model_version, asked, call)
                async for entry, answer in answers:
                    made = infer_answer(entry.name, entry.version, asked, answer)
                    yield messages.ModelStreamInferResponse(infer_response=made)
            except ServeError as error:
                failed = messages.ModelInferResponse(id=request.id, model_name=request.model_name)
                yield messages.ModelStreamInferResponse(error_message=str(error), infer_response=failed)
        self._log("ModelStreamInfer", None, "OK", started, context)

    # -- repository ----------------------------------------------------------------------

    async def RepositoryIndex(self, request: Any, _context: Any) -> Any:
        """Answer all models there are, or those that are ready."""
        _check_repository(request)
        try:
            return messages.RepositoryIndexResponse(models=self._service.repository.index(request.ready))
        except (ValueError, OSError) as error:
            raise InvalidRequest(str(error)) from None

    async def RepositoryModelLoad(self, request: Any, _context: Any) -> Any:
        """Load a model anew, or for the first time."""
        self._check_management(request)
        check_load_parameters(parameters_of(request.parameters))
        await self._service.repository.load(request.model_name)
        return messages.RepositoryModelLoadResponse()

    async def RepositoryModelUnload(self, request: Any, _context: Any) -> Any:
        """Unload a model."""
        self._check_management(request)
        check_unload_parameters(parameters_of(request.parameters))
        await self._service.repository.unload(request.model_name)
        return messages.RepositoryModelUnloadResponse()

    def _check_management(self, request: Any) -> None:
        _check_repository(request)
        if not self._service.settings.management:
            raise Forbidden("this server does not load or unload models by requests")


def _check_repository(request: Any) -> None:
    if request.repository_name:
        raise InvalidRequest(f"there is no repository '{request.repository_name}'; leave its name out")


def _shorter(*seconds: float | None) -> float | None:
    """Return the least of the limits of time that are given."""
    return min((one for one in seconds if one is not None), default=None)


async def _abort(context: Any, error: ServeError) -> None:
    """End a call with an error; it raises."""
    trailing = (("retry-after", str(int(error.retry_after))),) if error.retry_after is not None else ()
    await context.abort(getattr(grpc.StatusCode, error.grpc_code), str(error), trailing)


async def start_grpc(service: Service, certificate: tuple[bytes, bytes] | None) -> tuple[Any, int]:
    """Start the server of gRPC; return it and its port. OSError if the port is taken."""
    settings = service.settings
    server = grpc.aio.server(
        options=[
            ("grpc.max_receive_message_length", settings.max_body + _ENVELOPE),
            ("grpc.max_send_message_length", -1),
            ("grpc.so_reuseport", 0),
        ],
        maximum_concurrent_rpcs=settings.max_connections,
    )
    server.add_generic_rpc_handlers((InferenceService(service).handler(),))
    address = (
        f"[{settings.host}]:{settings.grpc_port}" if ":" in settings.host else f"{settings.host}:{settings.grpc_port}"
    )
    try:
        if certificate is None:
            port = server.add_insecure_port(address)
        else:
            chain, key = certificate
            port = server.add_secure_port(address, grpc.ssl_server_credentials([(key, chain)]))
    except RuntimeError as error:
        raise OSError(f"gRPC cannot listen on {address}: {error}") from None
    await server.start()
    return server, port
