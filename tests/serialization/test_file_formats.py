"""The functions that read files: an error for a file of another format names the function that reads it."""

import io

import pytest

import torchlite as torch
from torchlite._serialization.file_formats import detect_file_format

LOADERS = {"pt2": torch.export.load, "torchscript": torch.jit.load, "onnx": torch.onnx.load, "checkpoint": torch.load}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder, net, example = tmp_path_factory.mktemp("files"), torch.nn.Linear(2, 2), (torch.ones(1, 2),)
    paths = {kind: folder / f"net.{suffix}" for kind, suffix in zip(LOADERS, ("pt2", "ts", "onnx", "pt"), strict=True)}
    torch.export.save(torch.export.export(net, example), paths["pt2"])
    torch.jit.trace(net, example).save(paths["torchscript"])
    torch.onnx.export(net, example, paths["onnx"])
    torch.save(net.state_dict(), paths["checkpoint"])
    return paths


@pytest.mark.parametrize("kind", LOADERS)
@pytest.mark.parametrize("other", LOADERS)
def test_the_wrong_function_names_the_right_one(files, kind, other):
    assert detect_file_format(files[other]) == other
    if kind == other:
        LOADERS[kind](files[other])
    elif (kind, other) == ("checkpoint", "torchscript"):  # PyTorch's torch.load reads these with weights_only=False
        with pytest.raises(RuntimeError, match="with TorchScript archives"):
            torch.load(files[other])
    else:
        name = {"pt2": "export.load", "torchscript": "jit.load", "onnx": "onnx.load", "checkpoint": "load"}[other]
        for arguments in ({"f": str(files[other])}, {"f": files[other]}):
            with pytest.raises(Exception, match=rf"holds .*: read it by torch\.{name}$") as caught:
                LOADERS[kind](**arguments)
            assert isinstance(caught.value, type(caught.value.__cause__))


def test_damaged_and_open_files_have_the_errors_of_their_format(files, tmp_path):
    cut = tmp_path / "cut.pt2"
    cut.write_bytes(files["pt2"].read_bytes()[:300])
    with pytest.raises(RuntimeError, match="PytorchStreamReader"):
        torch.export.load(cut)
    with pytest.raises(RuntimeError, match="PytorchStreamReader"):
        torch.jit.load(io.BytesIO(files["onnx"].read_bytes()))
    with pytest.raises(FileNotFoundError):
        torch.load(tmp_path / "absent")
