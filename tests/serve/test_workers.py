"""Worker processes: answers, shared memory, deaths, replacements, and the ends of a model and of the server."""

import asyncio
import contextlib
import http.client
import json
import os
import re
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

import torchlite as torch

pytest.importorskip("starlette", reason="the extra 'serve' is missing")
pytest.importorskip("uvicorn", reason="the extra 'serve' is missing")
pytest.importorskip("prometheus_client", reason="the extra 'serve' is missing")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="workers need Linux")

from torchlite_backends.cc import cxx_compiler

from .asgi_client import expected, infer_body, running, write_onnx
from .server_process import Server, serving

ROWS = [[1.0, 2.0, 3.0, 4.0], [0.5, 0.25, -1.0, 0.0]]
CODE = """
import os
import pathlib
import random
import sys
import time
import torch

class Act(torch.nn.Module):
    '''Does what its input says.'''
    def forward(self, x):
        number = float(x.reshape(-1)[0])
        if number == -1:
            os._exit(7)
        if number == -2:
            sys.exit(3)
        if number == -3:
            raise KeyError("a bad one")
        if number == -4:
            return {"random": torch.rand(1), "process": torch.tensor([os.getpid()])}
        if number == -5:
            return {"threads": torch.tensor([torch.get_num_threads()])}
        time.sleep(number)
        return {"process": torch.tensor([os.getpid()])}

class Words(torch.nn.Module):
    def forward(self, n):
        for word in range(int(n[0])):
            if word == 3 and int(n[0]) == 5:
                os._exit(7)
            yield {"word": [f"w{word}"]}
"""
HANDLER = """
import os
import time

class Handler:
    def initialize(self, context):
        self.born = os.getpid()
        context.metrics.add_counter("loads", 1)

    def handle(self, data, context):
        context.metrics.add_counter("rows", len(data))
        context.set_response_header(0, "x-process", os.getpid())
        word = bytes(data[0]["body"]).decode()
        if word == "parts":
            for part in range(3):
                context.send_parts([f"part{part} "] * len(data))
            return ["end"] * len(data)
        if word == "lock":
            import threading
            return [threading.Lock()]
        if word == "sleep":
            time.sleep(0.4)
        return [{"word": word, "born_here": self.born == os.getpid()}] * len(data)
"""


def with_client(work, *models, workers=2, **options):
    async def main():
        async with running(*models, workers=workers, **options) as client:
            return await work(client)

    return asyncio.run(main())


def write_model(folder, code, config):
    folder.mkdir()
    (folder / "code.py").write_text(code)
    (folder / "config.toml").write_text(config)
    return folder


@pytest.fixture
def act(tmp_path):
    return write_model(tmp_path / "act", CODE, "factory = 'code:Act'\n")


@pytest.fixture
def words(tmp_path):
    return write_model(tmp_path / "words", CODE, "factory = 'code:Words'\n")


@pytest.fixture
def handler(tmp_path):
    return write_model(tmp_path / "handled", HANDLER, "handler = 'code'\n")


async def ask(client, number, name="act", **headers):
    return await client.post(f"/v2/models/{name}/generate", {"x": float(number)}, **headers)


async def figure(client, name):
    text = (await client.get("/metrics")).body.decode()
    found = re.search(rf"^{re.escape(name)}(?:\{{[^}}]*\}})? ([0-9.e+-]+)$", text, re.MULTILINE)
    return float(found[1]) if found else 0.0


async def is_ready(client):
    return (await client.get("/v2/health/ready")).status == 200


async def wait_for(condition, seconds=30.0):
    end = time.monotonic() + seconds
    while not await condition():
        assert time.monotonic() < end
        await asyncio.sleep(0.01)


