"""The ASGI application: all endpoints, errors as answers, and the models' life beside the server's."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from . import _openai, _openapi, _rest, _status_page, _torchserve
from ._access_log import AccessLog
from ._direct import DirectInference
from ._errors import ServeError
from ._guard import Guard
from ._http import BodyBudget, by_method, error_response, gone_response, json_response, serve_error_response, service_of
from ._service import Service
from ._settings import Settings

_KINDS = {404: "ResourceNotFoundException", 405: "MethodNotAllowedException"}


async def metrics(request: Request) -> Response:
    """Answer the figures for Prometheus."""
    service = service_of(request)
    text = await service.metrics.render(service.repository.loaded(), service.is_ready)
    return Response(text, media_type=service.metrics.content_type)


async def openapi(_request: Request) -> Response:
    """Answer the description of all endpoints."""
    return json_response(_openapi.document())


async def status_page(request: Request) -> Response:
    """Answer a page with the models' state."""
    from torchlite import __torchlite_version__

    service = service_of(request)
    repository = service.repository
    text = _status_page.page(__torchlite_version__, service.is_ready, repository.index(False), repository.loaded())
    return HTMLResponse(text, headers={"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"})


async def _on_serve_error(request: Request, error: Any) -> Response:
    return serve_error_response(request.url.path, error)


async def _on_http_error(request: Request, error: Any) -> Response:
    kind = _KINDS.get(error.status_code, "BadRequestException")
    return error_response(request.url.path, error.status_code, kind, str(error.detail), dict(error.headers or {}))


async def _on_disconnect(_request: Request, _error: Any) -> Response:
    return gone_response()


async def _on_error(request: Request, error: Any) -> Response:
    name = type(error).__name__
    return error_response(request.url.path, 500, ServeError.kind, f"the server failed ({name}); its log says how")


class _LastAnswers:
    """ASGI middleware: once the server takes no connections, each answer closes its own: clients go elsewhere."""

    def __init__(self, app: Any, service: Service) -> None:
        self._app, self._service = app, service

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        async def close_and_send(message: Any) -> None:
            if self._service.closes_connections and message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", []), (b"connection", b"close")]
            await send(message)

        await self._app(scope, receive, close_and_send)


def make_app(settings: Settings, service: Service | None = None, load: bool = True) -> Starlette:
    """Return the application.

    Args:
        settings: The options.
        service: The core, if other servers share it; by default a new one.
        load: Whether the application loads its models when it starts, and unloads them when it ends.
    """

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        core: Service = app.state.service
        if load:
            await core.repository.start()
        yield
        if load:
            await core.close()

    core = service or Service(settings)
    local = settings.host if settings.is_local else None
    app = Starlette(
        routes=[
            *_rest.routes(),
            by_method("/", GET=status_page, OPTIONS=openapi),  # OPTIONS is TorchServe's
            Route("/metrics", metrics),
            Route("/openapi.json", openapi),
            *_torchserve.routes(),
            *_openai.routes(),
        ],
        middleware=[
            Middleware(AccessLog, enabled=settings.access_log),
            Middleware(_LastAnswers, service=core),
            Middleware(Guard, token=core.token, local_host=local, respond=serve_error_response),
            Middleware(DirectInference),
        ],
        exception_handlers={
            ServeError: _on_serve_error,
            HTTPException: _on_http_error,
            ClientDisconnect: _on_disconnect,
            Exception: _on_error,
        },
        lifespan=lifespan,
    )
    app.state.service = core
    app.state.budget = BodyBudget(settings.max_bodies)
    return app
