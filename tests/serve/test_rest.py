"""REST endpoints of the Open Inference Protocol, through the ASGI application."""

import asyncio
import gzip
import json
import zlib

import numpy as np
import pytest

import torchlite as torch

pytest.importorskip("starlette", reason="the extra 'serve' is missing")
pytest.importorskip("prometheus_client", reason="the extra 'serve' is missing")

from .asgi_client import expected, infer_body, network, running, write_onnx

ROWS = [[1.0, 2.0, 3.0, 4.0], [0.5, 0.25, -1.0, 0.0]]


def with_client(work, *models, **options):
    """Run `work(client)` with an application of the models."""

    async def main():
        async with running(*models, **options) as client:
            return await work(client)

    return asyncio.run(main())


def test_state_and_metadata(onnx_file):
    async def work(client):
        assert (await client.get("/v2/health/live")).json == {"live": True}
        assert (await client.get("/v2/health/ready")).json == {"ready": True}
        about = (await client.get("/v2")).json
        assert about["name"] == "torchlite" and "binary_tensor_data" in about["extensions"]
        assert (await client.get("/v2/models/net/ready")).json == {"name": "net", "ready": True}
        assert (await client.get("/v2/models/net/versions/1")).json == {
            "name": "net",
            "versions": ["1"],
            "platform": "onnx_onnxv1",
            "inputs": [{"name": "x", "datatype": "FP32", "shape": [-1, 4]}],
            "outputs": [{"name": "y", "datatype": "FP32", "shape": [-1, 3]}],
        }

    with_client(work, onnx_file)


def test_before_the_models_are_loaded_none_is_unknown():
    """A load balancer repeats what got 503 elsewhere; 404 would be the client's answer."""
    from torchlite.serve import Settings, create_app

    from .asgi_client import Client

    async def work():
        client = Client(create_app(Settings(models=("net.onnx",), access_log=False)))
        answers = [await client.get("/v2/models/net"), await client.post("/v2/models/net/infer", infer_body(ROWS))]
        answers += [await client.get("/v2/health/ready"), await client.post("/predictions/net", [ROWS[0]])]
        assert [answer.status for answer in answers] == [503] * 4

    asyncio.run(work())


def test_infer_answers_as_the_network(onnx_file):
    async def work(client):
        found = (await client.post("/v2/models/net/infer", infer_body(ROWS, id="a"))).json
        output = found["outputs"][0]
        assert (found["model_name"], found["model_version"], found["id"]) == ("net", "1", "a")
        assert (output["name"], output["shape"], output["datatype"]) == ("y", [2, 3], "FP32")
        assert output["data"] == pytest.approx(expected(ROWS), abs=1e-6)
        assert "id" not in (await client.post("/v2/models/net/infer", infer_body(ROWS))).json

    with_client(work, onnx_file)


def test_binary_tensors(onnx_file):
    async def work(client):
        raw = np.array(ROWS, np.float32).tobytes()
        about = {"name": "x", "shape": [2, 4], "datatype": "FP32", "parameters": {"binary_data_size": len(raw)}}
        wish = {"name": "y", "parameters": {"binary_data": True}}
        head = json.dumps({"inputs": [about], "outputs": [wish]}).encode()
        length = {"inference_header_content_length": str(len(head))}
        answer = await client.post("/v2/models/net/infer", head + raw, **length)
        end = int(answer.headers["inference-header-content-length"])
        assert answer.headers["content-type"] == "application/octet-stream"
        output = json.loads(answer.body[:end])["outputs"][0]
        assert output["parameters"] == {"binary_data_size": 24} and "data" not in output
        assert np.frombuffer(answer.body[end:], "<f4").tolist() == pytest.approx(expected(ROWS), abs=1e-6)
        # The elements alone
        answer = await client.post("/v2/models/net/infer", raw, inference_header_content_length="0")
        end = int(answer.headers["inference-header-content-length"])
        assert np.frombuffer(answer.body[end:], "<f4").tolist() == pytest.approx(expected(ROWS), abs=1e-6)

    with_client(work, onnx_file)


@pytest.mark.parametrize(("name", "pack"), [("gzip", gzip.compress), ("deflate", zlib.compress)])
def test_compressed_bodies(onnx_file, name, pack):
    async def work(client):
        body = pack(json.dumps(infer_body(ROWS)).encode())
        assert (await client.post("/v2/models/net/infer", body, content_encoding=name)).status == 200
        bomb = pack(bytes(3 << 20))
        assert (await client.post("/v2/models/net/infer", bomb, content_encoding=name)).status == 413
        assert (await client.post("/v2/models/net/infer", body[:-6], content_encoding=name)).status == 400
        assert (await client.post("/v2/models/net/infer", b"x", content_encoding=name)).status == 400
        assert (await client.post("/v2/models/net/infer", b"x", content_encoding="br")).status == 415

    with_client(work, onnx_file, max_body_mb=1.0)