def is_running(process):
    try:
        with open(f"/proc/{process}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def children_of(process):
    """All processes below one."""
    found = []
    for name in filter(str.isdecimal, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            with open(f"/proc/{name}/stat") as stat:
                if int(stat.read().rpartition(")")[2].split()[1]) == process:
                    found += [int(name), *children_of(int(name))]
    return found


# -- answers -------------------------------------------------------------------------------


def test_the_answers_are_the_models(onnx_file):
    async def work(client):
        found = await asyncio.gather(
            *(client.post("/v2/models/net/infer", infer_body(ROWS, id=str(n))) for n in range(20))
        )
        for number, answer in enumerate(found):
            assert answer.status == 200 and answer.json["id"] == str(number)
            assert answer.json["outputs"][0]["data"] == pytest.approx(expected(ROWS), abs=1e-6)
        wrong = await client.post("/v2/models/net/infer", {"inputs": []})
        assert wrong.status == 400
        assert (await client.get("/v2/models/net")).json["inputs"][0]["name"] == "x"
        assert await figure(client, "torchlite_workers") == 2

    with_client(work, onnx_file, max_batch=4)


def test_large_arrays_go_through_shared_memory(onnx_file):
    rows = torch.randn(20_000, 4, generator=torch.Generator().manual_seed(0)).tolist()

    async def work(client):
        answer = await client.post("/v2/models/net/infer", infer_body(rows))
        assert answer.json["outputs"][0]["data"] == pytest.approx(expected(rows), abs=1e-5)

    with_client(work, onnx_file)


def test_calls_run_in_several_processes_at_the_same_time(act):
    async def work(client):
        start = time.monotonic()
        found = await asyncio.gather(*(ask(client, 0.5) for _ in range(3)))
        assert len({answer.json["process"] for answer in found}) == 3
        assert time.monotonic() - start < 1.4
        assert os.getpid() not in {answer.json["process"] for answer in found}

    with_client(work, act, workers=3, allow_code=True)


def test_errors_of_a_models_code(act):
    async def work(client):
        answer = await ask(client, -3)
        assert answer.status == 500 and "KeyError" in answer.json["error"]
        assert (await ask(client, 0.0)).status == 200
        assert await figure(client, "torchlite_worker_deaths_total") == 0

    with_client(work, act, allow_code=True)


def test_rows_that_depend_on_each_other_are_not_joined_again(tmp_path):
    code = "import torch\nclass Sum(torch.nn.Module):\n    def forward(self, x):\n        return x.sum().reshape(1)\n"
    folder = write_model(
        tmp_path / "sum", code, "factory = 'code:Sum'\nbatching = true\nmax_batch = 4\ndelay_ms = 50\n"
    )

    async def work(client):
        for _ in range(2):
            found = await asyncio.gather(*(client.post("/v2/models/sum/generate", {"x": [n, n]}) for n in (1.0, 2.0)))
            assert [answer.json["output_0"] for answer in found] == [2.0, 4.0]
        assert (await client.get("/v2/models/sum/stats")).json["model_stats"][0]["batch_stats"][-1]["batch_size"] == 2

    with_client(work, folder, allow_code=True)


def test_workers_have_their_own_random_numbers(act):
    async def work(client):
        found = [await asyncio.gather(*(ask(client, -4) for _ in range(3))) for _ in range(3)]
        values = [answer.json["random"] for answers in found for answer in answers]
        assert len(set(values)) == len(values)

    with_client(work, act, workers=3, allow_code=True)


def test_processors_are_shared_out(act, monkeypatch):
    async def work(client):
        return (await ask(client, -5)).json["threads"]

    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    cores = len(os.sched_getaffinity(0))
    assert with_client(work, act, workers=1, allow_code=True) == cores
    assert with_client(work, act, workers=2, allow_code=True) == max(cores // 2, 1)
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert with_client(work, act, workers=2, allow_code=True) == 3


def test_streams(words):
    async def work(client):
        answer = await client.post("/v2/models/words/generate_stream", {"n": 4})
        found = [json.loads(part[6:])["word"] for part in answer.body.split(b"\n\n") if part]
        assert found == [f"w{n}" for n in range(4)]
        with contextlib.suppress(Exception):
            await client.call("POST", "/v2/models/words/generate_stream", {"n": 1_000_000}, cut=0.1)
        answer = await client.post("/v2/models/words/generate_stream", {"n": 1}, **{"Request-Timeout": "20"})
        assert answer.status == 200 and b"w0" in answer.body
        assert await figure(client, "torchlite_worker_deaths_total") == 0

    with_client(work, words, workers=1, allow_code=True)


def test_texts(tmp_path):
    code = Path(__file__).with_name("letters.py").read_text()
    model = write_model(tmp_path / "letters", code, "factory = 'code:Letters'\n")
    asked = {"model": "letters", "prompt": "the", "max_tokens": 8, "temperature": 0}

    async def work(client):
        whole = (await client.post("/v1/completions", asked)).json
        assert whole["usage"]["completion_tokens"] == 8
        streamed = await client.post("/v1/completions", {**asked, "stream": True})
        parts = [json.loads(part[6:]) for part in streamed.body.split(b"\n\n") if part and b"[DONE]" not in part]
        assert "".join(part["choices"][0]["text"] for part in parts) == whole["choices"][0]["text"]
        with contextlib.suppress(Exception):  # the client leaves, and the one worker is free again
            await client.call("POST", "/v1/completions", {**asked, "max_tokens": 100_000, "stream": True}, cut=0.1)
        assert (await client.post("/v1/completions", asked)).json["choices"] == whole["choices"]
        assert await figure(client, "torchlite_worker_deaths_total") == 0

    with_client(work, model, workers=1, allow_code=True)


def test_a_death_within_a_stream_is_its_last_event(words):
    async def work(client):
        answer = await client.post("/v2/models/words/generate_stream", {"n": 5})
        events = [json.loads(part[6:]) for part in answer.body.split(b"\n\n") if part]
        assert [event.get("word") for event in events] == ["w0", "w1", "w2", None] and "ended" in events[-1]["error"]
        assert (await client.post("/v2/models/words/generate_stream", {"n": 1})).status == 200

    with_client(work, words, workers=1, allow_code=True)


def test_a_death_does_not_overtake_what_was_sent_before(words):
    async def work(client):
        streamed = asyncio.ensure_future(client.post("/v2/models/words/generate_stream", {"n": 5}))
        for _ in range(20):  # until the worker has the request
            await asyncio.sleep(0)
        time.sleep(0.5)  # the parts and the news of the death wait together
        assert (await streamed).body.count(b'"word"') == 3

    with_client(work, words, workers=1, allow_code=True)


def test_handlers(handler):
    async def work(client):
        found = await asyncio.gather(*(client.post("/predictions/handled", b"sleep") for _ in range(2)))
        assert len({answer.headers["x-process"] for answer in found}) == 2
        assert all(answer.json == {"word": "sleep", "born_here": True} for answer in found)
        assert (await client.post("/predictions/handled", b"parts")).parts[:3] == [b"part0 ", b"part1 ", b"part2 "]
        answer = await client.post("/predictions/handled", b"lock")
        assert answer.status == 500 and "cannot leave the worker process" in answer.json["message"]
        text = (await client.get("/metrics")).body.decode()
        assert 'torchlite_handler_figure{model="handled",name="rows",unit="count"} 1.0' in text
        assert 'name="loads"' in text
        workers = (await client.get("/models/handled")).json[0]["workers"]
        assert {str(one["pid"]) for one in workers} == {answer.headers["x-process"] for answer in found}

    with_client(work, handler, allow_code=True)


def test_code_takes_the_flag(handler):
    with pytest.raises(ValueError, match="allow-code"):
        with_client(is_ready, handler)


# -- memory --------------------------------------------------------------------------------


def write_large_onnx(path):
    torch.manual_seed(0)
    return write_onnx(path, torch.nn.Sequential(torch.nn.Linear(4, 1600), torch.nn.Linear(1600, 6400)).eval())


def memory_after_calls(model, workers, **options):
    async def work(client):
        rows = [[1.0, 2.0, 3.0, 4.0]]
        for _ in range(3):
            found = await asyncio.gather(
                *(client.post("/v2/models/net/infer", infer_body(rows)) for _ in range(2 * workers))
            )
            assert all(answer.status == 200 for answer in found)
        return await figure(client, "torchlite_workers_memory_bytes")

    return with_client(work, model, workers=workers, **options)


def test_weights_are_in_memory_once(tmp_path):
    model = write_large_onnx(tmp_path / "net.onnx")
    size = os.path.getsize(model)
    assert size > 40_000_000
    more = memory_after_calls(model, 4) - memory_after_calls(model, 1)
    assert more < 1.2 * size  # of three workers more, which would be three times it without sharing


@pytest.mark.skipif(bool(cxx_compiler.why_not()), reason=cxx_compiler.why_not() or "there is a compiler")
def test_what_compiled_kernels_make_of_weights_is_in_memory_once(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHLITE_CPU_KERNELS", "cc")
    model = write_large_onnx(tmp_path / "net.onnx")

    async def work(client):
        before = await figure(client, "torchlite_workers_memory_bytes")
        body = infer_body([[1.0, 2.0, 3.0, 4.0]] * 6)
        for _ in range(30):  # such a size gets a program of its own meanwhile
            found = await asyncio.gather(*(client.post("/v2/models/net/infer", body) for _ in range(2)))
            assert all(answer.status == 200 for answer in found)
        return await figure(client, "torchlite_workers_memory_bytes") - before

    assert with_client(work, model, workers=2, max_batch=6) < 0.7 * os.path.getsize(model)


# -- deaths --------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [-1, -2])
def test_a_worker_that_ends_answers_503_and_is_replaced(act, number):
    async def work(client):
        first = (await ask(client, 0.0)).json["process"]
        waiting = [asyncio.ensure_future(ask(client, n)) for n in (number, 0.0, 0.0)]
        answers = await asyncio.gather(*waiting)
        assert answers[0].status == 503 and int(answers[0].headers["retry-after"]) >= 1
        assert "ended before the answer" in answers[0].json["error"]
        assert [answer.status for answer in answers[1:]] == [200, 200]
        assert first not in {answer.json["process"] for answer in answers[1:]}
        assert await figure(client, "torchlite_worker_deaths_total") == 1
        assert await is_ready(client)
        text = (await client.get("/metrics")).body.decode()
        assert 'torchlite_errors_total{model="act",reason="worker"} 1.0' in text

    with_client(work, act, workers=1, allow_code=True)


def test_killed_workers_under_load_lose_no_request(onnx_file):
    async def work(client):
        statuses, stop = [], False

        async def load():
            while not stop:
                answer = await client.post("/v2/models/net/infer", infer_body(ROWS))
                statuses.append(answer.status)
                if answer.status == 200:
                    assert answer.json["outputs"][0]["data"] == pytest.approx(expected(ROWS), abs=1e-6)
                else:
                    assert "retry-after" in answer.headers

        loads = [asyncio.ensure_future(load()) for _ in range(8)]
        for _ in range(3):
            deaths = await figure(client, "torchlite_worker_deaths_total")
            workers = (await client.get("/models/net")).json[0]["workers"]
            os.kill(workers[0]["pid"], signal.SIGKILL)

            async def is_replaced(before=deaths):
                return (
                    await figure(client, "torchlite_worker_deaths_total") > before
                    and await figure(client, "torchlite_workers") == 2
                )

            await wait_for(is_replaced)
            count = len(statuses)

            async def goes_on(before=count):
                return len(statuses) > before + 20

            await wait_for(goes_on)
        stop = True
        await asyncio.gather(*loads)
        assert set(statuses) <= {200, 503} and statuses.count(503) <= 3 * 4

    with_client(work, onnx_file, max_batch=4)


def test_crash_loops_back_off_and_end_in_unready(act):
    async def work(client):
        for _ in range(5):
            assert (await ask(client, -1)).status == 503
        assert not await is_ready(client)
        assert (await client.get("/v2/models/act/ready")).status == 503
        index = (await client.post("/v2/repository/index")).json
        assert index[0]["state"] == "UNAVAILABLE" and "worker process" in index[0]["reason"]
        start = time.monotonic()
        refused = await ask(client, 0.0)
        while refused.status == 503:
            assert int(refused.headers["retry-after"]) >= 1 and time.monotonic() < start + 30
            await asyncio.sleep(0.05)
            refused = await ask(client, 0.0)
        assert refused.status == 200 and await is_ready(client)

    with_client(work, act, workers=1, allow_code=True)


def test_a_worker_that_hangs_is_replaced(act):
    async def work(client):
        start = time.monotonic()
        answer = await ask(client, 60.0)
        assert answer.status == 504 and "was stopped" in answer.json["error"]
        assert time.monotonic() - start < 30
        assert (await ask(client, 0.0)).status == 200

    with_client(work, act, workers=1, worker_timeout=0.5, allow_code=True)


def test_a_stopped_process_hangs_too(onnx_file):
    async def work(client):
        process = (await client.get("/models/net")).json[0]["workers"][0]["pid"]
        os.kill(process, signal.SIGSTOP)
        assert (await client.post("/v2/models/net/infer", infer_body(ROWS))).status == 504
        assert (await client.post("/v2/models/net/infer", infer_body(ROWS))).status == 200
        assert not is_running(process)

    with_client(work, onnx_file, workers=1, worker_timeout=0.5)


def test_the_template_can_die(act):
    async def work(client):
        (template,) = [one for one in children_of(os.getpid()) if is_template(one)]
        os.kill(template, signal.SIGKILL)
        assert (await ask(client, 0.0)).status == 200
        assert (await ask(client, -1)).status == 503
        assert (await ask(client, 0.0)).status == 200

    with_client(work, act, workers=1, allow_code=True)


def is_template(process):
    with contextlib.suppress(OSError), open(f"/proc/{process}/stat") as stat:
        return int(stat.read().rpartition(")")[2].split()[1]) == os.getpid()
    return False


def test_loading_that_starts_threads_is_done_in_each_worker(tmp_path):
    code = (
        "import os, threading, time, torch\n"
        "threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()\n"
        "HERE = os.getpid()\n"
        "class Act(torch.nn.Module):\n"
        "    def forward(self, x):\n"
        "        return {'here': torch.tensor([HERE == os.getpid() and threading.active_count() > 1])}\n"
    )
    folder = write_model(tmp_path / "act", code, "factory = 'code:Act'\n")

    async def work(client):
        assert (await ask(client, 0.0)).json["here"] is True

    with_client(work, folder, allow_code=True)
    (folder / "config.toml").write_text("factory = 'code:Act'\npreload = true\n")
    with pytest.raises(ValueError, match="preload is true, and loading started threads"):
        with_client(work, folder, allow_code=True)


@pytest.mark.parametrize("preload", ["true", "false"])
def test_a_model_that_cannot_be_loaded(tmp_path, preload):
    code = "def Act():\n    raise LookupError('no such weights')\n"
    folder = write_model(tmp_path / "act", code, f"factory = 'code:Act'\npreload = {preload}\n")
    before = children_of(os.getpid())
    with pytest.raises(ValueError, match="no such weights"):
        with_client(is_ready, folder, allow_code=True)
    (folder / "code.py").write_text("import os\ndef Act():\n    os._exit(5)\n")
    with pytest.raises(RuntimeError, match="ended"):
        with_client(is_ready, folder, allow_code=True)
    assert children_of(os.getpid()) == before


# -- the lives of models and of the server -------------------------------------------------


def test_reload_and_unload(onnx_file):
    async def work(client):
        statuses, stop = [], False

        async def load():
            while not stop:
                statuses.append((await client.post("/v2/models/net/infer", infer_body(ROWS))).status)

        loads = [asyncio.ensure_future(load()) for _ in range(4)]
        before = (await client.get("/models/net")).json[0]["workers"]
        for _ in range(2):
            assert (await client.post("/v2/repository/models/net/load")).status == 200
        after = (await client.get("/models/net")).json[0]["workers"]
        stop = True
        await asyncio.gather(*loads)
        assert set(statuses) == {200} and len(statuses) > 4
        assert not {one["pid"] for one in before} & {one["pid"] for one in after}
        assert not any(is_running(one["pid"]) for one in before)
        assert (await client.post("/v2/repository/models/net/unload")).status == 200
        assert not any(is_running(one["pid"]) for one in after)
        assert (await client.post("/v2/models/net/infer", infer_body(ROWS))).status == 404

    before = children_of(os.getpid())
    with_client(work, onnx_file)
    assert children_of(os.getpid()) == before


def test_the_number_of_workers_can_be_changed(act):
    async def work(client):
        for count in (1, 3, 2):
            assert (await client.call("PUT", f"/models/act?min_worker={count}")).status == 200

            async def has_so_many(wanted=count):
                return await figure(client, "torchlite_workers") == wanted

            await wait_for(has_so_many)
            found = await asyncio.gather(*(ask(client, 0.3) for _ in range(count)))
            assert len({answer.json["process"] for answer in found}) == count
        answer = await client.call("PUT", "/models/act?min_worker=4")
        assert answer.status == 400 and "--workers" in answer.json["message"]

    with_client(work, act, workers=3, allow_code=True)


def test_a_models_own_number_of_workers(act):
    async def work(client):
        assert await figure(client, "torchlite_workers") == 1

    (act / "config.toml").write_text("factory = 'code:Act'\nworkers = 1\n")
    with_client(work, act, workers=2, allow_code=True)


def test_what_is_asked_is_answered_after_sigterm_and_no_process_stays(act):
    server = Server(str(act), "--allow-code", "--workers", "2")
    processes = children_of(server.process.pid)
    assert len(processes) >= 3
    answers = []

    def ask_slowly():
        answers.append(server.request("POST", "/v2/models/act/generate", b'{"x": 1.0}'))

    threads = [threading.Thread(target=ask_slowly) for _ in range(2)]
    for thread in threads:
        thread.start()
    time.sleep(0.4)
    for process in [server.process.pid, *processes]:  # as systemd and Ctrl-C do
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGTERM)
    for thread in threads:
        thread.join()
    assert [answer.status for answer in answers] == [200, 200]
    assert server.wait() == 0
    assert not any(map(is_running, processes))
    assert "Traceback" not in "".join(server.lines)


@pytest.mark.parametrize("busy", [False, True])
def test_no_process_outlives_a_killed_server(act, busy):
    server = Server(str(act), "--allow-code", "--workers", "2")
    processes = children_of(server.process.pid)
    if busy:
        connection = http.client.HTTPConnection("127.0.0.1", server.port)
        connection.request("POST", "/v2/models/act/generate", b'{"x": 600.0}')
        time.sleep(0.3)
    server.process.kill()
    server.process.wait()
    end = time.monotonic() + 30
    while any(map(is_running, processes)) and time.monotonic() < end:
        time.sleep(0.02)
    assert not any(map(is_running, processes))
    server.wait()
    if busy:
        connection.close()


def test_grpc_of_a_dead_worker(act):
    grpc = pytest.importorskip("grpc", reason="the extra 'serve' is missing")
    from torchlite.serve._grpc_messages import SERVICE, messages

    with serving(act, "--allow-code", "--workers", "1") as server:
        with grpc.insecure_channel(f"127.0.0.1:{server.grpc_port}") as channel:
            call = channel.unary_unary(
                f"/{SERVICE}/ModelInfer",
                request_serializer=messages.ModelInferRequest.SerializeToString,
                response_deserializer=messages.ModelInferResponse.FromString,
            )

            def infer(number):
                tensor = {"name": "x", "datatype": "FP32", "shape": [1], "contents": {"fp32_contents": [number]}}
                return call(messages.ModelInferRequest(model_name="act", inputs=[tensor]), timeout=30)

            assert infer(0.0).outputs[0].name == "process"
            with pytest.raises(grpc.RpcError) as error:
                infer(-1.0)
            assert error.value.code() is grpc.StatusCode.UNAVAILABLE
            assert infer(0.0).outputs[0].name == "process"
    assert any("has ended with status 7" in line for line in server.lines)
