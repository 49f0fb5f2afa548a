"""The application on Ray Serve: replicas that are killed and stopped while requests come."""

import asyncio
import http.client
import importlib.util
import json
import os
import pickle
import signal
import socket
import sys
import threading
import time
import warnings

import pytest

pytest.importorskip("starlette", reason="the extra 'serve' is missing")
pytest.importorskip("prometheus_client", reason="the extra 'serve' is missing")

from torchlite.serve import Settings
from torchlite.serve.ray import deployment

from .asgi_client import Client, expected, infer_body, write_onnx

HAS_RAY = importlib.util.find_spec("ray") is not None
on_ray = pytest.mark.skipif(not HAS_RAY, reason="ray is missing (tox -e ray)")
# Ray's processes and threads leave sockets and files to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")
CODE = """
import os
import time

import torch

class Whose(torch.nn.Module):
    # Answers the inputs' sums and the process; sleeps as long as the first input says.
    def forward(self, x):
        time.sleep(float(x[0, 0]))
        return {"sum": x.sum(dim=1), "pid": torch.full((len(x),), os.getpid())}
"""


def test_without_ray_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ImportError, match=r"torchlite-nd\[serve,ray\]"):
        deployment(Settings(models=("net.onnx",)))


@on_ray
@pytest.mark.parametrize(
    ("settings", "about"),
    [
        ({}, "name a model"),
        ({"models": ("m",), "port": 80}, "'port' is an option of Ray"),
        ({"models": ("m",), "grpc_port": -1}, "'grpc_port' is an option of Ray"),
        ({"models": ("m",), "tls_cert": "a", "tls_key": "b"}, "'tls_cert' is an option of Ray"),
    ],
)
def test_settings_that_are_rays_are_refused(settings, about, quietly):
    with pytest.raises(ValueError, match=about):
        deployment(Settings(**settings))