def body(**changes):
    about = {"name": "x", "shape": [1, 4], "datatype": "FP32", "data": [1, 2, 3, 4], **changes}
    return {"inputs": [{key: value for key, value in about.items() if value is not None}]}


WRONG = [
    (b"", 400, "no JSON"),
    (b"\xff", 400, "no UTF-8"),
    (b"[" * 100_000, 400, "too deeply"),
    (b"1" * 5000, 400, "no JSON"),
    ([], 400, "must be a JSON object"),
    ({}, 400, "'inputs' is missing"),
    ({"inputs": {}}, 400, "'inputs' must be a list"),
    ({"inputs": []}, 400, "input 'x' is missing"),
    ({"inputs": [1]}, 400, "must be an object"),
    ({"inputs": [{}]}, 400, "'name' is missing"),
    ({**body(), "id": 1}, 400, "'id' must be a text"),
    ({**body(), "parameters": []}, 400, "'parameters' must be an object"),
    ({**body(), "parameters": {"a": []}}, 400, "a parameter must be"),
    ({**body(), "parameters": {"timeout": -1}}, 400, "whole number of microseconds"),
    ({**body(), "parameters": {"binary_data_output": 1}}, 400, "must be true or false"),
    ({**body(), "outputs": [{"name": "z"}]}, 400, "no output 'z'; its outputs are y"),
    ({**body(), "outputs": [{"name": "y"}, {"name": "y"}]}, 400, "asked for twice"),
    ({**body(), "outputs": [{"name": "y", "parameters": {"classification": 1}}]}, 400, "no extension"),
    ({"inputs": body()["inputs"] * 2}, 400, "given twice"),
    (body(data=None), 400, "'data' is missing"),
    (body(name="z"), 400, "no input 'z'"),
    (body(shape=[4]), 400, "must have the shape"),
    (body(shape=[2, 4]), 400, "4 elements"),
    (body(shape=[1, 5], data=[1] * 5), 400, "must have the shape"),
    (body(datatype="FP64"), 400, "must be FP32, not FP64"),
    (body(datatype="INT128"), 400, "unknown datatype"),
    (body(shape=[2**40, 2**40]), 413, "over the limit"),
    (body(parameters={"binary_data_size": 16}), 400, "give one of them"),
    (body(data=None, parameters={"binary_data_size": 16}), 400, "0 bytes of the body are left"),
]


@pytest.mark.parametrize(("sent", "status", "text"), WRONG)
def test_wrong_requests_get_one_clear_error(onnx_file, sent, status, text):
    async def work(client):
        answer = await client.post("/v2/models/net/infer", sent)
        assert answer.status == status and list(answer.json) == ["error"] and text in answer.json["error"]

    with_client(work, onnx_file)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"inference_header_content_length": "x"}, 400),
        ({"inference_header_content_length": "-1"}, 400),
        ({"inference_header_content_length": "999999"}, 400),
        ({"inference_header_content_length": "5"}, 400),
        ({"inference_header_content_length": "0"}, 400),
        ({"request_timeout": "soon"}, 400),
        ({"request_timeout": "nan"}, 400),
        ({"content_length": "99999999999"}, 413),
    ],
)
def test_wrong_headers_are_refused(onnx_file, headers, status):
    async def work(client):
        assert (await client.post("/v2/models/net/infer", body(), **headers)).status == status

    with_client(work, onnx_file)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v2/models/nope", 404),
        ("GET", "/v2/models/net/versions/2", 404),
        ("GET", "/v2/models/nope/ready", 404),
        ("GET", "/v2/models/nope/stats", 404),
        ("POST", "/v2/models/nope/infer", 404),
        ("POST", "/v2/models/net/versions/2/infer", 404),
        ("POST", "/v2/repository/models/nope/load", 404),
        ("POST", "/v2/repository/models/nope/unload", 404),
        ("GET", "/v2/models/net/infer", 405),
        ("GET", "/v3", 404),
    ],
)
def test_unknown_names_and_methods(onnx_file, method, path, status):
    async def work(client):
        answer = await client.call(method, path, body() if method == "POST" and "infer" in path else b"")
        assert answer.status == status and list(answer.json) == ["error"]

    with_client(work, onnx_file)


