"""Loading of models: padding, factories, weights, and what is refused."""

import asyncio
import json
import sys
import threading

import pytest

import torchlite as torch

pytest.importorskip("starlette", reason="the extra 'serve' is missing")
pytest.importorskip("prometheus_client", reason="the extra 'serve' is missing")

from torchlite.distributed.checkpoint._safetensors import write_safetensors
from torchlite.serve._tensor_model import TensorModel

from .asgi_client import expected, infer_body, network, running, write_onnx
from .server_process import serving

ROWS = [[1.0, 2.0, 3.0, 4.0], [0.5, 0.25, -1.0, 0.0]]


class Masked(torch.nn.Module):
    """Running sums of the ids that the mask keeps, and their mean."""

    def forward(self, ids, mask):
        kept = ids * mask
        return kept.cumsum(1), kept.sum(1) / mask.sum(1)


@pytest.fixture
def padded(tmp_path):
    """A folder with a model whose requests of different length are joined."""
    folder = tmp_path / "masked"
    folder.mkdir()
    rows, length = torch.export.Dim("rows", min=1, max=64), torch.export.Dim("length", min=1, max=64)
    sizes = {0: rows, 1: length}
    example = torch.ones(2, 3), torch.ones(2, 3)
    torch.onnx.export(
        Masked(), example, str(folder / "model.onnx"), dynamic_shapes=(sizes, sizes), external_data=False,
        input_names=["ids", "mask"], output_names=["sums", "mean"],
    )  # fmt: skip
    (folder / "config.toml").write_text(
        "max_batch = 8\n[padding]\naxis = 1\ninputs = { ids = 7, mask = 0 }\noutputs = ['sums']\n"
    )
    return folder


def test_requests_of_different_length_are_joined_and_cut_back(padded):
    async def main():
        async with running(padded) as client:

            async def ask(length):
                ids = [float(n + 1) for n in range(length)]
                sent = {"ids": [ids], "mask": [[1.0] * length]}
                return (await client.post("/v2/models/masked/generate", sent)).json

            found = await asyncio.gather(*(ask(length) for length in (3, 5, 1, 4, 2)))
            for length, answer in zip((3, 5, 1, 4, 2), found, strict=True):
                sums = [sum(range(1, n + 2)) for n in range(length)]
                assert answer["sums"] == (sums if length > 1 else sums[0]) and answer["mean"] == (length + 1) / 2
            about = (await client.get("/v2/models/masked/stats")).json["model_stats"][0]
            assert about["inference_count"] == 5 and about["execution_count"] == 2

    asyncio.run(main())


def load(*models, **options):
    async def main():
        async with running(*models, **options):
            pass

    asyncio.run(main())


@pytest.mark.parametrize(
    ("config", "error"),
    [
        ("[padding]\naxis = 1\ninputs = { idz = 0 }\n", "padding names 'idz'; its inputs are ids, mask"),
        ("batching = false\n[padding]\naxis = 1\ninputs = { ids = 0 }\n", "say batching = true"),
        ("versions = [2]\n", "has no version 2; it has 1"),
        ("factory = 'a:b'\n", "factory 'a:b' of model 'masked' is code .* --allow-code"),
        ("handler = 'a'\n", "handler 'a' of model 'masked' is code .* --allow-code"),
    ],
)
def test_wrong_configurations(padded, config, error):
    (padded / "config.toml").write_text(config)
    with pytest.raises(ValueError, match=error):
        load(padded)


def test_weights_need_a_factory(tmp_path):
    torch.save(network().state_dict(), tmp_path / "weights.pt")
    with pytest.raises(ValueError, match="weights without a program; name what makes the module"):
        load(tmp_path / "weights.pt")


def test_two_models_of_one_name(onnx_file, tmp_path):
    with pytest.raises(ValueError, match="two models are named 'net'"):
        load(onnx_file, onnx_file)
    load(onnx_file, f"other={onnx_file}")


FACTORY = """
import torch
import parts

def make():
    return torch.nn.Sequential(*parts.layers())
"""
PARTS = """
import torch

def layers():
    return torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3)
"""


@pytest.mark.parametrize("name", ["weights.safetensors", "weights.pt"])
def test_a_factory_makes_the_network_of_weights(tmp_path, name):
    path = tmp_path / name
    if path.suffix == ".pt":
        torch.save(network().state_dict(), path)
    else:
        with path.open("wb") as stream:
            write_safetensors(stream, network().state_dict())
    (tmp_path / "net.py").write_text(FACTORY)
    (tmp_path / "parts.py").write_text(PARTS)
    with serving(path, "--factory", "net:make", "--allow-code") as server:
        answer = server.request("POST", "/v2/models/weights/generate", json.dumps({"input": ROWS}).encode())
        assert answer.json["output_0"] == pytest.approx(expected(ROWS), abs=1e-6)
        answer = server.request("POST", "/v2/models/weights/generate", json.dumps({"input": [[1.0]]}).encode())
        assert answer.status == 500 and "the model's code raised RuntimeError" in answer.json["error"]


def test_texts_reach_code(tmp_path):
    folder = tmp_path / "upper"
    folder.mkdir()
    (folder / "code.py").write_text("def make():\n    return lambda text: [t.decode().upper() for t in text.ravel()]\n")
    (folder / "config.toml").write_text(
        "factory = 'code:make'\n[[inputs]]\nname = 'text'\ndatatype = 'BYTES'\nshape = [-1]\n"
    )
    with serving(folder, "--allow-code") as server:
        answer = server.request("POST", "/v2/models/upper/generate", json.dumps({"text": "abc"}).encode())
        assert answer.json["output_0"] == "ABC"


@pytest.mark.parametrize(
    "workers", [0, pytest.param(2, marks=pytest.mark.skipif(sys.platform != "linux", reason="workers need Linux"))]
)
def test_a_model_on_a_device(device, onnx_file, workers):
    async def main():
        async with running(onnx_file, device=device, workers=workers, max_batch=8) as client:
            found = await asyncio.gather(
                *(client.post("/v2/models/net/infer", infer_body([row] * 2)) for row in ROWS * 3)
            )
            for row, answer in zip(ROWS * 3, found, strict=True):
                assert answer.json["outputs"][0]["data"] == pytest.approx(expected([row] * 2), abs=1e-5)

    asyncio.run(main())


@pytest.mark.parametrize("is_file", [True, False])
def test_brief_programs_of_files_need_no_thread_and_code_has_one(tmp_path, monkeypatch, is_file):
    threads = []
    run = TensorModel.run

    def noting(model, requests):
        threads.append(threading.current_thread())
        return run(model, requests)

    monkeypatch.setattr(TensorModel, "run", noting)
    if is_file:
        model = write_onnx(tmp_path / "net.onnx")
    else:
        model = tmp_path / "net"
        model.mkdir()
        (model / "code.py").write_text("def make():\n    return lambda x: x\n")
        (model / "config.toml").write_text("factory = 'code:make'\n")

    async def main():
        async with running(model, allow_code=True) as client:
            threads.clear()
            while len(threads) < 200 and threading.main_thread() not in threads:
                answer = await client.post("/v2/models/net/infer", infer_body(ROWS))
                assert answer.status == 200
        assert threads[0] is not threading.main_thread()
        assert (threads[-1] is threading.main_thread()) is is_file

    asyncio.run(main())
