"""Long trials of a server under load: wrong answers, lost requests, memory, and malformed requests.

`SERVE_TRIALS` is the number of trials (50), `SERVE_MINUTES` the time at full load (10).
"""

import asyncio
import contextlib
import gzip
import json
import os
import random
import signal
import sys
import time

import pytest

import torchlite as torch

pytest.importorskip("starlette", reason="the extra 'serve' is missing")
pytest.importorskip("uvicorn", reason="the extra 'serve' is missing")
pytest.importorskip("prometheus_client", reason="the extra 'serve' is missing")
pytestmark = [pytest.mark.night, pytest.mark.skipif(sys.platform != "linux", reason="workers need Linux")]

from .asgi_client import infer_body, network
from .server_process import Server, serving

TRIALS = int(os.environ.get("SERVE_TRIALS", "50"))
MINUTES = float(os.environ.get("SERVE_MINUTES", "10"))
WORKERS = pytest.mark.parametrize("workers", [0, 2])
FLAGS = ["--no-access-log", "--max-batch", "16"]


class Lost(Exception):
    """A request that was sent and got no answer."""


class Connection:
    """A connection that stays open, as clients' pools have them."""

    def __init__(self, port):
        self._port = port
        self._reader = self._writer = None

    async def ask(self, head, body=b""):
        """Return the status and the body. Lost if there is no answer, OSError if there is no connection."""
        if self._writer is None:
            self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
        try:
            self._writer.write(f"{head}\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
            found = (await self._reader.readuntil(b"\r\n\r\n")).decode().lower()
            length = next(int(line[15:]) for line in found.split("\r\n") if line.startswith("content-length:"))
            answer = await self._reader.readexactly(length)
        except (OSError, asyncio.IncompleteReadError) as error:
            self.close()
            raise Lost(repr(error)) from error
        if "connection: close" in found:
            self.close()
        return int(found.split()[1]), answer

    def close(self):
        if self._writer is not None:
            self._writer.close()
        self._reader = self._writer = None


class Load:
    """Clients that ask as fast as they can and check each answer."""

    def __init__(self, port, clients=16):
        torch.manual_seed(0)
        rows = torch.randn(64, 2, 4)
        with torch.inference_mode():
            wanted = network()(rows)
        self._cases = [
            (json.dumps(infer_body(row.tolist())).encode(), want.flatten().tolist())
            for row, want in zip(rows, wanted, strict=True)
        ]
        self._port = port
        self.right = self.wrong = self.refused = self.unavailable = 0
        self.lost = []
        self._going = True
        self._tasks = [asyncio.ensure_future(self._client(n)) for n in range(clients)]

    async def _client(self, number):
        connection = Connection(self._port)
        with contextlib.closing(connection):
            while self._going:
                number = (number + 7) % len(self._cases)
                await self._ask(connection, *self._cases[number])

    async def _ask(self, connection, body, wanted):
        try:
            status, answer = await connection.ask("POST /v2/models/net/infer HTTP/1.1", body)
        except Lost as error:
            self.lost.append(str(error))
        except OSError:  # the server takes no more connections
            self.refused += 1
            await asyncio.sleep(0.01)
        else:
            if status == 200:
                found = json.loads(answer)["outputs"][0]["data"]
                is_right = all(abs(a - b) < 1e-5 for a, b in zip(found, wanted, strict=True))
                self.right += is_right
                self.wrong += not is_right
            elif status == 503:
                self.unavailable += 1
            else:
                self.wrong += 1

    async def grow(self, count):
        """Return after so many right answers more."""
        end, wanted = time.monotonic() + 60, self.right + count
        while self.right < wanted:
            assert time.monotonic() < end, self
            await asyncio.sleep(0.005)

    async def end(self):
        self._going = False
        await asyncio.gather(*self._tasks)

    def __repr__(self):
        return (
            f"{self.right} right, {self.wrong} wrong, {self.unavailable} times status 503, {self.refused} refused, "
            f"lost {self.lost[:3]}"
        )


def memory_of(process):
    """Resident bytes of a process and those below it, with shared pages counted in parts."""
    total = 0
    for one in [process, *children_of(process)]:
        with contextlib.suppress(OSError), open(f"/proc/{one}/smaps_rollup") as lines:
            total += next(int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:"))
    return total


def children_of(process):
    found = []
    with contextlib.suppress(OSError), open(f"/proc/{process}/task/{process}/children") as words:
        for word in words.read().split():
            found += [int(word), *children_of(int(word))]
    return found


@WORKERS
def test_minutes_at_full_load(onnx_file, workers):
    async def work(server):
        load = Load(server.port)
        await load.grow(2000)
        first, end = memory_of(server.process.pid), time.monotonic() + 60 * MINUTES
        while time.monotonic() < end or load.right < 100_000 * min(MINUTES / 10, 1):
            await asyncio.sleep(1)
        last = memory_of(server.process.pid)
        await load.end()
        print(f"{load}; memory {first / 1e6:.1f} to {last / 1e6:.1f} MB")
        assert not load.wrong and not load.lost and not load.unavailable and not load.refused
        assert last < first + 8e6

    with serving(onnx_file, *FLAGS, "--workers", workers) as server:
        asyncio.run(work(server))


@pytest.mark.parametrize("workers", [1, 2])
def test_kills_lose_no_request(onnx_file, workers):
    seed = random.randrange(1 << 30)
    print(f"seed {seed}")
    chosen = random.Random(seed)

    async def pids(connection):
        status, answer = await connection.ask("GET /models/net HTTP/1.1")
        assert status == 200
        return [one["pid"] for one in json.loads(answer)[0]["workers"]]

    async def work(server):
        load = Load(server.port)
        with contextlib.closing(Connection(server.port)) as connection:
            for _ in range(TRIALS):
                await load.grow(50)
                before = await pids(connection)
                os.kill(chosen.choice(before), signal.SIGKILL)
                while len(now := await pids(connection)) < workers or now == before:
                    await asyncio.sleep(0.005)
            await load.grow(50)
        await load.end()
        print(load)
        assert not load.wrong and not load.lost and not load.refused
        assert load.unavailable <= 16 * TRIALS

    with serving(onnx_file, *FLAGS, "--workers", workers) as server:
        asyncio.run(work(server))
        assert "Traceback" not in "".join(server.lines)


@WORKERS
def test_reloads_lose_no_request(onnx_file, workers):
    async def work(server):
        load = Load(server.port)
        with contextlib.closing(Connection(server.port)) as connection:
            for _ in range(TRIALS):
                status, _ = await connection.ask("POST /v2/repository/models/net/load HTTP/1.1")
                assert status == 200
                await load.grow(20)
        await load.end()
        print(load)
        assert not load.wrong and not load.lost and not load.refused and not load.unavailable

    with serving(onnx_file, *FLAGS, "--workers", workers) as server:
        asyncio.run(work(server))


@WORKERS
def test_ends_lose_no_request(onnx_file, workers):
    async def work(server):
        load = Load(server.port)
        await load.grow(100)
        server.process.terminate()
        await asyncio.to_thread(server.process.wait)
        await load.end()
        assert not load.wrong and not load.lost, load
        return load.right

    total = 0
    for _ in range(TRIALS):
        server = Server(onnx_file, *FLAGS, "--workers", str(workers))
        try:
            total += asyncio.run(work(server))
        finally:
            status = server.wait()
        assert status == 0
    print(f"{total} right answers")


# -- malformed requests --------------------------------------------------------------------

_WRONG = [None, -1, 1.5, "x", [], {}, True, [[]], "\x00", 1 << 70, [None], {"a": 1}]


def malformed(chosen):
    """A request with one fault: its head, and its body."""
    kind = chosen.randrange(9)
    infer = "POST /v2/models/net/infer HTTP/1.1"
    value = infer_body([[1.0, 2.0, 3.0, 4.0]])
    text = json.dumps(value).encode()
    if kind == 0:
        return infer, b"\xff" + chosen.randbytes(chosen.randrange(200))
    if kind == 1:
        return infer, text[: chosen.randrange(len(text) - 1)]
    if kind == 2:
        del value["inputs"][0][chosen.choice(["name", "shape", "datatype", "data"])]
    elif kind == 3:
        key, fits = chosen.choice([("name", str), ("shape", None), ("datatype", None), ("data", None)])
        value["inputs"][0][key] = chosen.choice([one for one in _WRONG if fits is None or type(one) is not fits])
    elif kind == 4:
        value[chosen.choice(["inputs", "outputs", "parameters", "id"])] = chosen.choice([None, -1, 1.5, True, [[]]])
    elif kind == 5:
        value["inputs"][0]["parameters"] = {"binary_data_size": chosen.choice([-1, 15, 17, "16", None, 1 << 70])}
    elif kind == 6:
        path = chosen.choice(
            ["nosuch/infer", "net/versions/7/infer", "net/infer/more", "%00/infer", "a/b/c", "net/nosuch"]
        )
        return f"POST /v2/models/{path} HTTP/1.1", text
    elif kind == 7:
        encoding = chosen.choice(["gzip", "deflate", "br", "gzip, gzip"])
        packed = gzip.compress(text)
        return f"{infer}\r\nContent-Encoding: {encoding}", packed[: chosen.randrange(len(packed) - 1)]
    else:
        path = chosen.choice(["generate", "generate_stream"])
        bad = chosen.choice([b"[]", b"1", b'{"y": 1}', b'{"x": "a"}', b'{"x": [[1, 2], [3]]}', b'{"x": {}}', b"{"])
        return f"POST /v2/models/net/{path} HTTP/1.1", bad
    return infer, json.dumps(value).encode()


@WORKERS
def test_malformed_requests(onnx_file, workers):
    seed = random.randrange(1 << 30)
    print(f"seed {seed}")
    chosen = random.Random(seed)
    statuses = {}

    async def work(server):
        with contextlib.closing(Connection(server.port)) as connection:
            for _ in range(200 * TRIALS):
                head, body = malformed(chosen)
                status, answer = await connection.ask(head, body)
                assert 400 <= status < 500, (head, body, status, answer)
                statuses[status] = statuses.get(status, 0) + 1

    with serving(onnx_file, *FLAGS, "--workers", workers) as server:
        asyncio.run(work(server))
        assert "Traceback" not in "".join(server.lines)
    print(statuses)
