"""The process: start, signals, tokens, TLS, streams, and exit statuses."""

import asyncio
import contextlib
import http.client
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time

import pytest

pytest.importorskip("starlette", reason="the extra 'serve' is missing")
uvicorn = pytest.importorskip("uvicorn", reason="the extra 'serve' is missing")
pytest.importorskip("prometheus_client", reason="the extra 'serve' is missing")
pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")

from .asgi_client import expected, infer_body
from .server_process import Server, serving

ROWS = [[1.0, 2.0, 3.0, 4.0]]
SLOW = """
import pathlib
import time
import torch

class Slow(torch.nn.Module):
    def forward(self, x):
        time.sleep(float(x.max()))
        return x

class Words(torch.nn.Module):
    def forward(self, n):
        for word in range(int(n[0])):
            while word == 1 and not pathlib.Path(__file__).with_name("go").exists():
                time.sleep(0.01)
            yield {"word": [f"w{word}"]}
"""


@pytest.fixture
def slow(tmp_path):
    """A folder with a model that sleeps as long as its input says, and one that answers in parts."""
    for name in ("Slow", "Words"):
        folder = tmp_path / name.lower()
        folder.mkdir()
        (folder / "code.py").write_text(SLOW)
        (folder / "config.toml").write_text(f"factory = 'code:{name}'\n")
    return tmp_path


def ask(server, seconds, **headers):
    body = json.dumps({"x": seconds}).encode()
    return server.request("POST", "/v2/models/slow/generate", body, headers)


def test_it_answers_and_logs(onnx_file):
    with serving(onnx_file) as server:
        answer = server.request("POST", "/v2/models/net/infer", json.dumps(infer_body(ROWS)).encode())
        assert answer.json["outputs"][0]["data"] == pytest.approx(expected(ROWS), abs=1e-6)
    lines = [json.loads(line) for line in server.output]
    assert [(line["path"], line["status"], line["model"]) for line in lines] == [("/v2/models/net/infer", 200, "net")]


def test_answers_are_sent_at_once():
    """asyncio sets TCP_NODELAY for sockets of a known protocol alone; without it an answer in two parts takes 40 ms."""
    from torchlite.serve._server import _listen

    with _listen("127.0.0.1", 0) as listener:
        assert listener.proto == socket.IPPROTO_TCP


def test_idle_connections_are_kept_longer_than_load_balancers_keep_theirs():
    """A balancer that sends on a connection which is just being closed answers its client 502."""
    from torchlite.serve import Settings
    from torchlite.serve._server import _http_config
    from torchlite.serve._service import Service

    settings = Settings(models=("net.onnx",))
    assert _http_config(settings, Service(settings)).timeout_keep_alive > 60


def test_ctrl_c_ends_it_with_130(onnx_file):
    server = Server(onnx_file)
    server.process.send_signal(signal.SIGINT)
    assert server.wait() == 130


