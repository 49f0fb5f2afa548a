"""`python -m torchlite convert MODEL module.py`: what it writes, refuses and leaves alone."""

import hashlib
import importlib.util
import re

import numpy as np
import pytest

import torchlite as torch
from torchlite import __main__ as program
from torchlite._cli.models import numpy_program


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = torch.nn.Conv2d(1, 2, 3), torch.nn.Linear(8, 3)

    def forward(self, image):
        return self.last(self.first(image).relu().flatten(1))


class Noise(torch.nn.Module):
    def forward(self, x):
        return torch.rand_like(x) + torch.randn_like(x)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    torch.manual_seed(0)
    net, image = Net().eval(), torch.ones(2, 1, 4, 4)
    torch.jit.trace(net, image).save(folder / "net.pt")
    torch.export.save(torch.export.export(net, (image,)), folder / "net.pt2")
    torch.onnx.export(net, (image,), folder / "net.onnx", input_names=["image"], dynamo=True)
    torch.onnx.export(Noise(), (torch.ones(2, 3),), folder / "noise.onnx", dynamo=True)
    torch.onnx.export(torch.nn.ReLU(), (torch.ones(2, 3),), folder / "relu.onnx", dynamo=True)
    torch.save(net.state_dict(), folder / "weights.pt")
    return folder, net


def command(capsys, *words):
    status = program.main([str(word) for word in words])
    out, err = capsys.readouterr()
    return status, out, err


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("ending", ["pt", "pt2", "onnx"])
def test_a_program_is_written_and_compared(files, ending, tmp_path, capsys):
    folder, net = files
    shape = ["--shape", "2x1x4x4"] if ending == "pt" else []
    status, out, err = command(capsys, "convert", folder / f"net.{ending}", tmp_path / "net.py", *shape)
    assert (status, err) == (0, "") and float(out.rpartition(" ")[2]) < 1e-6
    assert sorted(p.name for p in tmp_path.iterdir()) == ["net.npz", "net.py"]
    text = (tmp_path / "net.py").read_text()
    assert hashlib.sha256((tmp_path / "net.npz").read_bytes()).hexdigest() in text
    assert f'"net.{ending}"' in text and torch.__version__ in text and "import net" in text
    module, image = load(tmp_path / "net.py"), torch.rand(2, 1, 4, 4)
    np.testing.assert_allclose(module.forward(image.numpy()), net(image).detach().numpy(), rtol=1e-5, atol=1e-6)
    assert {name: (str(a.dtype), a.shape) for name, a in module.load_weights().items()} == module.WEIGHTS


def test_a_model_without_weights_is_one_file(files, tmp_path, capsys):
    assert command(capsys, "convert", files[0] / "relu.onnx", tmp_path / "relu.py")[0] == 0
    assert [p.name for p in tmp_path.iterdir()] == ["relu.py"]
    assert (load(tmp_path / "relu.py").forward(np.float32([[1, -1, 0]] * 2)) == [[1, 0, 0]] * 2).all()


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda w: w.pop("last.bias"), "there is no array last.bias"),
        (lambda w: w.update({"last.bias": w["last.bias"][:2]}), r"last.bias is float32 \(2,\), not float32 \(3,\)"),
        (lambda w: w.update({"last.bias": w["last.bias"].astype("f8")}), "last.bias is float64"),
        (lambda w: w.update({"last.bias": np.array([None] * 3)}), "Object arrays cannot be loaded"),
    ],
    ids=["missing", "shape", "dtype", "objects"],
)
def test_other_weights_are_refused(files, change, text, tmp_path, capsys):
    command(capsys, "convert", files[0] / "net.onnx", tmp_path / "net.py")
    with np.load(tmp_path / "net.npz") as file:
        weights = dict(file)
    change(weights)
    np.savez(tmp_path / "net.npz", **weights)
    with pytest.raises(ValueError, match=text):
        load(tmp_path / "net.py").forward(np.ones((2, 1, 4, 4), "f"))


