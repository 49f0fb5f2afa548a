"""Base class of gRPC services: tokens, errors as statuses, and the log."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from typing import Any, ClassVar

import grpc

from ._access_log import traceparent_of, write_line
from ._errors import ServeError
from ._guard import check_token
from ._service import Service


class GuardedCalls:
    """Base class of a service's calls."""

    open_calls: ClassVar[tuple[str, ...]] = ()  # for probes, which have no token

    def __init__(self, service: Service) -> None:
        self._service = service

    def _check_token(self, name: str, context: Any) -> None:
        if self._service.token and name not in self.open_calls:
            check_token(dict(context.invocation_metadata() or ()).get("authorization"), self._service.token)

    @contextlib.asynccontextmanager
    async def _guard(self, name: str, request: Any, context: Any) -> AsyncIterator[None]:
        """Check the token of a call, make its errors statuses of gRPC, and log it."""
        started, status = time.perf_counter(), "OK"
        try:
            self._check_token(name, context)
            yield
        except ServeError as error:
            status = error.grpc_code
            await abort(context, error)
        except (asyncio.CancelledError, GeneratorExit):
            status = "CANCELLED"
            raise
        except Exception:
            status = "INTERNAL"
            raise
        finally:
            model = getattr(request, "model_name", None) or getattr(request, "name", None)
            self._log(name, model, status, started, context)

    def _guarded(self, name: str, method: Callable[[Any, Any], Any]) -> Any:
        """Return a call with `_guard` around it."""

        async def call(request: Any, context: Any) -> Any:
            async with self._guard(name, request, context):
                return await method(request, context)

        return call

    def _guarded_stream(self, name: str, method: Callable[[Any, Any], AsyncIterator[Any]]) -> Any:
        """Return a call with several answers with `_guard` around it."""

        async def call(request: Any, context: Any) -> AsyncIterator[Any]:
            async with self._guard(name, request, context):
                async for answer in method(request, context):
                    yield answer

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


def shorter(*seconds: float | None) -> float | None:
    """Return the least of the limits of time that are given."""
    return min((one for one in seconds if one is not None), default=None)


async def abort(context: Any, error: ServeError) -> None:
    """End a call with an error; it raises."""
    trailing = (("retry-after", str(int(error.retry_after))),) if error.retry_after is not None else ()
    await context.abort(getattr(grpc.StatusCode, error.grpc_code), str(error), trailing)
