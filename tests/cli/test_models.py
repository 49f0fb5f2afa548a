"""`python -m torchlite run`, `show` and `convert` of files of models."""

import itertools
import json
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

import torchlite as torch
from torchlite import __main__ as program
from torchlite._cli.models import is_model_command
from torchlite._cli.models.layered_layout import layout_boxes
from torchlite._cli.models.svg_graph import Box, draw_graph

SVG = "{http://www.w3.org/2000/svg}"


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Conv2d(1, 2, 3)
        self.last = torch.nn.Linear(8, 3)

    def forward(self, image):
        seen = self.first(image).relu()
        return self.last(seen.flatten(1)), seen


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The same network in each format."""
    folder = tmp_path_factory.mktemp("models")
    torch.manual_seed(0)
    net, image = Net().eval(), torch.ones(2, 1, 4, 4)
    torch.jit.trace(net, image).save(folder / "net.pt")
    torch.export.save(torch.export.export(net, (image,)), folder / "net.pt2")
    torch.onnx.export(net, (image,), folder / "net.onnx", input_names=["image"], dynamo=True)
    torch.save(net.state_dict(), folder / "weights.pt")
    (folder / "cut.pt").write_bytes((folder / "net.pt").read_bytes()[:500])
    (folder / "text.onnx").write_bytes(b"hello")
    np.save(folder / "image.npy", np.linspace(0, 1, 32, dtype=np.float32).reshape(2, 1, 4, 4))
    return folder, net


def command(capsys, *words):
    status = program.main([str(word) for word in words])
    out, err = capsys.readouterr()
    return status, out, err


@pytest.mark.parametrize("ending", ["pt", "pt2", "onnx"])
def test_run_matches_the_module(files, ending, tmp_path, capsys, device):
    folder, net = files
    words = ["--input", folder / "image.npy", "--output", tmp_path / "out.npz", "--device", device]
    status, out, err = command(capsys, "run", folder / f"net.{ending}", *words)
    assert (status, err) == (0, "")
    assert "float32 [2, 1, 4, 4]" in out and "float32 [2, 3]" in out
    image = torch.from_numpy(np.load(folder / "image.npy"))
    with np.load(tmp_path / "out.npz") as found:
        for name, expected in zip(found.files, net(image), strict=True):
            np.testing.assert_allclose(found[name], expected.detach().numpy(), rtol=1e-5, atol=1e-6)


def test_run_takes_inputs_by_name_and_times_ops(files, tmp_path, capsys):
    folder, _ = files
    np.savez(tmp_path / "in.npz", image=np.zeros((2, 1, 4, 4), np.float32))
    status, out, _ = command(
        capsys, "run", folder / "net.onnx", "--input", tmp_path / "in.npz", "--time", "--repeat", 2
    )
    assert status == 0 and "from 0 to 0" in out and "ms a call" in out and "aten::conv2d" in out


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["net.pt"], "does not say what shape its input 'image' has"),
        (["net.onnx", "--shape", "3x4"], "the input 'image' is float32 [2, 1, 4, 4], but got float32 [3, 4]"),
        (["net.pt2", "--shape", "2x1x4x4:float64"], "but got float64 [2, 1, 4, 4]"),
        (["net.onnx", "--input", "cut.pt"], "it is no .npy or .npz file of NumPy's"),
        (["cut.pt"], "cut.pt: a zip archive that is damaged or was cut short"),
        (["text.onnx"], "text.onnx: no ONNX model"),
        (["net.onnx", "--shape", "1y4"], "expected sizes with an x between"),
        (["net.onnx", "--shape", "2x1x4x4:float99"], "no dtype 'float99'"),
        (["net.onnx", "--shape", "2x1x4x4", "--shape", "1"], "has 1 inputs, and each was given"),
        (["net.pt2", "--output", "out.txt"], "ends in .npz or .npy"),
        (["weights.pt"], "no program; load it with torch.load"),
        (["absent.onnx"], "absent.onnx: No such file"),
    ],
)
def test_errors_take_one_line(files, words, error, capsys):
    folder, _ = files
    words = [folder / word if word.endswith(".pt") else word for word in words]
    status, _, err = command(capsys, "run", folder / words[0], *words[1:])
    assert status == (2 if {"1y4", "2x1x4x4:float99", "out.txt"} & set(words) else 1)
    assert err.count("\n") == 1 and error in err


@pytest.mark.parametrize("command_words", [("show",), ("run",), ("convert", "other.onnx")])
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.pt", b"\x80junk"), ("b.pt", b"PK\x03\x04junk"), ("c.pt2", b""), ("d.onnx", b"\xff" * 3000),
        ("e.onnx", None), ("f.pt", b"no model"),
    ],
)  # fmt: skip
def test_unreadable_files_are_one_line(command_words, name, content, tmp_path, capsys):
    file = tmp_path / name
    if content is None:
        file.mkdir()
    else:
        file.write_bytes(content)
    words = [command_words[0], file, *(tmp_path / word for word in command_words[1:])]
    status, out, err = command(capsys, *words)
    assert (status, out) == (1, "") and err.count("\n") == 1
    assert err.startswith(f"python -m torchlite {command_words[0]}: error: {file}: ")


@pytest.mark.parametrize(
    ("words", "status", "error"),
    [
        (["run", "net.onnx", "--output", "/nonexistent/x.npz"], 1, "there is no folder /nonexistent"),
        (["show", "net.onnx", "--picture", "/nonexistent/x.svg"], 1, "there is no folder /nonexistent"),
        (["show", "net.onnx", "--picture", "x.png"], 2, "expected a name that ends in .svg"),
        (["convert", "net.onnx", "/nonexistent/x.pt2"], 1, "there is no folder /nonexistent"),
        (["run", "net.onnx", "--device", "nosuch"], 2, "there is no device 'nosuch': usable here "),
        (["show", "net.onnx", "--device", "nosuch"], 2, "there is no device 'nosuch': usable here "),
        (["run", "--device", "nosuch", "net.onnx"], 2, "there is no device 'nosuch': usable here "),
    ],
)
def test_arguments_are_checked_before_the_model_is_read(words, status, error, capsys):
    """There is no net.onnx here."""
    found, out, err = command(capsys, *words)
    assert (found, out) == (status, "") and error in err and err.count("\n") == 1


@pytest.mark.parametrize("ending", ["pt2", "onnx"])
def test_show_prints_json(files, ending, capsys):
    folder, _ = files
    status, out, _ = command(capsys, "show", folder / f"net.{ending}", "--json", "--device", "cpu")
    found = json.loads(out)
    assert status == 0 and list(found) == [
        "path", "format", "bytes", "inputs", "outputs", "parameters", "buffers", "ops", "devices", "picture",
    ]  # fmt: skip
    assert found["format"] == ending and found["bytes"] == (folder / f"net.{ending}").stat().st_size
    assert found["inputs"] == [{"name": "image", "dtype": "float32", "shape": [2, 1, 4, 4]}]
    assert found["parameters"] == {"tensors": 4, "numbers": 47, "bytes": 188}
    assert found["devices"] == {"cpu": []} and sum(found["ops"].values()) >= 3


def test_show_names_ops_as_the_onnx_file_does(files, capsys):
    found = json.loads(command(capsys, "show", files[0] / "net.onnx", "--json")[1])
    assert found["ops"]["Conv"] == 1 and set(found["ops"]) <= {
        "Conv",
        "Relu",
        "Reshape",
        "Flatten",
        "Gemm",
        "MatMul",
        "Add",
    }


def test_show_goes_on_where_a_size_of_one_does_not_fit(tmp_path, capsys):
    """The convolution's kernel is wider than one number."""
    net, size = torch.nn.Conv1d(1, 2, 3).eval(), torch.export.Dim("length", min=3)
    program = torch.onnx.export(net, (torch.ones(1, 1, 8),), dynamo=True, dynamic_shapes={"input": {2: size}})
    program.save(tmp_path / "net.onnx")
    status, out, err = command(capsys, "show", tmp_path / "net.onnx")
    assert (status, err) == (0, "") and "Conv 1" in out and "devices     not tried: " in out
    status, out, err = command(capsys, "show", tmp_path / "net.onnx", "--shape", "1x1x5")
    assert (status, err) == (0, "") and "on cpu      every op" in out
    status, out, err = command(capsys, "show", tmp_path / "net.onnx", "--shape", "1x1x2")
    assert (status, out) == (1, "") and "Kernel size" in err