def test_all_refused_parts_are_named_and_nothing_is_written(files, tmp_path, capsys):
    status, out, err = command(capsys, "convert", files[0] / "noise.onnx", tmp_path / "noise.py")
    assert (status, out) == (1, "") and len(err.splitlines()) == 1
    assert (
        "cannot express 2 of its parts" in err and "RandomUniformLike (node" in err and "RandomNormalLike (node" in err
    )
    assert not list(tmp_path.iterdir())


def test_refused_ops_of_a_program_are_named(tmp_path, capsys):
    class Net(torch.nn.Module):
        def forward(self, x):
            return torch.linalg.eigh(x @ x.T)[0] + torch.special.i1e(x)

    torch.export.save(torch.export.export(Net(), (torch.rand(3, 3),)), tmp_path / "net.pt2")
    status, _, err = command(capsys, "convert", tmp_path / "net.pt2", tmp_path / "net.py")
    assert status == 1 and "eigh" in err and "i1e" in err and "cannot express 2" in err
    assert [p.name for p in tmp_path.iterdir()] == ["net.pt2"]


def test_a_checkpoint_is_no_program(files, tmp_path, capsys):
    status, _, err = command(capsys, "convert", files[0] / "weights.pt", tmp_path / "net.py")
    assert status == 1 and "and no program" in err and not list(tmp_path.iterdir())


def test_a_written_program_is_replaced(files, tmp_path, capsys):
    folder, _ = files
    assert command(capsys, "convert", folder / "relu.onnx", tmp_path / "net.py")[0] == 0
    assert command(capsys, "convert", folder / "net.onnx", tmp_path / "net.py")[0] == 0
    assert load(tmp_path / "net.py").forward(np.ones((2, 1, 4, 4), "f")).shape == (2, 3)


def test_other_files_are_not_replaced(files, tmp_path, capsys):
    (tmp_path / "net.py").write_text("class Net: pass\n")
    status, _, err = command(capsys, "convert", files[0] / "net.onnx", tmp_path / "net.py")
    assert status == 1 and "no program that convert wrote" in err
    assert (tmp_path / "net.py").read_text() == "class Net: pass\n"
    np.savez(tmp_path / "data.npz", x=np.ones(3))
    status, _, err = command(capsys, "convert", files[0] / "net.onnx", tmp_path / "data.py")
    assert status == 1 and "would replace" in err and not (tmp_path / "data.py").exists()
    assert np.load(tmp_path / "data.npz")["x"].shape == (3,)


@pytest.mark.parametrize("name", ["my-net.py", "class.py", "1.py", "a b.py"])
def test_a_name_that_cannot_be_imported_is_refused(files, name, tmp_path, capsys):
    status, _, err = command(capsys, "convert", files[0] / "net.onnx", tmp_path / name)
    assert status == 2 and "no module can be imported by the name" in err and not list(tmp_path.iterdir())


def test_a_failed_write_leaves_the_old_files(files, tmp_path, capsys, monkeypatch):
    folder, _ = files
    command(capsys, "convert", folder / "net.onnx", tmp_path / "net.py")
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    made = numpy_program.replace_file

    def failing(path, **options):
        if str(path).endswith(".npz"):
            raise OSError(28, "No space left on device", str(path))
        return made(path, **options)

    monkeypatch.setattr(numpy_program, "replace_file", failing)
    status, _, err = command(capsys, "convert", folder / "net.pt2", tmp_path / "net.py")
    assert status == 1 and re.search("net.npz: No space left", err)
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before


def test_a_program_that_does_not_run_is_not_written(files, tmp_path, capsys, monkeypatch):
    from torchlite.onnx import _numpy_program
    from torchlite.onnx._numpy_program.graph_reader import RULES

    assert _numpy_program.write_program
    monkeypatch.setitem(RULES, "Relu", lambda w, n: f"np.nothing({n.text(0)})")
    status, _, err = command(capsys, "convert", files[0] / "net.onnx", tmp_path / "net.py")
    assert status == 1 and "nothing" in err and not list(tmp_path.iterdir())