@pytest.fixture(scope="module")
def quietly():
    """Ray is imported; warnings of its packages are no errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from ray import serve  # noqa: F401
    return None


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("ray")
    write_onnx(place / "net.onnx")
    (place / "whose").mkdir()
    (place / "whose" / "code.py").write_text(CODE)
    (place / "whose" / "config.toml").write_text("factory = 'code:Whose'\nbatching = true\nmax_batch = 4\n")
    return place


@pytest.fixture(scope="module")
def cluster(quietly):
    """A cluster of this machine with Ray Serve; its port."""
    import ray
    from ray import serve

    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False)
        serve.start(http_options={"host": "127.0.0.1", "port": port})
        yield port
        serve.shutdown()
        ray.shutdown()


def start(folder, replicas, **options):
    from ray import serve

    settings = Settings(models=(str(folder),), allow_code=True, access_log=False)
    app = deployment(settings, num_replicas=replicas, health_check_period_s=1, ray_actor_options={"num_cpus": 0.5})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        serve.run(app, name="models", **options)


class Caller:
    """A client of the proxy that keeps its connection."""

    def __init__(self, port):
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def call(self, method, path, table=None, headers=()):
        body = None if table is None else json.dumps(table)
        try:
            self._connection.request(method, path, body, dict(headers))
            found = self._connection.getresponse()
            return found.status, found.read()
        except (OSError, http.client.HTTPException):
            self._connection.close()
            raise

    def pid(self):
        status, body = self.call("POST", "/v2/models/whose/generate", {"x": [[0.0, 1.0]]})
        return json.loads(body)["pid"] if status == 200 else None


def pids(port, count, without=(), seconds=240):
    """The processes that answer, once there are so many."""
    deadline = time.monotonic() + seconds
    while True:
        found = set()
        for _ in range(10):
            callers = [Caller(port) for _ in range(2)]
            found |= {caller.pid() for caller in callers} - {None}
        if len(found) == count and not found & set(without):
            return found
        assert time.monotonic() < deadline, f"{found} answer; wanted are {count} without {without}"
        time.sleep(0.5)


class Load:
    """Threads that ask, and what they were answered: wrong answers, other statuses, and the number of right ones."""

    def __init__(self, port, clients=6):
        self.right, self.wrong, self.refused = 0, [], []
        self._stop, self._lock = threading.Event(), threading.Lock()
        self._threads = [threading.Thread(target=self._work, args=(port, number)) for number in range(clients)]
        for thread in self._threads:
            thread.start()

    def _work(self, port, number):
        caller, turn = Caller(port), 0
        while not self._stop.is_set():
            turn += 1
            value = float(number * 1000 + turn % 997)
            for attempt in range(8):  # a request of a replica that was killed is repeated
                try:
                    status, body = caller.call("POST", "/v2/models/whose/generate", {"x": [[0.01, value]]})
                except (OSError, http.client.HTTPException) as error:
                    status, body = 0, repr(error)
                with self._lock:
                    if status != 200:
                        self.refused.append((attempt, status, body))
                    elif json.loads(body)["sum"] != pytest.approx(value + 0.01):
                        self.wrong.append((value, body))
                    else:
                        self.right += 1
                if status == 200:
                    break
                time.sleep(0.05 * 2**attempt)
            else:
                with self._lock:
                    self.wrong.append((value, "no answer in 8 attempts"))

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._stop.set()
        for thread in self._threads:
            thread.join()


@on_ray
def test_all_addresses_answer(cluster, folder):
    start(folder, 2)
    caller = Caller(cluster)
    rows = [[1.0, 2.0, 3.0, 4.0]]
    status, body = caller.call("POST", "/v2/models/net/infer", infer_body(rows))
    assert status == 200 and json.loads(body)["outputs"][0]["data"] == pytest.approx(expected(rows), abs=1e-6)
    for path in ("/", "/v2", "/v2/health/ready", "/v2/models/net", "/metrics", "/openapi.json", "/ping", "/models"):
        assert caller.call("GET", path)[0] == 200, path
    assert json.loads(caller.call("POST", "/predictions/net", rows[0:1])[1]) == [pytest.approx(expected(rows))]
    assert caller.call("GET", "/v2/models/nothing")[0] == 404
    assert caller.call("POST", "/v2/repository/models/net/unload")[0] == 403  # it would reach one replica alone


@on_ray
def test_a_route_with_a_prefix(cluster, folder):
    start(folder, 1, route_prefix="/some")
    caller = Caller(cluster)
    assert caller.call("GET", "/some/v2/models/net")[0] == 200
    status, body = caller.call("GET", "/some/predictions/nothing")
    assert status == 404 and json.loads(body)["type"] == "ModelNotFoundException"


@on_ray
def test_a_killed_replica_is_replaced_and_no_answer_is_wrong(cluster, folder):
    start(folder, 2)
    before = pids(cluster, 2)
    with Load(cluster) as load:
        time.sleep(1)
        victim = before.pop()
        os.kill(victim, signal.SIGKILL)
        after = pids(cluster, 2, without=[victim])
        time.sleep(1)
    print(f"{load.right} right answers, {len(load.refused)} repeated: {load.refused[:3]}")
    assert not load.wrong and load.right > 20
    assert before < after


@on_ray
def test_scaling_down_loses_nothing(cluster, folder):
    start(folder, 2)
    pids(cluster, 2)
    with Load(cluster) as load:
        time.sleep(1)
        start(folder, 1)
        pids(cluster, 1)
        time.sleep(1)
    print(f"{load.right} right answers")
    assert not load.wrong and not load.refused and load.right > 20


@on_ray
def test_requests_are_joined_in_a_replica(cluster, folder):
    """While one call sleeps, four requests wait, which the replica then computes at once."""
    start(folder, 1)
    callers = [Caller(cluster) for _ in range(5)]
    pids(cluster, 1)
    answers = []

    def ask(caller, seconds):
        answers.append(caller.call("POST", "/v2/models/whose/generate", {"x": [[seconds, 1.0]]})[0])

    threads = [threading.Thread(target=ask, args=(callers[0], 1.0))]
    threads[0].start()
    time.sleep(0.4)
    threads += [threading.Thread(target=ask, args=(caller, 0.0)) for caller in callers[1:]]
    for thread in threads[1:]:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [200] * 5
    _, body = callers[0].call("GET", "/v2/models/whose/stats")
    sizes = {one["batch_size"] for one in json.loads(body)["model_stats"][0]["batch_stats"]}
    assert 4 in sizes


def test_a_replica_is_healthy_while_its_models_are_loaded(onnx_file):
    from torchlite.serve.ray import _Application, _Replica

    app = pickle.loads(pickle.dumps(_Application(Settings(models=(onnx_file,), access_log=False))))
    replica = _Replica()
    replica.app = app

    async def main():
        with pytest.raises(RuntimeError, match="not loaded"):
            await replica.check_health()
        messages, states = asyncio.Queue(), asyncio.Queue()
        life = asyncio.create_task(app({"type": "lifespan"}, messages.get, states.put))
        await messages.put({"type": "lifespan.startup"})
        assert (await states.get())["type"] == "lifespan.startup.complete"
        await replica.check_health()
        assert (await Client(app).get("/v2/health/ready")).status == 200
        await messages.put({"type": "lifespan.shutdown"})
        await life
        with pytest.raises(RuntimeError, match="not loaded"):
            await replica.check_health()

    asyncio.run(main())
