"""TorchServe's inference and management API, handlers and archives."""

import asyncio
import json
import zipfile

import pytest

import torchlite as torch

pytest.importorskip("starlette", reason="the extra 'serve' is missing")
pytest.importorskip("prometheus_client", reason="the extra 'serve' is missing")

from .asgi_client import expected, network, running, write_onnx
from .server_process import RemoteClient, serving

ROWS = [[1.0, 2.0, 3.0, 4.0], [0.5, 0.25, -1.0, 0.0]]
JSON = {"content_type": "application/json"}

MODEL_FILE = """
import torch
class Net(torch.nn.Sequential):
    def __init__(self):
        super().__init__(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
"""
HANDLER = """
import torch
from ts.torch_handler.base_handler import BaseHandler
import words

class Handler(BaseHandler):
    def preprocess(self, data):
        return torch.tensor([one["body"] for one in data], device=self.device)

    def postprocess(self, data):
        self.context.metrics.add_counter("rows", len(data))
        return [words.label(row.tolist(), self.mapping) for row in data]
"""


def with_client(work, *models, **options):
    async def main():
        async with running(*models, **options) as client:
            return await work(client)

    return asyncio.run(main())


def with_code(work, *words):
    """Run `work(client)` with a server of its own process, in which handlers import torchlite as `torch`."""
    with serving(*words, "--allow-code") as server:
        asyncio.run(work(RemoteClient(server)))
    assert not any("Traceback" in line for line in server.lines)


def write_archive(path, about, files, names=None):
    """Write an archive as torch-model-archiver does."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
        manifest = {"createdOn": "", "runtime": "python", "model": about, "archiverVersion": "0.12.0"}
        archive.writestr("MAR-INF/MANIFEST.json", json.dumps(manifest))
    return path


@pytest.fixture
def archive(tmp_path):
    """An archive with a handler, a model file, weights and words."""
    torch.save(network().state_dict(), tmp_path / "weights.pt")
    files = {
        "model.py": MODEL_FILE,
        "handler.py": HANDLER,
        "words.py": "def label(row, mapping):\n    return {mapping[str(row.index(max(row)))]: max(row)}\n",
        "weights.pt": (tmp_path / "weights.pt").read_bytes(),
        "index_to_name.json": '{"0": "a", "1": "b", "2": "c"}',
    }
    about = {
        "modelName": "mine",
        "modelVersion": "2.0",
        "handler": "handler.py",
        "modelFile": "model.py",
        "serializedFile": "weights.pt",
    }
    store = tmp_path / "store"
    store.mkdir()
    return write_archive(store / "mine.mar", about, files)


def labelled(row):
    values = expected([row])
    return {"abc"[values.index(max(values))]: pytest.approx(max(values), abs=1e-6)}


def test_an_archive_answers_through_its_handler(archive):
    async def work(client):
        assert (await client.get("/ping")).json == {"status": "Healthy"}
        answers = await asyncio.gather(*(client.post("/predictions/mine", row, **JSON) for row in ROWS * 3))
        assert [answer.json for answer in answers] == [labelled(row) for row in ROWS * 3]
        assert answers[0].headers["model-version"] == "2.0" and answers[0].headers["x-request-id"]
        assert (await client.post("/predictions/mine/2.0", ROWS[0], **JSON)).json == labelled(ROWS[0])
        figures = (await client.get("/metrics")).body.decode()
        assert 'torchlite_handler_figure{model="mine",name="rows",unit="count"}' in figures
        answer = await client.post("/predictions/mine", [1.0], **JSON)
        assert answer.status == 500 and answer.json["type"] == "InternalServerException"
        answer = await client.post("/v2/models/mine/infer", {"inputs": []})
        assert answer.status == 400 and "/predictions/mine" in answer.json["error"]

    with_code(work, archive, "--max-batch", "4")


def test_code_of_an_archive_needs_the_flag(archive):
    with pytest.raises(ValueError, match="handler 'handler.py' of model 'mine' is code .* --allow-code"):
        with_client(None, archive)


def test_an_archive_without_code_needs_no_flag(tmp_path):
    torch.jit.save(torch.jit.trace(network(), (torch.ones(1, 4),)), str(tmp_path / "net.pt"))
    about = {"modelName": "plain", "modelVersion": "1.0", "handler": "base_handler", "serializedFile": "net.pt"}
    path = write_archive(tmp_path / "plain.mar", about, {"net.pt": (tmp_path / "net.pt").read_bytes()})

    async def work(client):
        found = (await client.post("/predictions/plain", ROWS, **JSON)).json
        assert [n for row in found for n in row] == pytest.approx(expected(ROWS), abs=1e-6)

    with_client(work, path)


@pytest.mark.parametrize("name", ["../out.py", "/out.py", "a/../../out.py", "C:out.py", "a\\out.py"])
def test_names_that_lead_out_of_an_archive_are_refused(tmp_path, name):
    about = {"modelName": "bad", "handler": "base_handler", "serializedFile": "net.pt"}
    path = write_archive(tmp_path / "bad.mar", about, {name: "x"})
    with pytest.raises(ValueError, match="leads out of the archive"):
        with_client(None, path)
    assert not (tmp_path.parent / "out.py").exists()


def folder_with(tmp_path, code, name="made", config="handler = 'handler'"):
    folder = tmp_path / name
    folder.mkdir()
    (folder / "handler.py").write_text(code)
    (folder / "config.toml").write_text(config)
    return folder


def test_a_function_and_what_it_gets(tmp_path):
    code = """
