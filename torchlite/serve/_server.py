"""The process of `torchlite serve`: HTTP by uvicorn, gRPC beside it, signals, and the exit status."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import importlib
import logging
import signal
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import uvicorn

from ._app import make_app
from ._service import Service
from ._settings import Settings

_log = logging.getLogger("torchlite.serve")
INTERRUPTED = 130
# Seconds that an idle connection is kept. Load balancers keep theirs for 60 and would meet closed ones.
_KEEP_ALIVE = 75
# Seconds until a thread gets Python's lock, 5 ms by default. A model's thread waits for it after each product.
_SWITCH_INTERVAL = 0.0005
_CALM_TURNS = 5
_LINGER = 1.0  # seconds in which open connections may ask once more after the server's end has begun


class StartError(Exception):
    """The server cannot start: a model fails, or an address is taken."""


class _HttpServer(uvicorn.Server):
    """uvicorn's server without its handling of signals, which is ours, and with an end that loses no request."""

    def __init__(self, config: Any, service: Service) -> None:
        super().__init__(config)
        self._service = service

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End: take the connections that wait, refuse others, and answer what comes on open ones for a while."""
        for listener in sockets or []:
            await self._take_waiting(listener)
        # Not before: clients whose connections are closed make new ones, and the system resets those that come between
        # the last `accept` and the listener's end.
        self._service.closes_connections = True
        await self._linger()
        await super().shutdown(sockets)

    async def _linger(self) -> None:
        """Answer what comes on open connections for a while, and until some turns of the event loop bring no further
        request: on a busy machine this process does not run for seconds, and requests wait that nobody has read.
        """
        state, end, seen, calm = self.server_state, time.monotonic() + _LINGER, 0, 0
        while state.connections and not self.force_exit and (time.monotonic() < end or calm < _CALM_TURNS):
            await asyncio.sleep(0.01)
            count = state.total_requests + len(state.tasks)
            calm, seen = calm + 1 if count == seen else 0, count

    async def _take_waiting(self, listener: socket.socket) -> None:
        """Accept all connections that the system has made already, and close the socket, which would reset them."""
        config, accepted = self.config, []
        with contextlib.suppress(BlockingIOError):
            while True:
                accepted.append(listener.accept()[0])
        for server in self.servers:
            server.close()

        make: Any = config.http_protocol_class

        def protocol() -> Any:
            return make(config=config, server_state=self.server_state, app_state=self.lifespan.state)

        for connection in accepted:
            connection.setblocking(False)
            with contextlib.suppress(OSError):  # it has gone
                loop = asyncio.get_running_loop()
                await loop.connect_accepted_socket(protocol, connection, ssl=config.ssl if config.is_ssl else None)


class ServerProcess:
    """A server from its start to its end.

    Args:
        settings: The options.
        on_ready: Called with the ports of HTTP and gRPC (None without gRPC) when the models are loaded.
    """

    def __init__(self, settings: Settings, on_ready: Any = None) -> None:
        self._settings = settings
        self._on_ready = on_ready
        self._stop: asyncio.Event | None = None
        self._signal: int | None = None

    def run(self) -> int:
        """Serve until a signal ends it; return the exit status. StartError if it cannot start."""
        sys.setswitchinterval(_SWITCH_INTERVAL)
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            return runner.run(self._serve())

    async def _serve(self) -> int:
        settings = self._settings
        self._stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            try:
                loop.add_signal_handler(number, self._on_signal, number)
            except NotImplementedError:  # Windows
                signal.signal(number, lambda n, _: loop.call_soon_threadsafe(self._on_signal, n))
        try:
            service = Service(settings)
            listener = _listen(settings.host, settings.port)
        except (OSError, ValueError) as error:
            raise StartError(str(error)) from error
        http = _HttpServer(_http_config(settings, service), service)
        serving = asyncio.ensure_future(http.serve(sockets=[listener]))
        grpc_server = None
        status = 0
        try:
            # Probes are answered while the models are loaded; the server is not ready yet.
            grpc_server, grpc_port = await self._start_grpc(service)
            if await self._load(service, serving):
                if self._on_ready is not None:
                    self._on_ready(listener.getsockname()[1], grpc_port)
                gc.collect()  # what loading has left; the start runs without collections
                gc.freeze()  # collections need not look at what lives as long as the server
                gc.enable()
                await self._wait(serving)
            if self._signal == signal.SIGINT:
                status = INTERRUPTED
        finally:
            await self._drain(service, http, grpc_server, serving)
            listener.close()
        return status

    def _on_signal(self, number: int) -> None:
        assert self._stop is not None
        if self._stop.is_set():
            _log.warning("second signal: requests are cut off")
            raise SystemExit(128 + number)
        self._signal = number
        self._stop.set()

    async def _start_grpc(self, service: Service) -> tuple[Any, int | None]:
        if self._settings.grpc_port < 0:
            return None, None
        from ._grpc_service import start_grpc

        certificate = None
        try:
            if self._settings.tls_cert:
                certificate = Path(self._settings.tls_cert).read_bytes(), Path(self._settings.tls_key).read_bytes()
            return await start_grpc(service, certificate)
        except OSError as error:
            raise StartError(str(error)) from error

    async def _load(self, service: Service, serving: asyncio.Future) -> bool:
        """Load the models; False if a signal came first. StartError if one fails."""
        assert self._stop is not None
        loading = asyncio.ensure_future(service.repository.start())
        stopping = asyncio.ensure_future(self._stop.wait())
        try:
            await asyncio.wait({loading, stopping, serving}, return_when=asyncio.FIRST_COMPLETED)
            if loading.done():
                loading.result()
                return True
            return False
        except Exception as error:  # of a file, or of a model's code: the command says which
            raise StartError(" ".join(str(error).split()) or type(error).__name__) from error
        finally:
            stopping.cancel()
            loading.cancel()

    async def _wait(self, serving: asyncio.Future) -> None:
        assert self._stop is not None
        stopping = asyncio.ensure_future(self._stop.wait())
        await asyncio.wait({stopping, serving}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()

    async def _drain(self, service: Service, http: Any, grpc_server: Any, serving: asyncio.Future) -> None:
        """End: say that the server is not ready, take no more requests, and answer those that it has."""
        service.draining = True
        if self._signal is not None and self._settings.drain_delay:
            await asyncio.sleep(self._settings.drain_delay)
        http.should_exit = True
        ends = [asyncio.ensure_future(self._end_http(serving))]
        if grpc_server is not None:
            ends.append(asyncio.ensure_future(grpc_server.stop(self._settings.drain)))
        await asyncio.wait(ends)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(service.close(), 1.0)

    @staticmethod
    async def _end_http(serving: asyncio.Future) -> None:
        with contextlib.suppress(SystemExit):  # uvicorn's, if it could not start
            await serving


def _loop_factory() -> Any:
    """Return what makes the event loop: uvloop's, if it is installed, else None for Python's."""
    try:
        return importlib.import_module("uvloop").new_event_loop
    except ImportError:
        return None


def _http_config(settings: Settings, service: Service) -> uvicorn.Config:
    return uvicorn.Config(
        make_app(settings, service, load=False),
        log_config=None,
        access_log=False,
        lifespan="on",
        ws="none",
        timeout_keep_alive=_KEEP_ALIVE,
        limit_concurrency=settings.max_connections,
        timeout_graceful_shutdown=int(settings.drain) or 1,
        ssl_certfile=settings.tls_cert or None,
        ssl_keyfile=settings.tls_key or None,
        server_header=False,
        proxy_headers=False,
    )


def _listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens. OSError that names the address if it cannot."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        listener = socket.socket(*found[:3])  # with its protocol, or asyncio leaves TCP_NODELAY out
        if sys.platform != "win32":
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(found[4])
        listener.listen(2048)
    except OSError as error:
        raise OSError(f"cannot listen on {host}:{port}: {error.strerror or error}") from None
    listener.setblocking(False)
    return listener
