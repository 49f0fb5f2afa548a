"""HTTP server that tells an orchestrator whether an agent is alive."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from torchlite._settings.module_dir import make_module_dir

__all__ = ["HealthCheckServer", "create_healthcheck_server"]


class HealthCheckServer:
    """Answers each GET with status 200 while the agent is alive, with 503 else.

    The agent is alive if the time of ``alive_callback`` is no older than ``timeout``. PyTorch's class has this
    interface and starts no server. A subclass may serve another protocol.

    Args:
        alive_callback: Returns the time of the agent's last progress, in seconds since 1970.
        port: The port, on all of the machine's addresses. 0: a free one, which the property ``port`` has after
            `start`.
        timeout: Seconds without progress after which the agent counts as dead.

    Example:
        >>> import time, urllib.request
        >>> from torchlite.distributed.elastic.agent.server.health_check_server import HealthCheckServer
        >>> server = HealthCheckServer(lambda: int(time.time()), 0, timeout=60)
        >>> server.start()
        >>> urllib.request.urlopen(f"http://localhost:{server.port}").status
        200
        >>> server.stop()
    """

    def __init__(self, alive_callback: Callable[[], int], port: int, timeout: int) -> None:
        self._alive_callback, self._port, self._timeout = alive_callback, port, timeout
        self._server: ThreadingHTTPServer | None = None

    @property
    def alive_callback(self) -> Callable[[], int]:
        """The function that returns the time of the last progress."""
        return self._alive_callback

    @property
    def port(self) -> int:
        """The port of the server."""
        return self._port

    def start(self) -> None:
        """Starts the server in a thread.

        Raises:
            OSError: The port is taken.
        """
        health = self

        class Answers(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                alive = time.time() - health._alive_callback() <= health._timeout
                self.send_response(200 if alive else 503)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                """No line for each request."""

        self._server = ThreadingHTTPServer(("", self._port), Answers)
        self._port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, name="health-check", daemon=True).start()

    def stop(self) -> None:
        """Ends the server, if it was started."""
        server, self._server = self._server, None
        if server is not None:
            server.shutdown()
            server.server_close()


def create_healthcheck_server(alive_callback: Callable[[], int], port: int, timeout: int) -> HealthCheckServer:
    """Returns a new `HealthCheckServer`.

    Args:
        alive_callback: Returns the time of the agent's last progress, in seconds since 1970.
        port: The port.
        timeout: Seconds without progress after which the agent counts as dead.

    Example:
        >>> import time
        >>> from torchlite.distributed.elastic.agent.server.health_check_server import create_healthcheck_server
        >>> create_healthcheck_server(lambda: int(time.time()), 8080, 60).port
        8080
    """
    return HealthCheckServer(alive_callback, port, timeout)


__dir__ = make_module_dir(globals())