def handle(data, context):
    if data is None:
        return None
    context.set_response_header(0, "x-seen", context.get_request_header(0, "X-Word") or "none")
    return [{key: value.decode() if hasattr(value, "decode") else value for key, value in one.items()} for one in data]
"""

    async def work(client):
        answer = await client.post("/predictions/made?a=1", b"raw", x_word="w")
        assert answer.json == {"a": "1", "body": "raw"} and answer.headers["x-seen"] == "w"
        assert (await client.post("/predictions/made", {"k": 1}, **JSON)).json == {"body": {"k": 1}}
        form = b'--B\r\nContent-Disposition: form-data; name="data"; filename="f"\r\n\r\nbytes\r\n--B--\r\n'
        answer = await client.post("/predictions/made", form, content_type="multipart/form-data; boundary=B")
        assert answer.json == {"data": "bytes"}
        answer = await client.post("/predictions/made", b"u=v", content_type="application/x-www-form-urlencoded")
        assert answer.json == {"u": "v"}
        for wrong in (b"--B", b"--B\r\nx"):
            answer = await client.post("/predictions/made", wrong, content_type="multipart/form-data; boundary=B")
            assert answer.status in (200, 400)
        answer = await client.post("/predictions/made", b"x", content_type="multipart/form-data")
        assert answer.status == 400 and answer.json["code"] == 400
        assert (await client.post("/predictions/made", b"{", **JSON)).status == 400

    with_code(work, folder_with(tmp_path, code, config="handler = 'handler:handle'"))


SEEN = """
def handle(data, context):
    def shown(value):
        if isinstance(value, list):
            return [shown(one) for one in value]
        return [type(value).__name__, bytes(value).decode("latin-1") if isinstance(value, bytearray) else value]
    return data and [{key: shown(value) for key, value in one.items()} for one in data]