def test_joined_requests_are_answered_as_alone(onnx_file):
    async def work(client):
        many = [[[float(n), 1.0, 0.5 * n, -1.0]] for n in range(40)]
        found = await asyncio.gather(*(client.post("/v2/models/net/infer", infer_body(rows)) for rows in many))
        for rows, answer in zip(many, found, strict=True):
            assert answer.json["outputs"][0]["data"] == pytest.approx(expected(rows), abs=1e-6)
        about = (await client.get("/v2/models/net/stats")).json["model_stats"][0]
        assert about["inference_count"] == 40 and about["execution_count"] < 40
        assert sum(b["batch_size"] * b["compute_infer"]["count"] for b in about["batch_stats"]) == 40
        assert about["inference_stats"]["success"]["count"] == 40

    with_client(work, onnx_file, max_batch=16)


def test_a_model_that_mixes_rows_is_called_alone_from_then_on(tmp_path):
    class Sums(torch.nn.Module):
        def forward(self, x):
            return x.sum(0, keepdim=True) + torch.zeros(1, 4)

    folder = tmp_path / "repo" / "sums"
    folder.mkdir(parents=True)
    write_onnx(folder / "model.onnx", Sums())
    (folder / "config.toml").write_text("batching = true\nmax_batch = 8\n")

    async def work(client):
        found = await asyncio.gather(
            *(client.post("/v2/models/sums/infer", infer_body([[float(n)] * 4])) for n in range(8))
        )
        assert [answer.json["outputs"][0]["data"] for answer in found] == [[float(n)] * 4 for n in range(8)]

    with_client(work, tmp_path / "repo")


def test_a_full_queue_answers_429(onnx_file):
    async def work(client):
        many = [client.post("/v2/models/net/infer", infer_body(ROWS)) for _ in range(20)]
        found = await asyncio.gather(*many)
        refused = [answer for answer in found if answer.status == 429]
        assert refused and all(int(answer.headers["retry-after"]) >= 1 for answer in refused)
        assert {answer.status for answer in found} == {200, 429}

    with_client(work, onnx_file, max_queue=1)


def test_bodies_together_are_bounded(onnx_file):
    async def work(client):
        large = json.dumps(infer_body(ROWS)).encode() + b" " * 600_000
        found = await asyncio.gather(*(client.post("/v2/models/net/infer", large) for _ in range(4)))
        assert sorted({answer.status for answer in found}) == [200, 429]
        assert (await client.post("/v2/models/net/infer", large)).status == 200

    with_client(work, onnx_file, max_body_mb=1.0, max_bodies_mb=1.0)


def test_plain_values_and_events(onnx_file):
    async def work(client):
        found = (await client.post("/v2/models/net/generate", {"id": "q", "x": ROWS})).json
        assert found["id"] == "q" and found["y"] == pytest.approx(expected(ROWS), abs=1e-6)
        answer = await client.post("/v2/models/net/generate_stream", {"x": ROWS[0]})
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert (
            answer.body.startswith(b"data: {") and answer.body.endswith(b"}\n\n") and answer.body.count(b"data:") == 1
        )
        for sent in ([], {"z": 1}, {"x": "a"}, {"x": {}}, {"x": [[1], 2]}, {"x": ROWS, "id": 1}, {}):
            for path in ("generate", "generate_stream"):
                assert (await client.post(f"/v2/models/net/{path}", sent)).status == 400

    with_client(work, onnx_file)


