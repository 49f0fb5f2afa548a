"""HTTP server of a rank's handlers: functions that an operator calls by name while the rank runs.

``GET /handler/`` lists the names. ``POST /handler/NAME`` calls a handler with the request's body and parameters.
"""

from __future__ import annotations

import faulthandler
import json
import os
import socket
import tempfile
import threading
import traceback
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

_PAGE = b'<h1>torch.distributed.WorkerServer</h1>\n<a href="/handler/">Handler names</a>\n'
_LARGEST_BODY = 1 << 20  # bytes


class _Request:
    """The body and parameters of a request."""

    def __init__(self, body: bytes = b"", params: dict[str, str] | None = None) -> None:
        self._body, self._params = body, params or {}

    def body(self) -> bytes:
        """Return the body."""
        return self._body

    def get_param(self, name: str) -> str:
        """Return a parameter of the query, "" if it has none of this name."""
        return self._params.get(name, "")


class _Response:
    """The answer to a request."""

    def __init__(self) -> None:
        self._status, self._content, self._type = 200, b"", ""

    def set_content(self, content: str | bytes, content_type: str) -> None:
        """Set the body and its media type."""
        self._content, self._type = content.encode() if isinstance(content, str) else content, content_type

    def set_status(self, status: int) -> None:
        """Set the status. Default: 200."""
        self._status = status


Handler = Callable[[Any, Any], None]


def _ping(_: _Request, response: _Response) -> None:
    response.set_content("pong", "text/plain")
    response.set_status(200)


def _dump_traceback(_: _Request, response: _Response) -> None:
    with tempfile.TemporaryFile() as file:
        faulthandler.dump_traceback(file, all_threads=True)
        file.seek(0)
        response.set_content(file.read(), "text/plain")
    response.set_status(200)


_handlers: dict[str, Handler] = {"ping": _ping, "dump_traceback": _dump_traceback}


def _register_handler(name: str, handler: Handler) -> None:
    """Add a handler for all servers of the process. ValueError if the name is taken."""
    if _handlers.setdefault(name, handler) is not handler:
        raise ValueError(f"Handler {name} already registered")


def _get_handler(name: str) -> Handler:
    """Return a handler. ValueError if there is none of this name."""
    if name not in _handlers:
        raise ValueError(f"Failed to find handler {name}")
    return _handlers[name]


def _get_handler_names() -> list[str]:
    """Return the names of all handlers."""
    return list(_handlers)


class _Calls(BaseHTTPRequestHandler):
    """Answers of the server."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        if path == "/":
            self._answer(200, "text/html", _PAGE)
        elif path == "/handler/":
            self._answer(200, "application/json", json.dumps(_get_handler_names()).encode())
        else:
            self._answer(404, "", b"")

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "0")
        if not length.isdecimal() or int(length) > _LARGEST_BODY:
            self.close_connection = True  # the body stays unread
            self._answer(413, "text/plain", b"the body is too large or has no length")
            return
        body = self.rfile.read(int(length))
        url = urlsplit(self.path)
        name = url.path.removeprefix("/handler/")
        if name == url.path:
            self._answer(404, "", b"")
            return
        try:
            handler = _get_handler(name)
        except ValueError as error:
            self._answer(404, "text/plain", f"Handler {name} not found: {error}".encode())
            return
        response = _Response()
        try:
            handler(_Request(body, {key: values[-1] for key, values in parse_qs(url.query).items()}), response)
        except Exception as error:  # told to the caller
            told = "".join(traceback.format_exception_only(error)).strip()
            self._answer(500, "text/plain", f"Handler {name} failed: {told}".encode())
            return
        self._answer(response._status, response._type, response._content)

    def _answer(self, status: int, kind: str, content: bytes) -> None:
        self.send_response(status)
        if kind:
            self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """No line for each request."""

    def address_string(self) -> str:
        return "local"


class _UnixServer(ThreadingHTTPServer):
    address_family = getattr(socket, "AF_UNIX", socket.AF_INET)

    def server_bind(self) -> None:
        self.socket.bind(self.server_address)
        os.chmod(str(self.server_address), 0o600)  # for this user alone
        self.server_name, self.server_port = "localhost", 0


class _TCPServer(ThreadingHTTPServer):
    allow_reuse_address = True


class _TCPServer6(_TCPServer):
    address_family = socket.AF_INET6


class _WorkerServer:
    """Server on a Unix socket (`port` -1), or at a host and port; the host "" is this machine alone.

    RuntimeError if the socket's file exists.
    """

    def __init__(self, host_or_file: str, port: int = -1) -> None:
        if port == -1:
            if os.path.lexists(host_or_file):
                raise RuntimeError(f"{host_or_file} already exists")
            self._server: ThreadingHTTPServer = _UnixServer(host_or_file, _Calls)  # type: ignore[arg-type]
        else:
            kind = _TCPServer6 if ":" in host_or_file else _TCPServer
            self._server = kind((host_or_file or "localhost", port), _Calls)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, name="worker-server", daemon=True)
        self._thread.start()

    def shutdown(self) -> None:
        """End the server."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
