"""Two servers behind nginx with the configuration of `examples/serve`: a restart of one loses no request."""

import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path

import pytest

pytest.importorskip("starlette", reason="the extra 'serve' is missing")
pytest.importorskip("uvicorn", reason="the extra 'serve' is missing")

from .asgi_client import expected, infer_body
from .server_process import Server

CONFIGURATION = Path(__file__).resolve().parents[2] / "examples" / "serve" / "nginx.conf"
NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
pytestmark = [
    pytest.mark.night,
    pytest.mark.skipif(NGINX is None, reason="nginx is missing"),
    pytest.mark.skipif(os.name != "posix", reason="signals of POSIX"),
]
TOKEN = {"Authorization": "Bearer secret"}
CLIENTS, RESTARTS = 4, 5


def free_ports(count):
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [one.getsockname()[1] for one in sockets]


@contextlib.contextmanager
def nginx(folder, ports):
    """nginx with the example's text, other ports, and its files in a folder; the port."""
    front, *servers = ports
    text = CONFIGURATION.read_text().replace("listen 8080", f"listen 127.0.0.1:{front}")
    for old, new in zip(("127.0.0.1:8000", "127.0.0.1:8010"), servers, strict=True):
        text = text.replace(f"server {old}", f"server 127.0.0.1:{new}")
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    places = "".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)
    text = text.replace("http {", f"http {{ access_log off; {places}")
    assert re.findall(r" server 127\.0\.0\.1:(\d+)", text) == [str(port) for port in servers]
    (folder / "nginx.conf").write_text(text)
    command = [NGINX, "-p", str(folder), "-e", f"{folder}/errors", "-c", f"{folder}/nginx.conf"]
    process = subprocess.Popen([*command, "-g", f"daemon off; pid {folder}/pid;"])
    try:
        deadline = time.monotonic() + 20
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", front)):
                break
            assert time.monotonic() < deadline and process.poll() is None
            time.sleep(0.05)
        yield front
    finally:
        process.send_signal(signal.SIGQUIT)
        process.wait(60)


def wait_for_requests(server):
    """Wait until a server answers again: nginx asks more than `fail_timeout`, one second, after the last failure."""
    deadline = time.monotonic() + 60
    while not any('"status":200' in line for line in list(server.output)):
        assert time.monotonic() < deadline, "a server that was started again gets no request"
        time.sleep(0.1)


def test_a_restart_under_load_loses_nothing(onnx_file, tmp_path):
    front, *ports = free_ports(3)
    environment = {**os.environ, "TORCHLITE_SERVE_TOKEN": "secret"}

    def start(port):
        return Server(onnx_file, "--no-management", environment=environment, port=port)

    rows = {(c, n): [[float(c), float(n), 1.0, -1.0]] for c in range(CLIENTS) for n in range(7)}
    right = {key: expected(row) for key, row in rows.items()}
    servers = [start(port) for port in ports]
    wrong, counts, stop = [], [0] * CLIENTS, threading.Event()

    def client(number):
        connection = http.client.HTTPConnection("127.0.0.1", front, timeout=30)
        while not stop.is_set():
            counts[number] += 1
            key = number, counts[number] % 7
            try:
                connection.request("POST", "/v2/models/net/infer", json.dumps(infer_body(rows[key])), TOKEN)
                answer = connection.getresponse()
                body = answer.read()
                found = json.loads(body)["outputs"][0]["data"] if answer.status == 200 else None
                if found != pytest.approx(right[key], abs=1e-6):
                    wrong.append((answer.status, body))
            except (OSError, http.client.HTTPException) as error:
                wrong.append(error)
                connection.close()
        connection.close()

    with nginx(tmp_path, [front, *ports]):
        threads = [threading.Thread(target=client, args=(number,)) for number in range(CLIENTS)]
        for thread in threads:
            thread.start()
        try:
            time.sleep(1)
            for turn in range(RESTARTS):
                which = turn % 2
                servers[which].process.send_signal(signal.SIGTERM)
                assert servers[which].wait() == 0
                servers[which] = start(ports[which])
                wait_for_requests(servers[which])
        finally:
            stop.set()
            for thread in threads:
                thread.join()
    for server in servers:
        server.process.terminate()
        assert server.wait() == 0
    print(f"{sum(counts)} requests, {RESTARTS} restarts")
    assert not wrong, f"{len(wrong)} wrong, {wrong[:3]}; nginx says\n{(tmp_path / 'errors').read_text()[-4000:]}"
    assert min(counts) > 0
