"""The protocol's gRPC service."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import Any

import grpc

from ._errors import InvalidRequest, ServeError
from ._grpc_calls import GuardedCalls, abort, shorter
from ._grpc_messages import SERVICE, UNARY_CALLS, messages
from ._grpc_tensors import infer_answer, infer_request_of, parameters_of
from ._protocol import check_load_parameters, check_unload_parameters
from ._rest import server_description
from ._service import Service
from ._torchserve_grpc import torchserve_handlers

_ENVELOPE = 1 << 20  # bytes of a message beside its tensors


class InferenceService(GuardedCalls):
    """The calls of the service, each a method of its name."""

    open_calls = ("ServerLive", "ServerReady")

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
        call = service.begin("grpc", shorter(context.time_remaining(), asked.timeout))
        entry, answer = await service.infer(request.model_name, request.model_version, asked, call)
        size = sum(array.nbytes for array in answer.values())
        return await service.translate(size, infer_answer, entry.name, entry.version, asked, answer)

    async def _stream_infer(self, requests: AsyncIterator[Any], context: Any) -> AsyncIterator[Any]:
        """Answer each request of a stream by the model's answers, or by its error."""
        started, service = time.perf_counter(), self._service
        try:
            self._check_token("ModelStreamInfer", context)
        except ServeError as error:
            await abort(context, error)
        async for request in requests:
            try:
                asked = infer_request_of(request, service.settings.max_body)
                call = service.begin("grpc", shorter(context.time_remaining(), asked.timeout))
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
        self._service.check_management()


def _check_repository(request: Any) -> None:
    if request.repository_name:
        raise InvalidRequest(f"there is no repository '{request.repository_name}'; leave its name out")


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
    server.add_generic_rpc_handlers((InferenceService(service).handler(), *torchserve_handlers(service)))
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
