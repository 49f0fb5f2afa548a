"""The protocol's gRPC service, through a channel."""

import asyncio

import numpy as np
import pytest

pytest.importorskip("starlette", reason="the extra 'serve' is missing")
pytest.importorskip("prometheus_client", reason="the extra 'serve' is missing")
grpc = pytest.importorskip("grpc", reason="the extra 'serve' is missing")

from torchlite.serve import Settings
from torchlite.serve._grpc_messages import SERVICE, UNARY_CALLS, make_file, messages
from torchlite.serve._grpc_service import start_grpc
from torchlite.serve._service import Service

from .asgi_client import expected

ROWS = [[1.0, 2.0, 3.0, 4.0], [0.5, 0.25, -1.0, 0.0]]


class Stub:
    """The service's calls by their names."""

    def __init__(self, channel, metadata=()):
        for name in UNARY_CALLS:
            call = channel.unary_unary(
                f"/{SERVICE}/{name}",
                request_serializer=lambda message: message.SerializeToString(),
                response_deserializer=getattr(messages, f"{name}Response").FromString,
            )
            make = getattr(messages, f"{name}Request")
            setattr(self, name, lambda call=call, make=make, **fields: call(make(**fields), metadata=metadata))
        self.stream = channel.stream_stream(
            f"/{SERVICE}/ModelStreamInfer",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=messages.ModelStreamInferResponse.FromString,
        )


def with_stub(work, *models, metadata=(), stub=Stub, **options):
    """Run `work` with the calls of a server in this process."""

    async def main():
        service = Service(Settings(models=tuple(map(str, models)), grpc_port=0, access_log=False, **options))
        await service.repository.start()
        server, port = await start_grpc(service, None)
        try:
            async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
                await work(stub(channel, metadata))
        finally:
            await server.stop(None)
            await service.close()

    asyncio.run(main())


def network_input(rows=ROWS, **changes):
    return {"name": "x", "datatype": "FP32", "shape": [len(rows), 4], **changes}


def raw_of(rows=ROWS):
    return np.array(rows, np.float32).tobytes()


def test_messages_have_the_protocols_numbers():
    made = {message.name: message for message in make_file().message_type}
    request = {field.name: field.number for field in made["ModelInferRequest"].field}
    assert request == {
        "model_name": 1,
        "model_version": 2,
        "id": 3,
        "parameters": 4,
        "inputs": 5,
        "outputs": 6,
        "raw_input_contents": 7,
    }
    assert messages.ModelInferRequest(model_name="ab", id="c").SerializeToString() == b"\n\x02ab\x1a\x01c"
    message = messages.ModelInferRequest()
    message.parameters["timeout"].int64_param = 5
    assert messages.ModelInferRequest.FromString(message.SerializeToString()) == message


def test_state_and_metadata(onnx_file):
    async def work(stub):
        assert (await stub.ServerLive()).live and (await stub.ServerReady()).ready
        assert (await stub.ModelReady(name="net")).ready
        about = await stub.ServerMetadata()
        assert about.name == "torchlite" and "statistics" in about.extensions
        about = await stub.ModelMetadata(name="net", version="1")
        assert about.platform == "onnx_onnxv1" and list(about.versions) == ["1"]
        assert (about.inputs[0].name, about.inputs[0].datatype, list(about.inputs[0].shape)) == ("x", "FP32", [-1, 4])
        index = (await stub.RepositoryIndex()).models
        assert [(one.name, one.version, one.state) for one in index] == [("net", "1", "READY")]

    with_stub(work, onnx_file)


def test_inference(onnx_file):
    async def work(stub):
        for given in (
            {"inputs": [network_input()], "raw_input_contents": [raw_of()]},
            {"inputs": [network_input(contents={"fp32_contents": [*ROWS[0], *ROWS[1]]})]},
        ):
            found = await stub.ModelInfer(model_name="net", id="7", outputs=[{"name": "y"}], **given)
            assert (found.model_name, found.model_version, found.id) == ("net", "1", "7")
            assert (found.outputs[0].name, found.outputs[0].datatype, list(found.outputs[0].shape)) == (
                "y",
                "FP32",
                [2, 3],
            )
            values = np.frombuffer(found.raw_output_contents[0], "<f4").tolist()
            assert values == pytest.approx(expected(ROWS), abs=1e-6)
        statistics = (await stub.ModelStatistics(name="net")).model_stats[0]
        assert statistics.inference_count == 4 and statistics.inference_stats.success.count == 2

    with_stub(work, onnx_file)