def test_show_prints_json_of_a_checkpoint(files, capsys):
    found = json.loads(command(capsys, "show", files[0] / "weights.pt", "--json")[1])
    assert list(found) == ["path", "format", "bytes", "values"] and found["format"] == "checkpoint"
    assert found["values"][0] == {"name": "['first.weight']", "dtype": "float32", "shape": [2, 1, 3, 3]}


@pytest.mark.parametrize("ending", ["pt", "pt2", "onnx"])
def test_show_describes_and_draws_a_file(files, ending, tmp_path, capsys):
    folder, _ = files
    shape = ["--shape", "2x1x4x4"] if ending == "pt" else []
    picture = tmp_path / "net.svg"
    status, out, err = command(
        capsys, "show", folder / f"net.{ending}", *shape, "--device", "cpu", "--picture", picture
    )
    assert (status, err) == (0, "")
    assert "image" in out and "4 tensors, 47 numbers" in out and "on cpu      every op" in out
    tree = ElementTree.parse(picture).getroot()
    texts = [found.text for found in tree.iter(f"{SVG}text")]
    assert texts[0].startswith("image") and texts[-1] == "output"
    assert sum("conv" in text.lower() for text in texts) == 1


def test_show_lists_the_tensors_of_a_checkpoint(files, capsys):
    folder, _ = files
    status, out, _ = command(capsys, "show", folder / "weights.pt")
    assert status == 0 and "['first.weight']  float32 [2, 1, 3, 3]" in out and "['last.bias']  float32 [3]" in out