"""


def multipart(*parts):
    """Return a body of parts (disposition, content type or None, bytes), and its content type."""
    lines = []
    for disposition, kind, content in parts:
        kind = b"" if kind is None else f"\r\nContent-Type: {kind}".encode()
        lines += [b"--B\r\nContent-Disposition: form-data; " + disposition.encode() + kind, b"", content]
    return b"\r\n".join([*lines, b"--B--", b""]), {"content_type": "multipart/form-data; boundary=B"}


def test_what_a_handler_gets_of_bodies_and_parts(tmp_path):
    # TorchServe decodes JSON and texts of raw bodies and of files; fields of a form stay bytes.
    raw = [
        ("application/json", b"[1, 2]", [["int", 1], ["int", 2]]),
        ("application/json; charset=utf-8", b'{"a": 1}', ["dict", {"a": 1}]),
        ("text/plain", "ä b".encode(), ["str", "ä b"]),
        ("text/csv; charset=utf-8", b"1,2", ["str", "1,2"]),
        ("text/plain", b"\xff", ["bytearray", "\xff"]),
        ("image/png", b"\x89PNG", ["bytearray", "\x89PNG"]),
        ("application/octet-stream", b"[1]", ["bytearray", "[1]"]),
        ("", b"x", ["bytearray", "x"]),
    ]
    body, form = multipart(
        ('name="field"', None, b"[1.5]"),
        ('name="json"; filename="a.json"', "application/json", b'{"k": [1]}'),
        ('name="text"; filename="a.txt"', "text/plain", "ä".encode()),
        ('name="picture"; filename="a.png"', "image/png", b"\x89P\r\nG\xff"),
        ('name="plain"; filename="a"', None, b"[1]"),
        ('name="twice"; filename="1"', None, b"1"),
        ('name="twice"; filename="2"', "text/plain", b"2"),
        ('name="empty"; filename="e"', None, b""),
    )
    wrong, _ = multipart(('name="json"; filename="a.json"', "application/json", b"{"))

    async def work(client):
        for kind, content, value in raw:
            found = (await client.post("/predictions/made", content, content_type=kind)).json
            assert found == {"body": value}, kind
        assert (await client.post("/predictions/made", body, **form)).json == {
            "field": ["bytearray", "[1.5]"],
            "json": ["dict", {"k": [1]}],
            "text": ["str", "ä"],
            "picture": ["bytearray", "\x89P\r\nG\xff"],
            "plain": ["bytearray", "[1]"],
            "twice": [["bytearray", "1"], ["str", "2"]],
            "empty": ["bytearray", ""],
        }
        answer = await client.post("/predictions/made", wrong, **form)
        assert answer.status == 400 and answer.json["code"] == 400
        kind = "application/x-www-form-urlencoded"
        answer = await client.post("/predictions/made", b"a=%C3%A4&b=1", content_type=kind)
        assert answer.json == {"a": ["bytearray", "\u00c3\u00a4"], "b": ["bytearray", "1"]}

    with_code(work, folder_with(tmp_path, SEEN, config="handler = 'handler:handle'"))


def test_steps_status_and_kinds_of_answers(tmp_path):
    code = """
class Steps:
    def initialize(self, context):
        self.folder = context.system_properties["model_dir"]
    def preprocess(self, data):
        return [bytes(one["body"]).decode() for one in data]
    def inference(self, data):
        return [{"text": "t", "bytes": b"b", "list": [1], "bad": object(), "status": ""}[word] for word in data]
    def postprocess(self, data):
        for place, word in enumerate(data):
            if word == "":
                self.context.set_response_status(422, "why", place)
                self.context.set_response_content_type(place, "text/x-mine")
        return data
"""

    async def work(client):
        for sent, kind, body in (
            (b"text", "text/plain", b"t"),
            (b"bytes", "application/octet-stream", b"b"),
            (b"list", "application/json", b"[1]"),
        ):
            answer = await client.post("/predictions/made", sent)
            assert answer.headers["content-type"].startswith(kind) and answer.body == body
        answer = await client.post("/predictions/made", b"status")
        assert answer.status == 422 and answer.headers["content-type"].startswith("text/x-mine")
        assert (await client.post("/predictions/made", b"bad")).status == 500

    with_code(work, folder_with(tmp_path, code))


def test_parts_of_an_answer_are_sent_as_they_come(tmp_path):
    code = """
from ts.handler_utils.utils import send_intermediate_predict_response
def handle(data, context):
    if data is None:
        return None
    for word in ("one ", "two "):
        send_intermediate_predict_response([word] * len(data), context.request_ids, "ok", 200, context)
    if data[0]["body"] == b"fail":
        raise ValueError("late")
    return ["three"] * len(data)
