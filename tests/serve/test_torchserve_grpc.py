"""TorchServe's gRPC services, through a channel."""

import asyncio
import functools
import json

import pytest

pytest.importorskip("starlette", reason="the extra 'serve' is missing")
pytest.importorskip("prometheus_client", reason="the extra 'serve' is missing")
grpc = pytest.importorskip("grpc", reason="the extra 'serve' is missing")

from torchlite.serve._torchserve_messages import INFERENCE, MANAGEMENT, MANAGEMENT_CALLS, inference, management

from . import test_grpc_service
from .asgi_client import expected, network, write_onnx
from .server_process import serving
from .test_torchserve import folder_with

ROWS = [[1.0, 2.0, 3.0, 4.0], [0.5, 0.25, -1.0, 0.0]]
# Bytes that the code of grpcio-tools 1.85 for TorchServe's definitions wrote.
RECORDED = [
    (inference.PredictionsRequest, {"model_name": "net", "model_version": "2", "sequenceId": ""},
     b'\n\x03net\x12\x012\x1a\x07\n\x01b\x12\x02\x00\xff\x1a\x0b\n\x04data\x12\x03[1]"\x00'),
    (inference.PredictionResponse,
     {"prediction": b"\x01a", "sequenceId": "s", "status": {"code": 5, "message": "no"}},
     b"\n\x02\x01a\x12\x01s\x1a\x06\x08\x05\x12\x02no"),
    (inference.TorchServeHealthResponse, {"health": "h"}, b"\n\x01h"),
    (management.RegisterModelRequest,
     {"batch_size": 1, "handler": "h", "initial_workers": 2, "max_batch_delay": 3, "model_name": "m",
      "response_timeout": 4, "runtime": "r", "synchronous": True, "url": "u", "s3_sse_kms": True,
      "queue_timeout": 300},
     b"\x08\x01\x12\x01h\x18\x02 \x03*\x01m0\x04:\x01r@\x01J\x01uP\x01X\xac\x02"),
    (management.DescribeModelRequest, {"model_name": "m", "model_version": "v", "customized": True},
     b"\n\x01m\x12\x01v\x18\x01"),
    (management.ListModelsRequest, {"limit": 1, "next_page_token": 200}, b"\x08\x01\x10\xc8\x01"),
    (management.ScaleWorkerRequest,
     {"model_name": "m", "model_version": "v", "max_worker": 1, "min_worker": 2, "number_gpu": 3, "synchronous": True,
      "timeout": -1},
     b"\n\x01m\x12\x01v\x18\x01 \x02(\x030\x018\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
    (management.SetDefaultRequest, {"model_name": "m", "model_version": "v"}, b"\n\x01m\x12\x01v"),
    (management.UnregisterModelRequest, {"model_name": "m", "model_version": "v"}, b"\n\x01m\x12\x01v"),
    (management.ManagementResponse, {"msg": "t"}, b"\n\x01t"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "fields", "recorded"), RECORDED)
def test_messages_have_the_bytes_of_generated_code(kind, fields, recorded):
    made = kind(**fields)
    if kind is inference.PredictionsRequest:
        made.input["data"], made.input["b"] = b"[1]", b"\x00\xff"
    assert made.SerializeToString(deterministic=True) == recorded
    assert kind.FromString(recorded) == made


class Stub:
    """The calls of both services by their names."""

    def __init__(self, channel, metadata=()):
        def call(make, package, service, name, answer):
            return make(
                f"/{package}.{service}/{name}", request_serializer=lambda message: message.SerializeToString(),
                response_deserializer=answer.FromString,
            )  # fmt: skip

        apis, answer = "InferenceAPIsService", inference.PredictionResponse
        self.ping = call(channel.unary_unary, INFERENCE, apis, "Ping", inference.TorchServeHealthResponse)
        self.predict = call(channel.unary_unary, INFERENCE, apis, "Predictions", answer)
        self.stream = call(channel.unary_stream, INFERENCE, apis, "StreamPredictions", answer)
        self.stream_each = call(channel.stream_stream, INFERENCE, apis, "StreamPredictions2", answer)
        for name in MANAGEMENT_CALLS:
            make = getattr(management, f"{name}Request")
            one = call(channel.unary_unary, MANAGEMENT, "ManagementAPIsService", name, management.ManagementResponse)
            setattr(self, name, lambda make=make, one=one, **fields: one(make(**fields)))


with_stub = functools.partial(test_grpc_service.with_stub, stub=Stub)


def with_code(work, *words):
    """Run `work(stub)` with a server of its own process, in which handlers import torchlite as `torch`."""

    async def main(port):
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            await work(Stub(channel))

    with serving(*words, "--allow-code", "--grpc-port", "0") as server:
        asyncio.run(main(server.grpc_port))


def asked(name="net", version="", sequence=None, **given):
    made = inference.PredictionsRequest(model_name=name, model_version=version)
    if sequence is not None:
        made.sequenceId = sequence
    for key, value in given.items():
        made.input[key] = value
    return made


async def refused(call, code, text):
    with pytest.raises(grpc.aio.AioRpcError) as error:
        await call
    assert error.value.code().name == code and text in error.value.details()


def test_predictions_of_a_file(onnx_file):
    async def work(stub):
        assert json.loads((await stub.ping(inference.Empty())).health) == {"status": "Healthy"}
        body = json.dumps(ROWS).encode()
        for given in ({"data": body}, {"body": body}, {"x": body}, {"data": json.dumps({"x": ROWS}).encode()}):
            found = json.loads((await stub.predict(asked(version="1", **given))).prediction)
            assert [n for row in found for n in row] == pytest.approx(expected(ROWS), abs=1e-6)
        found = [json.loads(one.prediction) async for one in stub.stream(asked(x=body))]
        assert len(found) == 1 and found[0][1] == pytest.approx(expected(ROWS[1:]), abs=1e-6)
        for given, code, text in (
            ({}, "INVALID_ARGUMENT", "input 'x' is missing"),
            ({"data": b"{"}, "INVALID_ARGUMENT", "no JSON"),
            ({"y": body}, "INVALID_ARGUMENT", "no input 'y'"),
            ({"data": b"[[1, 2]]"}, "INVALID_ARGUMENT", "must have the shape"),
            ({"name": "nope"}, "NOT_FOUND", "no model 'nope'"),
            ({"version": "9"}, "NOT_FOUND", "no version '9'"),
        ):
            await refused(stub.predict(asked(**given)), code, text)
            await refused(anext(aiter(stub.stream(asked(**given)))), code, text)

    with_stub(work, onnx_file)


def test_a_stream_of_requests(onnx_file):
    """An error answers its own request, and the stream goes on."""

    async def work(stub):
        body = json.dumps(ROWS[:1]).encode()
        requests = [asked(sequence="a", data=body), asked("nope", sequence="b"), asked(data=body)]
        found = [answer async for answer in stub.stream_each(iter(requests))]
        assert [(one.sequenceId, one.HasField("sequenceId"), one.status.code) for one in found] == [
            ("a", True, 0), ("b", True, grpc.StatusCode.NOT_FOUND.value[0]), ("", False, 0),
        ]  # fmt: skip
        assert "no model 'nope'" in found[1].status.message and not found[1].prediction
        assert found[0].prediction == found[2].prediction and not found[0].HasField("status")

    with_stub(work, onnx_file)


HANDLER = """
from ts.handler_utils.utils import send_intermediate_predict_response
def handle(data, context):
    if data is None:
        return None
    words = [bytes(one["data"]).decode() for one in data]
    if words[0] == "parts":
        for word in ("one ", "two "):
            send_intermediate_predict_response([word] * len(data), context.request_ids, "ok", 200, context)
        return ["three"] * len(data)
    if words[0].isdecimal():
        context.set_response_status(int(words[0]), "why", 0)
        return ["refused"]
    if words[0] == "fail":
        raise ValueError("broken")
    return [{"word": words[0], "header": context.get_request_header(0, "x-word"), "explain": context.explains}]
"""


def test_handlers(tmp_path):
    async def work(stub):
        found = await stub.predict(asked("made", data=b"w"), metadata=(("x-word", "v"),))
        assert json.loads(found.prediction) == {"word": "w", "header": "v", "explain": False}
        found = [one.prediction async for one in stub.stream(asked("made", data=b"parts"))]
        assert found == [b"one ", b"two ", b"three"]
        assert (await stub.predict(asked("made", data=b"parts"))).prediction == b"one two three"
        for word, code in ((b"422", "INVALID_ARGUMENT"), (b"404", "NOT_FOUND"), (b"507", "INTERNAL")):
            await refused(stub.predict(asked("made", data=word)), code, "refused")
        await refused(stub.predict(asked("made", data=b"fail")), "INTERNAL", "broken")

    with_code(work, folder_with(tmp_path, HANDLER, config="handler = 'handler:handle'"))


def test_management(tmp_path):
    write_onnx(tmp_path / "net.onnx", network())
    for version in ("1", "2"):
        (tmp_path / "two" / version).mkdir(parents=True)
        write_onnx(tmp_path / "two" / version / "model.onnx")
    (tmp_path / "two" / "config.toml").write_text("versions = 'all'")

    async def work(stub):
        page = json.loads((await stub.ListModels(limit=1)).msg)
        assert page == {"models": [{"modelName": "net", "modelUrl": "net.onnx"}], "nextPageToken": "1"}
        page = json.loads((await stub.ListModels(next_page_token=1)).msg)
        assert page == {"models": [{"modelName": "two", "modelUrl": "model.onnx"}]}
        about = json.loads((await stub.DescribeModel(model_name="two", model_version="all")).msg)
        assert [(one["modelVersion"], one["defaultVersion"]) for one in about] == [("1", False), ("2", True)]
        assert 'to "1"' in (await stub.SetDefault(model_name="two", model_version="1")).msg
        assert json.loads((await stub.DescribeModel(model_name="two")).msg)[0]["modelVersion"] == "1"
        found = await stub.ScaleWorker(model_name="net", min_worker=2, synchronous=True)
        assert found.msg == "Workers scaled to 2 for model: net"
        assert (await stub.UnregisterModel(model_name="net")).msg == 'Model "net" unregistered'
        await refused(stub.predict(asked(data=b"[]")), "NOT_FOUND", "model 'net' is not loaded")
        found = await stub.RegisterModel(url="net.onnx", batch_size=4, max_batch_delay=5)
        assert found.msg == 'Model "net" Version: 1 registered with 1 initial workers'
        assert json.loads((await stub.DescribeModel(model_name="net")).msg)[0]["batchSize"] == 4
        for call, code, text in (
            (stub.RegisterModel(url="net.onnx"), "ALREADY_EXISTS", "registered already"),
            (stub.RegisterModel(), "INVALID_ARGUMENT", "'url' is missing"),
            (stub.RegisterModel(url="nope.mar"), "NOT_FOUND", "no file"),
            (stub.RegisterModel(url="net.onnx", runtime="python"), "INVALID_ARGUMENT", "no parameter 'runtime'"),
            (stub.ScaleWorker(model_name="net", min_worker=2, max_worker=1), "INVALID_ARGUMENT", "at least"),
            (stub.ScaleWorker(model_name="net", min_worker=-2), "INVALID_ARGUMENT", "must not be negative"),
            (stub.ScaleWorker(model_name="net", timeout=-1), "INVALID_ARGUMENT", "no parameter 'timeout'"),
            (stub.SetDefault(model_name="two", model_version="9"), "NOT_FOUND", "no version '9'"),
            (stub.DescribeModel(model_name="nope"), "NOT_FOUND", "no model 'nope'"),
            (stub.UnregisterModel(model_name="nope"), "NOT_FOUND", "no model 'nope'"),
        ):
            await refused(call, code, text)

    with_stub(work, tmp_path, threads=2)


def test_models_that_are_fixed(onnx_file):
    async def work(stub):
        assert json.loads((await stub.ListModels()).msg)["models"]
        for call in (
            stub.RegisterModel(url="net.onnx"), stub.UnregisterModel(model_name="net"),
            stub.ScaleWorker(model_name="net"), stub.SetDefault(model_name="net", model_version="1"),
        ):  # fmt: skip
            await refused(call, "PERMISSION_DENIED", "does not load or unload")

    with_stub(work, onnx_file, management=False)


def test_a_token(onnx_file):
    async def work(stub):
        assert "Healthy" in (await stub.ping(inference.Empty())).health
        await refused(stub.predict(asked(data=b"[]")), "UNAUTHENTICATED", "Authorization")
        await refused(anext(aiter(stub.stream(asked(data=b"[]")))), "UNAUTHENTICATED", "Authorization")
        await refused(stub.ListModels(), "UNAUTHENTICATED", "Authorization")

    with_stub(work, onnx_file, token="secret")
