"""A server of its own process, and a client of it with the methods of `asgi_client.Client`."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import re
import subprocess
import sys
import threading
from typing import Any

from .asgi_client import Answer, Client


class Server:
    """A running `torchlite serve` on a free port, or on `port`; `lines` are those of its standard error."""

    def __init__(self, *words: str, environment: Any = None, port: int = 0) -> None:
        command = [sys.executable, "-m", "torchlite", "serve", *words, "--port", str(port), "--grpc-port", "0"]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
        )
        self.lines: list[str] = []
        self.port = self.grpc_port = 0
        for line in self.process.stderr:
            self.lines.append(line)
            found = re.search(r"ready: https?://\S+:(\d+)(?:, gRPC on \S+:(\d+))?", line)
            if found:
                self.port, self.grpc_port = (int(word) for word in found.groups())
                break
        self.output: list[str] = []
        self._readers = [
            threading.Thread(target=target.extend, args=(stream,))
            for target, stream in ((self.lines, self.process.stderr), (self.output, self.process.stdout))
        ]
        for reader in self._readers:
            reader.start()

    def wait(self, seconds: float = 60.0) -> int:
        """Return the exit status; the server is killed if it does not end in time."""
        try:
            return self.process.wait(seconds)
        finally:
            self.process.kill()
            self.process.wait()
            for reader in self._readers:
                reader.join()
            self.process.stderr.close()
            self.process.stdout.close()

    def request(self, method: str, path: str, body: bytes = b"", headers: Any = ()) -> Answer:
        """Return the answer to a request."""
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)) as connection:
            connection.request(method, path, body, dict(headers))
            found = connection.getresponse()
            parts = list(iter(found.read1, b""))
            return Answer(found.status, {key.lower(): value for key, value in found.getheaders()}, parts)


@contextlib.contextmanager
def serving(*words: Any, environment: Any = None):
    """A server that is ended by SIGTERM."""
    server = Server(*map(str, words), environment=environment)
    try:
        yield server
    finally:
        server.process.terminate()
        status = server.wait()
    assert status == 0, "".join(server.lines)


class RemoteClient(Client):
    """A client of a server's process."""

    def __init__(self, server: Server) -> None:
        self.server = server

    async def call(self, method: str, path: str, body: Any = b"", headers: Any = (), cut: float | None = None):
        assert cut is None
        return await asyncio.to_thread(self.server.request, method, path, self.encode(body), headers)