@pytest.mark.parametrize("words", [("nope.onnx",), ("broken.onnx",)])
def test_a_model_that_fails_is_one_line_and_status_1(tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken.onnx").write_bytes(b"damaged")
    server = Server(*words)
    assert server.wait() == 1
    assert server.lines[-1].startswith("python -m torchlite serve: error: ") and "Traceback" not in "".join(
        server.lines
    )


def test_a_taken_port_is_one_line_and_status_1(onnx_file):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        for flag in ("--port", "--grpc-port"):
            command = [sys.executable, "-m", "torchlite", "serve", onnx_file, "--port", "0", "--grpc-port", "0"]
            done = subprocess.run([*command, flag, port], capture_output=True, text=True)
            assert done.returncode == 1 and f"cannot listen on 127.0.0.1:{port}" in done.stderr.splitlines()[-1]


def test_sigterm_answers_what_was_asked_and_takes_no_more(slow):
    server = Server(str(slow), "--allow-code")

    async def work():
        asked = [asyncio.create_task(asyncio.to_thread(ask, server, 0.3 + n / 100)) for n in range(3)]
        await asyncio.sleep(0.2)
        server.process.terminate()
        return [answer.status for answer in await asyncio.gather(*asked)]

    assert asyncio.run(work()) == [200, 200, 200]
    assert server.wait() == 0


def test_open_connections_may_ask_once_more_after_sigterm(onnx_file):
    server = Server(onnx_file)
    body = json.dumps(infer_body(ROWS)).encode()
    kept = [http.client.HTTPConnection("127.0.0.1", server.port, timeout=10) for _ in range(3)]
    for place, connection in enumerate(kept):
        connection.connect()
        if place:  # one has asked nothing yet
            connection.request("GET", "/v2/health/live")
            assert connection.getresponse().read()
    server.process.terminate()
    end = time.monotonic() + 30
    with contextlib.suppress(ConnectionRefusedError):
        while time.monotonic() < end:
            socket.create_connection(("127.0.0.1", server.port)).close()
            time.sleep(0.01)
    for connection in kept:
        connection.request("POST", "/v2/models/net/infer", body)
        answer = connection.getresponse()
        assert answer.status == 200 and answer.headers["connection"] == "close" and answer.read()
        connection.close()
    with pytest.raises(ConnectionRefusedError):
        server.request("GET", "/v2/health/live")
    assert server.wait() == 0


def test_a_drain_delay_says_that_the_server_is_not_ready(slow):
    server = Server(str(slow), "--allow-code", "--drain-delay", "1")
    server.process.terminate()
    time.sleep(0.3)
    assert server.request("GET", "/v2/health/ready").status == 503
    assert server.request("GET", "/v2/health/live").status == 200
    assert ask(server, 0.01).status == 200
    assert server.wait() == 0


def test_deadlines(slow):
    with serving(slow, "--allow-code", "--timeout", "1") as server:
        start = time.monotonic()
        assert ask(server, 0.5, **{"Request-Timeout": "0.1"}).status == 504
        assert time.monotonic() - start < 0.45
        body = json.dumps({"x": 0.5, "parameters": {"timeout": 100_000}}).encode()
        assert server.request("POST", "/v2/models/slow/generate", body).status == 504
        assert ask(server, 0.01).status == 200


def test_a_client_that_goes_away_leaves_the_queue(slow):
    with serving(slow, "--allow-code", "--max-queue", "1") as server:
        body = json.dumps({"x": 0.8}).encode()
        head = f"POST /v2/models/slow/generate HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
        connections = []
        for _ in range(2):  # one is computed, one waits
            connections.append(socket.create_connection(("127.0.0.1", server.port)))
            connections[-1].sendall(head.encode() + body)
            time.sleep(0.1)
        assert ask(server, 0.01).status == 429
        for connection in connections:
            connection.close()
        time.sleep(0.1)
        assert ask(server, 0.01).status == 200
        figures = server.request("GET", "/metrics").body.decode()
        assert 'torchlite_errors_total{model="slow",reason="cancelled"} 2.0' in figures


def test_parts_come_as_they_are_made(slow):
    with serving(slow, "--allow-code") as server:
        body = json.dumps({"n": 5}).encode()
        connection = http.client.HTTPConnection("127.0.0.1", server.port)
        connection.request("POST", "/v2/models/words/generate_stream", body)
        response = connection.getresponse()
        words = []
        while line := response.readline():
            if line.startswith(b"data: "):
                words.append(json.loads(line[6:])["word"])
                (slow / "words" / "go").touch()  # the model waits for it after its first word
        connection.close()
        assert words == [f"w{n}" for n in range(5)]
        answer = server.request("POST", "/v2/models/words/generate", body)
        assert answer.status == 400 and "generate_stream" in answer.json["error"]


def test_a_reader_that_leaves_a_stream_frees_the_worker(slow):
    with serving(slow, "--allow-code") as server:
        body = json.dumps({"n": 100_000}).encode()
        connection = http.client.HTTPConnection("127.0.0.1", server.port)
        connection.request("POST", "/v2/models/words/generate_stream", body)
        connection.getresponse().readline()
        connection.close()
        (slow / "words" / "go").touch()
        answer = server.request("POST", "/v2/models/words/generate_stream", b'{"n": 1}', {"Request-Timeout": "5"})
        assert answer.status == 200 and b"w0" in answer.body


def test_a_token_by_the_environment(onnx_file):
    with serving(onnx_file, environment={**os.environ, "TORCHLITE_SERVE_TOKEN": "secret"}) as server:
        for path in ("/v2/health/live", "/v2/health/ready", "/ping"):
            assert server.request("GET", path).status == 200
        for path in ("/v2", "/", "/metrics", "/models", "/openapi.json"):
            answer = server.request("GET", path)
            assert answer.status == 401 and answer.headers["www-authenticate"].startswith("Bearer")
        assert server.request("GET", "/v2", headers={"Authorization": "Bearer wrong"}).status == 401
        assert server.request("GET", "/v2", headers={"Authorization": "Bearer secret"}).status == 200


def test_pages_of_other_hosts_do_not_reach_a_local_server(onnx_file):
    with serving(onnx_file) as server:
        assert server.request("GET", "/v2", headers={"Host": "evil.example"}).status == 403
        assert server.request("GET", "/v2", headers={"Origin": "https://evil.example"}).status == 403
        assert server.request("GET", "/v2", headers={"Origin": "null"}).status == 403
        assert server.request("GET", "/v2", headers={"Origin": "http://localhost:3000"}).status == 200


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")
def test_tls(onnx_file, tmp_path):
    key, certificate = str(tmp_path / "key.pem"), str(tmp_path / "cert.pem")
    make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=localhost"]
    make += ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", key, "-out", certificate]
    subprocess.run(make, check=True, capture_output=True)
    with serving(onnx_file, "--tls-cert", certificate, "--tls-key", key) as server:
        context = ssl.create_default_context(cafile=certificate)
        connection = http.client.HTTPSConnection("127.0.0.1", server.port, context=context)
        connection.request("GET", "/v2/health/ready")
        assert connection.getresponse().status == 200
        connection.close()
        with pytest.raises((http.client.HTTPException, OSError)):
            server.request("GET", "/v2")


def test_malformed_http_is_answered_by_400(onnx_file):
    with serving(onnx_file) as server:
        for sent in (b"GARBAGE\r\n\r\n", b"\x00\xff\r\n\r\n", b"POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n"):
            with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
                connection.sendall(sent)
                assert connection.recv(100).startswith(b"HTTP/1.1 400")
        assert server.request("GET", "/v2/health/ready").status == 200
    assert "Traceback" not in "".join(server.lines)


def test_the_end_waits_while_open_connections_ask(monkeypatch):
    from torchlite.serve import _server

    monkeypatch.setattr(_server, "_LINGER", 0.0)
    server = _server._HttpServer(uvicorn.Config(None), None)  # waiting asks nothing of the service
    server.server_state.connections.add(object())

    async def main():
        lingering = asyncio.ensure_future(server._linger())
        for _ in range(20):
            server.server_state.total_requests += 1
            await asyncio.sleep(0.01)
        assert not lingering.done()
        await asyncio.wait_for(lingering, 30)

    asyncio.run(main())