"""

    async def work(client):
        answer = await client.post("/predictions/made", b"x")
        assert answer.body == b"one two three" and len([part for part in answer.parts if part]) == 3

    with_code(work, folder_with(tmp_path, code))


def test_generators(tmp_path):
    code = """
def handle(data, context):
    return [] if data is None else ([f"{n} "] for n in range(3))
"""

    async def work(client):
        assert (await client.post("/predictions/made", b"x")).body == b"0 1 2 "

    with_code(work, folder_with(tmp_path, code))


def test_management(tmp_path):
    write_onnx(tmp_path / "net.onnx")
    for version in ("1", "2"):
        (tmp_path / "two" / version).mkdir(parents=True)
        write_onnx(tmp_path / "two" / version / "model.onnx")
    (tmp_path / "two" / "config.toml").write_text("versions = 'all'")

    async def work(client):
        assert (await client.get("/models")).json == {
            "models": [{"modelName": "net", "modelUrl": "net.onnx"}, {"modelName": "two", "modelUrl": "model.onnx"}]
        }
        page = (await client.get("/models?limit=1")).json
        assert page["nextPageToken"] == "1" and len(page["models"]) == 1
        assert (await client.get("/models?limit=1&next_page_token=1")).json["models"][0]["modelName"] == "two"
        assert [m["modelVersion"] for m in (await client.get("/models/two/all")).json] == ["1", "2"]
        about = (await client.get("/models/two")).json[0]
        assert about["modelVersion"] == "2" and about["batchSize"] == 1
        assert (await client.call("PUT", "/models/two/1/set-default")).status == 200
        assert (await client.get("/models/two")).json[0]["modelVersion"] == "1"
        assert (await client.call("PUT", "/models/net?min_worker=2")).json["status"].startswith("Workers scaled to 2")
        assert (await client.get("/models/net")).json[0]["minWorkers"] == 2
        assert (await client.call("PUT", "/models/net?min_worker=3")).status == 400
        assert (await client.call("DELETE", "/models/two/1")).status == 200
        assert (await client.get("/models/two")).json[0]["modelVersion"] == "2"
        assert (await client.call("DELETE", "/models/net")).json == {"status": 'Model "net" unregistered'}
        assert (await client.post("/predictions/net", ROWS, **JSON)).status == 404
        # Register it again, and a new file
        answer = await client.post("/models?url=net.onnx&initial_workers=1&batch_size=4")
        assert answer.json["status"] == 'Model "net" Version: 1 registered with 1 initial workers'
        assert (await client.get("/models/net")).json[0]["batchSize"] == 4
        assert (await client.post("/models?url=net.onnx")).status == 409
        assert (await client.post("/models?url=net.onnx&model_name=other")).status == 200
        found = (await client.post("/predictions/other", {"x": ROWS}, **JSON)).json
        assert [n for row in found for n in row] == pytest.approx(expected(ROWS), abs=1e-6)
        assert (await client.call("OPTIONS", "/")).json["openapi"]

    with_client(work, tmp_path, threads=2)


@pytest.mark.parametrize(
    ("method", "path", "status", "kind"),
    [
        ("POST", "/models", 400, "BadRequestException"),
        ("POST", "/models?url=http://x/y.mar", 400, "BadRequestException"),
        ("POST", "/models?url=../net.onnx", 400, "BadRequestException"),
        ("POST", "/models?url=nope.mar", 404, "ModelNotFoundException"),
        ("POST", "/models?url=net.onnx&handler=x", 400, "BadRequestException"),
        ("POST", "/models?url=net.onnx&model_name=a/b", 404, "ModelNotFoundException"),
        ("POST", "/models?url=broken.mar", 400, "BadRequestException"),
        ("GET", "/models/nope", 404, "ModelNotFoundException"),
        ("GET", "/models/nope/all", 404, "ModelNotFoundException"),
        ("GET", "/models?limit=0", 400, "BadRequestException"),
        ("GET", "/models?limit=x", 400, "BadRequestException"),
        ("PUT", "/models/net?min_worker=0", 400, "BadRequestException"),
        ("PUT", "/models/net?min_worker=1&max_worker=0", 400, "BadRequestException"),
        ("PUT", "/models/net/9/set-default", 404, "ModelNotFoundException"),
        ("DELETE", "/models/nope", 404, "ModelNotFoundException"),
        ("DELETE", "/models/net/9", 404, "ModelNotFoundException"),
        ("POST", "/predictions/nope", 404, "ModelNotFoundException"),
        ("POST", "/predictions/net", 400, "BadRequestException"),
        ("PATCH", "/predictions/net", 405, "MethodNotAllowedException"),
        ("GET", "/predictions", 404, "ResourceNotFoundException"),
    ],
)
def test_errors_have_torchserves_form(tmp_path, method, path, status, kind):
    write_onnx(tmp_path / "net.onnx")

    async def work(client):
        (tmp_path / "broken.mar").write_bytes(b"no archive")
        answer = await client.call(method, path)
        assert answer.status == status and answer.json["code"] == status and answer.json["type"] == kind

    with_client(work, tmp_path)


EXPLAINING = """
import torch
from ts.torch_handler.base_handler import BaseHandler