@pytest.mark.parametrize(
    ("given", "code", "text"),
    [
        ({}, "INVALID_ARGUMENT", "input 'x' is missing"),
        ({"inputs": [network_input()]}, "INVALID_ARGUMENT", "0 elements"),
        ({"inputs": [network_input()], "raw_input_contents": [b"1"]}, "INVALID_ARGUMENT", "1 bytes of data"),
        ({"inputs": [network_input()], "raw_input_contents": [b"", b""]}, "INVALID_ARGUMENT", "2 raw_input_contents"),
        ({"inputs": [network_input(shape=[-1, 4])]}, "INVALID_ARGUMENT", "at least 0"),
        ({"inputs": [network_input(datatype="X")]}, "INVALID_ARGUMENT", "unknown datatype"),
        ({"inputs": [network_input(datatype="FP16")]}, "INVALID_ARGUMENT", "must come as raw_input_contents"),
        ({"inputs": [network_input(contents={"int_contents": [1]})]}, "INVALID_ARGUMENT", "not int_contents"),
        ({"inputs": [network_input(shape=[2**40, 4])]}, "RESOURCE_EXHAUSTED", "over the limit"),
        ({"inputs": [network_input([], shape=[0, 4])] * 2}, "INVALID_ARGUMENT", "given twice"),
        ({"inputs": [network_input()], "raw_input_contents": [raw_of()], "outputs": [{"name": "z"}]},
         "INVALID_ARGUMENT", "no output 'z'"),
        ({"parameters": {"timeout": messages.InferParameter()}}, "INVALID_ARGUMENT", "has no value"),
        ({"model_name": "nope"}, "NOT_FOUND", "no model 'nope'"),
        ({"model_version": "9"}, "NOT_FOUND", "no version '9'"),
    ],
)  # fmt: skip
def test_wrong_requests_get_one_clear_error(onnx_file, given, code, text):
    async def work(stub):
        with pytest.raises(grpc.aio.AioRpcError) as error:
            await stub.ModelInfer(**{"model_name": "net", **given})
        assert error.value.code().name == code and text in error.value.details()

    with_stub(work, onnx_file)


def test_streams(onnx_file):
    async def work(stub):
        requests = [
            messages.ModelInferRequest(
                model_name=name, id=str(n), inputs=[network_input()], raw_input_contents=[raw_of()]
            )
            for n, name in enumerate(("net", "nope", "net"))
        ]
        found = [answer async for answer in stub.stream(iter(requests))]
        assert [answer.infer_response.id for answer in found] == ["0", "1", "2"]
        assert [bool(answer.error_message) for answer in found] == [False, True, False]

    with_stub(work, onnx_file)


def test_repository(onnx_file):
    parameter = messages.ModelRepositoryParameter  # protobuf 5 takes no dictionaries as values of maps

    async def work(stub):
        await stub.RepositoryModelUnload(
            model_name="net", parameters={"unload_dependents": parameter(bool_param=False)}
        )
        assert (await stub.RepositoryIndex()).models[0].reason == "unloaded"
        assert not (await stub.RepositoryIndex(ready=True)).models
        await stub.RepositoryModelLoad(model_name="net")
        assert (await stub.ModelReady(name="net")).ready
        for name, given in (
            ("RepositoryModelLoad", {"model_name": "net", "parameters": {"config": parameter(string_param="{}")}}),
            ("RepositoryModelUnload", {"model_name": "net", "parameters": {"x": parameter(bool_param=True)}}),
            ("RepositoryIndex", {"repository_name": "other"}),
        ):
            with pytest.raises(grpc.aio.AioRpcError) as error:
                await getattr(stub, name)(**given)
            assert error.value.code() is grpc.StatusCode.INVALID_ARGUMENT

    with_stub(work, onnx_file)


def test_a_token(onnx_file):
    async def refused(stub):
        assert (await stub.ServerLive()).live
        with pytest.raises(grpc.aio.AioRpcError) as error:
            await stub.ModelReady(name="net")
        assert error.value.code() is grpc.StatusCode.UNAUTHENTICATED

    async def taken(stub):
        assert (await stub.ModelReady(name="net")).ready

    with_stub(refused, onnx_file, token="secret")
    with_stub(refused, onnx_file, token="secret", metadata=(("authorization", "Bearer wrong"),))
    with_stub(taken, onnx_file, token="secret", metadata=(("authorization", "Bearer secret"),))
