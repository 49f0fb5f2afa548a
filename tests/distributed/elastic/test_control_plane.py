"""The server of a rank's handlers. Answers are PyTorch's."""

import http.client
import json
import os
import socket

import pytest

from torchlite._C import _distributed_c10d as c10d
from torchlite.distributed import _worker_server
from torchlite.distributed.elastic.control_plane import worker_main

pytestmark = pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="this system has no Unix sockets")


def ask(path, method, url, body=None, headers=None):
    """The status, media type and body of an answer."""
    connection = http.client.HTTPConnection("localhost", timeout=30)
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.connect(path)
    try:
        connection.request(method, url, body, headers or {})
        answer = connection.getresponse()
        return answer.status, answer.getheader("Content-Type"), answer.read()
    finally:
        connection.close()


@pytest.fixture
def served(tmp_path, monkeypatch):
    path = str(tmp_path / "socket")
    monkeypatch.setenv("TORCH_WORKER_SERVER_SOCKET", path)
    monkeypatch.setattr(_worker_server, "_handlers", dict(_worker_server._handlers))
    with worker_main():
        yield path
    assert not os.path.exists(path)


def test_pages_and_handlers(served):
    assert os.stat(served).st_mode & 0o777 == 0o600
    status, kind, page = ask(served, "GET", "/")
    assert (status, kind) == (200, "text/html") and page.startswith(b"<h1>torch.distributed.WorkerServer</h1>\n")
    status, kind, names = ask(served, "GET", "/handler/")
    assert (status, kind) == (200, "application/json") and json.loads(names) == c10d._get_handler_names()
    assert ask(served, "POST", "/handler/ping") == (200, "text/plain", b"pong")
    assert ask(served, "GET", "/handler/ping") == (404, None, b"")
    assert ask(served, "GET", "/elsewhere") == ask(served, "POST", "/elsewhere") == (404, None, b"")
    found = ask(served, "POST", "/handler/no")
    assert found == (404, "text/plain", b"Handler no not found: Failed to find handler no")
    status, kind, stacks = ask(served, "POST", "/handler/dump_traceback")
    assert (status, kind) == (200, "text/plain") and b"in test_pages_and_handlers\n" in stacks


def test_handlers_of_a_program(served):
    def mine(request, response):
        said = f"{request.body().decode()} {request.get_param('a')}{request.get_param('b')}"
        response.set_content(said, "text/plain")
        response.set_status(201)

    def fails(request, response):
        raise ValueError("cannot")

    c10d._register_handler("mine", mine)
    c10d._register_handler("fails", fails)
    c10d._register_handler("says_nothing", lambda request, response: None)
    assert ask(served, "POST", "/handler/mine?a=3", b"hello") == (201, "text/plain", b"hello 3")
    assert ask(served, "POST", "/handler/fails") == (500, "text/plain", b"Handler fails failed: ValueError: cannot")
    assert ask(served, "POST", "/handler/says_nothing") == (200, None, b"")
    for length in ("-1", "x", str(1 << 40)):
        assert ask(served, "POST", "/handler/mine", headers={"Content-Length": length})[0] == 413
    with pytest.raises(ValueError, match="Handler mine already registered"):
        c10d._register_handler("mine", fails)
    with pytest.raises(RuntimeError, match="already exists"):
        c10d._WorkerServer(served)


def test_a_handler_called_by_the_program():
    class Response(c10d._Response):
        def set_content(self, content, content_type):
            self.given = content, content_type

    response = Response()
    c10d._get_handler("ping")(c10d._Request(), response)
    assert response.given == ("pong", "text/plain")
    with pytest.raises(ValueError, match="Failed to find handler absent"):
        c10d._get_handler("absent")


def test_a_server_at_a_port():
    server = c10d._WorkerServer("", 0)
    try:
        connection = http.client.HTTPConnection("localhost", server._server.server_port, timeout=30)
        connection.request("POST", "/handler/ping")
        assert connection.getresponse().read() == b"pong"
        connection.close()
    finally:
        server.shutdown()


def test_errors_are_recorded(tmp_path, monkeypatch):
    monkeypatch.delenv("TORCH_WORKER_SERVER_SOCKET", raising=False)
    monkeypatch.setenv("TORCHELASTIC_ERROR_FILE", str(tmp_path / "error.json"))

    @worker_main()
    def main():
        raise KeyError("here")

    with pytest.raises(KeyError):
        main()
    assert json.loads((tmp_path / "error.json").read_text())["message"]["message"] == "KeyError: 'here'"