class Handler(BaseHandler):
    def initialize(self, context):
        self.device = "cpu"
        self.initialized = True

    def preprocess(self, data):
        return torch.tensor([one["body"]["data"] for one in data])

    def inference(self, data):
        return data * 2
"""
INSIGHTS = """
    def get_insights(self, tensor_data, raw_data, target):
        return [{"rows": len(tensor_data), "raw": raw_data["data"], "target": target} for _ in tensor_data]
"""
STEPS = """
class Steps:
    def preprocess(self, data):
        return [one["body"] for one in data]
    def inference(self, data):
        return [f"seen {one}" for one in data]
    def explain_handle(self, given, data):
        return [f"why {one} {sorted(raw)}" for one, raw in zip(given, data)]
"""


def test_explanations(tmp_path, onnx_file):
    folder_with(tmp_path, EXPLAINING + INSIGHTS, "insights")
    folder_with(tmp_path, EXPLAINING, "without")
    folder_with(tmp_path, STEPS, "steps")
    folder_with(tmp_path, STEPS.replace("explain_handle", "other"), "plain")
    write_onnx(tmp_path / "net.onnx")

    async def work(client):
        values = {"data": [1, 2]}
        answer = await client.post("/explanations/insights", values, **JSON)
        assert answer.json == {"rows": 1, "raw": [1, 2], "target": 0}
        assert (await client.post("/explanations/insights/1", values, **JSON)).json == answer.json
        assert (await client.post("/predictions/insights", values, **JSON)).json == [2, 4]
        # The client's own header decides nothing.
        assert (await client.post("/predictions/insights", values, explain="True", **JSON)).json == [2, 4]
        assert (await client.post("/explanations/steps", 5, **JSON)).body == b"why 5 ['body']"
        assert (await client.post("/predictions/steps", 5, **JSON)).body == b"seen 5"
        for path, status, text in (
            ("/explanations/net", 400, "no handler that explains"),
            ("/explanations/plain", 400, "no explain_handle"),
            ("/explanations/without", 500, "no get_insights"),
            ("/explanations/nope", 404, "no model 'nope'"),
        ):
            answer = await client.post(path, values, **JSON)
            assert answer.status == status and answer.json["code"] == status and text in answer.json["message"]

    with_code(work, tmp_path, "--max-batch", "4")


def test_explanations_are_not_joined_with_predictions(tmp_path):
    code = STEPS.replace('"seen {one}"', '"seen {one} {len(data)}"').replace('"why {one} {sorted(raw)}"', '"why {one}"')

    async def work(client):
        words = ["predictions", "explanations"] * 6
        answers = await asyncio.gather(*(client.post(f"/{word}/made", 1, **JSON) for word in words))
        for word, answer in zip(words, answers, strict=True):
            assert answer.body.startswith(b"seen 1" if word == "predictions" else b"why 1")

    with_code(work, folder_with(tmp_path, code), "--max-batch", "8", "--delay-ms", "20")