def test_repository(tmp_path):
    write_onnx(tmp_path / "net.onnx")
    folder = tmp_path / "versions"
    for version in ("1", "2", "10"):
        (folder / version).mkdir(parents=True)
        write_onnx(folder / version / "model.onnx")
    (folder / "config.toml").write_text("versions = ['2', 10]\n")

    async def work(client):
        found = (await client.post("/v2/repository/index")).json
        assert [(m["name"], m["version"], m["state"]) for m in found] == [
            ("net", "1", "READY"),
            ("versions", "2", "READY"),
            ("versions", "10", "READY"),
        ]
        assert (await client.get("/v2/models/versions")).json["versions"] == ["2", "10"]
        assert (await client.post("/v2/models/versions/infer", infer_body(ROWS))).json["model_version"] == "10"
        assert (await client.post("/v2/models/versions/versions/2/infer", infer_body(ROWS))).status == 200
        # Unload, and load again
        assert (
            await client.post("/v2/repository/models/net/unload", {"parameters": {"unload_dependents": False}})
        ).status == 200
        assert (await client.post("/v2/models/net/infer", infer_body(ROWS))).status == 404
        assert (await client.get("/v2/health/ready")).status == 200
        found = (await client.post("/v2/repository/index", {"ready": True})).json
        assert [m["name"] for m in found] == ["versions", "versions"]
        found = (await client.post("/v2/repository/index", b"")).json
        assert found[0] == {"name": "net", "version": "1", "state": "UNAVAILABLE", "reason": "unloaded"}
        assert (await client.post("/v2/repository/models/net/load", {})).status == 200
        assert (await client.post("/v2/models/net/infer", infer_body(ROWS))).status == 200
        # A new file, and a damaged one: what was loaded goes on
        write_onnx(tmp_path / "later.onnx")
        assert (await client.post("/v2/repository/models/later/load")).status == 200
        assert (await client.post("/v2/models/later/infer", infer_body(ROWS))).status == 200
        (tmp_path / "later.onnx").write_bytes(b"damaged")
        answer = await client.post("/v2/repository/models/later/load")
        assert answer.status == 400 and "cannot be loaded" in answer.json["error"]
        assert (await client.post("/v2/models/later/infer", infer_body(ROWS))).status == 200
        for sent in ([], {"parameters": {"config": "{}"}}, {"parameters": 1}, b"x"):
            assert (await client.post("/v2/repository/models/net/load", sent)).status == 400
            assert (await client.post("/v2/repository/models/net/unload", sent)).status == 400
        assert (await client.post("/v2/repository/index", {"ready": 1})).status == 400

    with_client(work, tmp_path)


def test_a_fixed_repository(onnx_file):
    async def work(client):
        for path in ("load", "unload"):
            assert (await client.post(f"/v2/repository/models/net/{path}")).status == 403
        assert (await client.post("/v2/repository/index")).status == 200

    with_client(work, onnx_file, management=False)


def test_reloads_fail_no_request(onnx_file):
    async def work(client):
        ended = asyncio.Event()
        statuses = []

        async def ask():
            while not ended.is_set():
                statuses.append((await client.post("/v2/models/net/infer", infer_body(ROWS))).status)

        asking = [asyncio.ensure_future(ask()) for _ in range(4)]
        for _ in range(5):
            assert (await client.post("/v2/repository/models/net/load")).status == 200
        ended.set()
        await asyncio.gather(*asking)
        assert len(statuses) > 10 and set(statuses) == {200}

    with_client(work, onnx_file, max_batch=4)


def test_torchscript_takes_any_input(tmp_path):
    torch.jit.save(torch.jit.trace(network(), (torch.ones(1, 4),)), str(tmp_path / "script.pt"))

    async def work(client):
        sent = {"inputs": [{**infer_body(ROWS)["inputs"][0], "name": "input"}]}
        found = (await client.post("/v2/models/script/infer", sent)).json["outputs"][0]
        assert found["name"] == "output_0" and found["data"] == pytest.approx(expected(ROWS), abs=1e-6)
        sent["inputs"][0] |= {"shape": [2, 5], "data": [1] * 10}
        answer = await client.post("/v2/models/script/infer", sent)
        assert answer.status == 400 and "cannot compute with these inputs" in answer.json["error"]

    with_client(work, tmp_path / "script.pt")


def test_pages_and_figures(onnx_file):
    async def work(client):
        await client.post("/v2/models/net/infer", infer_body(ROWS))
        await client.post("/v2/models/net/infer", body(shape=[4]))
        page = (await client.get("/")).body.decode()
        assert "net" in page and "READY" in page and "The server is ready" in page
        text = (await client.get("/metrics")).body.decode()
        assert 'torchlite_requests_total{model="net",protocol="rest",status="200",version="1"} 1.0' in text
        assert 'torchlite_stage_seconds_count{model="net",stage="compute_infer",version="1"} 1.0' in text
        assert 'torchlite_errors_total{model="net",reason="invalid"} 1.0' in text
        assert 'torchlite_queue_length{model="net",version="1"} 0.0' in text and "torchlite_ready 1.0" in text
        assert (await client.get("/openapi.json")).json["openapi"].startswith("3.")

    with_client(work, onnx_file)


def test_traceparent_comes_back(onnx_file):
    async def work(client):
        trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
        assert (await client.get("/v2", traceparent=trace)).headers["traceparent"] == trace
        assert "traceparent" not in (await client.get("/v2", traceparent="00-x")).headers

    with_client(work, onnx_file)


def test_access_log(onnx_file, capsys):
    async def work(client):
        await client.get("/v2/models/net/ready")

    with_client(work, onnx_file, access_log=True)
    line = json.loads(capsys.readouterr().out)
    assert (line["method"], line["path"], line["status"], line["model"]) == ("GET", "/v2/models/net/ready", 200, "net")