@pytest.mark.parametrize(("source", "target"), list(itertools.permutations(["pt", "pt2", "onnx"], 2)))
def test_converted_models_match(files, source, target, tmp_path, capsys):
    folder, _ = files
    shape = ["--shape", "2x1x4x4"] if source == "pt" else []
    written = tmp_path / f"other.{target}"
    status, out, err = command(capsys, "convert", folder / f"net.{source}", written, *shape)
    assert (status, err) == (0, "")
    assert float(out.rpartition(" ")[2]) < 1e-6 and written.exists()


def test_convert_to_an_unknown_format_is_refused(files, tmp_path, capsys):
    status, _, err = command(capsys, "convert", files[0] / "net.onnx", tmp_path / "net.bin")
    assert status == 2 and "ends in .pt2, .onnx" in err


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["run", "model.onnx"], True), (["run", "model.PT2"], True), (["run", "script.py", "model.onnx"], False),
        (["run", "-m", "package"], False), (["show", "op", "add"], False), (["show", "model.pt"], True),
        (["convert"], True), (["run"], False), ([], False),
    ],
)  # fmt: skip
def test_which_command_is_meant(words, meant):
    assert is_model_command(words) is meant


def test_layers_are_drawn_below_their_inputs_without_overlap():
    random = np.random.default_rng(3)
    edges = [(int(random.integers(0, end)), end) for end in range(1, 40) for _ in range(2)]
    found = layout_boxes([float(width) for width in random.integers(40, 120, 40)], edges)
    for (start, end), path in zip(edges, found.paths, strict=True):
        assert found.places[start].layer < found.places[end].layer
        layers = [found.places[place].layer for place in path]
        assert layers == list(range(layers[0], layers[0] + len(path)))
    for layer in range(found.layers):
        row = sorted((place for place in found.places if place.layer == layer), key=lambda place: place.x)
        for left, right in itertools.pairwise(row):
            assert left.x + left.width / 2 <= right.x - right.width / 2
    assert min(place.x - place.width / 2 for place in found.places) == 0


def test_pictures_escape_names():
    text = draw_graph([Box("a<b>", "x & y", "input"), Box("out", "", "output", (0,))], "<model>")
    tree = ElementTree.fromstring(text)
    assert [found.text for found in tree.iter(f"{SVG}text")] == ["a<b>", "out"]
    assert len(list(tree.iter(f"{SVG}path"))) == 1
