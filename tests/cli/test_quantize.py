"""`python -m torchlite convert --quantize`."""

import json

import numpy as np
import pytest

import torchlite as torch
from torchlite import __main__ as program
from torchlite import nn


class Tokens(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.first, self.last = nn.Embedding(2000, 128), nn.Linear(128, 512), nn.Linear(512, 128)

    def forward(self, ids):
        return self.last(self.first(self.words(ids)).relu())


class Images(nn.Module):
    def __init__(self):
        super().__init__()
        self.wide, self.deep = nn.Conv2d(3, 32, 3, padding=1), nn.Conv2d(32, 32, 3, groups=32)
        self.steps, self.last = nn.LSTM(6, 8), nn.Linear(8, 40)

    def forward(self, image):
        seen = self.deep(self.wide(image).relu()).mean(1)
        return self.last(self.steps(seen)[0])


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("quantized")
    torch.manual_seed(0)
    ids, image = torch.randint(0, 2000, (2, 7)), torch.randn(2, 3, 8, 8)
    for name, net, given in (("tokens", Tokens().eval(), ids), ("images", Images().eval(), image)):
        torch.export.save(torch.export.export(net, (given,)), folder / f"{name}.pt2")
        torch.onnx.export(net, (given,), folder / f"{name}.onnx", external_data=False)
        torch.jit.trace(net, given).save(folder / f"{name}.pt")
    random = np.random.default_rng(0)
    np.savez(folder / "samples.npz", image=random.standard_normal((8, 3, 8, 8)).astype("f4"))
    np.savez(folder / "stack.npz", image=random.standard_normal((3, 2, 3, 8, 8)).astype("f4"))
    np.savez(folder / "strange.npz", other=np.zeros(3))
    np.savez(folder / "small.npz", image=np.zeros((4, 3, 8, 7), "f4"))
    (folder / "text.npz").write_bytes(b"hello")
    return folder


def command(capsys, *words):
    status = program.main([str(word) for word in words])
    out, err = capsys.readouterr()
    return status, out, err


@pytest.mark.parametrize("target", ["onnx", "pt2", "pt"])
@pytest.mark.parametrize("source", ["onnx", "pt2", "pt"])
def test_weights_take_a_quarter(files, source, target, tmp_path, capsys):
    shape = ["--shape", "2x7:int64"] if source == "pt" else []
    written = tmp_path / f"small.{target}"
    words = ["convert", files / f"tokens.{source}", written, "--quantize", "int8", "--json", *shape]
    status, out, err = command(capsys, *words)
    assert (status, err) == (0, "")
    found = json.loads(out)
    assert found["layers"] == 3 and found["samples"] == 0 and found["left_in_float"] == {}
    assert found["error"]["cosine"] > 0.999 and 0 < found["error"]["relative"] < 0.03
    assert found["bytes"][1] == written.stat().st_size < 0.35 * found["bytes"][0]


def test_steps_of_samples_and_the_table(files, tmp_path, capsys):
    for samples, count in (("samples.npz", 4), ("stack.npz", 3)):
        words = ["convert", files / "images.pt2", tmp_path / "small.onnx", "--quantize", "int8"]
        status, out, err = command(capsys, *words, "--calibrate", files / samples)
        assert (status, err) == (0, "")
        lines = out.splitlines()
        assert lines[0].endswith(f"3 layers in int8, {count} samples")
        assert [line.split()[0] for line in lines[1:5]] == ["before", "size", "time", "error"]
        assert lines[5].startswith("left in float32: lstm (1)")
        model = torch.onnx._load.read_model(tmp_path / "small.onnx")[0]
        names = [node.op_type for node in model.graph.node]
        assert names.count("QuantizeLinear") == 3 and "DynamicQuantizeLinear" not in names


def test_four_bits(files, tmp_path, capsys):
    written = tmp_path / "small.onnx"
    words = ["convert", files / "tokens.pt2", written, "--quantize", "int4", "--json"]
    status, out, err = command(capsys, *words)
    assert (status, err) == (0, "")
    assert json.loads(out)["error"]["cosine"] > 0.98
    model = torch.onnx._load.read_model(written)[0]
    assert sum(tensor.data_type == 22 for tensor in model.graph.initializer) == 2  # INT4
    assert "MatMulInteger" not in {node.op_type for node in model.graph.node}


@pytest.mark.parametrize(
    ("words", "status", "error"),
    [
        (["tokens.onnx", "x.py", "--quantize", "int8"], 2, "a program of NumPy has floats"),
        (["tokens.onnx", "x.pt2", "--quantize", "int4"], 2, "only .onnx holds four bits"),
        (["images.onnx", "x.onnx", "--quantize", "int4", "--calibrate", "samples.npz"], 2, "only weights are rounded"),
        (["images.onnx", "x.onnx", "--calibrate", "samples.npz"], 2, "--calibrate: it needs --quantize int8"),
        (["images.onnx", "x.onnx", "--json"], 2, "--json: it needs --quantize int8"),
        (["images.onnx", "x.onnx", "--quantize", "int8", "--calibrate", "no.npz"], 1, "no.npz: No such file"),
        (["images.onnx", "x.onnx", "--quantize", "int8", "--calibrate", "text.npz"], 1, "it is no .npz file"),
        (["images.onnx", "x.onnx", "--quantize", "int8", "--calibrate", "strange.npz"], 1, "has no array 'image'"),
        (["images.onnx", "x.onnx", "--quantize", "int8", "--calibrate", "small.npz"], 1, "are float32 [2, 3, 8, 8]"),
        (["absent.onnx", "x.onnx", "--quantize", "int8"], 1, "absent.onnx"),
    ],
)  # fmt: skip
def test_what_is_refused(files, words, status, error, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(files)
    found, _, err = command(capsys, "convert", *words)
    assert found == status and error in err and err.count("\n") == 1
    assert not (files / words[1]).exists()


def test_a_model_without_float_layers_is_refused(files, tmp_path, capsys):
    first, second = tmp_path / "once.onnx", tmp_path / "twice.onnx"
    assert command(capsys, "convert", files / "tokens.onnx", first, "--quantize", "int8")[0] == 0
    status, _, err = command(capsys, "convert", first, second, "--quantize", "int8")
    assert status == 1 and "no linear layer, convolution or embedding" in err and not second.exists()
    with pytest.raises(SystemExit, match="2"):
        command(capsys, "convert", first, second, "--quantize", "int3")
