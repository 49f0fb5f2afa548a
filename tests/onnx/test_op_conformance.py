"""One case of each of ONNX's ops, from its own tests, with the answers."""

import io
import pathlib
import zipfile

import numpy as np
import pytest

import torchlite as torch
from torchlite.onnx._export.graph_builder import make_tensor
from torchlite.onnx._protobuf import encode_message, parse_message

FILES = pathlib.Path(__file__).parent / "files"
ARCHIVES = ("nodes", "com_microsoft", "quantized")
INTEGERS = ("int64", "int32", "bool", "uint8")


def names(archive):
    with zipfile.ZipFile(FILES / f"{archive}.zip") as opened:
        return sorted(name.removesuffix(".onnx") for name in opened.namelist() if name.endswith(".onnx"))


def read(archive, name):
    """The model's bytes, its inputs and its results."""
    with zipfile.ZipFile(FILES / f"{archive}.zip") as opened:
        given = np.load(io.BytesIO(opened.read(f"{name}.npz")))
        arrays = [[given[key] for key in given.files if key[0] == kind] for kind in "io"]
        return opened.read(f"{name}.onnx"), *arrays


def run(module, inputs, device):
    with torch.no_grad():
        found = module.to(device)(*[torch.from_numpy(array).to(device) for array in inputs])
    return found if isinstance(found, tuple) and not hasattr(found, "_fields") else (found,)


def check(found, wanted):
    assert len(found) == len(wanted)
    for got, want in zip(found, wanted, strict=True):
        assert str(got.dtype).rpartition(".")[2] == want.dtype.name and tuple(got.shape) == want.shape
        largest = np.abs(want[np.isfinite(want)]).max(initial=1) if want.dtype.kind == "f" else 1
        np.testing.assert_allclose(got.cpu().numpy(), want, rtol=1e-3, atol=1e-6 * largest)


@pytest.mark.parametrize("name", names("nodes"))
def test_an_op(name, device):
    data, inputs, wanted = read("nodes", name)
    check(run(torch.onnx.load(data), inputs, device), wanted)


def with_constants(data, inputs, places):
    """A model whose inputs at some places are constants of the file, and the other inputs."""
    model = parse_message(data)
    given = list(model.graph.input)
    for place in places:
        model.graph.initializer = [
            *model.graph.initializer,
            make_tensor(given[place].name, inputs[place], inputs[place].dtype.name),
        ]
    model.graph.input = [item for place, item in enumerate(given) if place not in places]
    return b"".join(encode_message(model)), [array for place, array in enumerate(inputs) if place not in places]


def cases_of_constants():
    """For each op the inputs that stay on the host as constants: each one, and all together."""
    found = []
    for archive in ARCHIVES:
        with zipfile.ZipFile(FILES / f"{archive}.zip") as opened:
            for name in names(archive):
                arrays = np.load(io.BytesIO(opened.read(f"{name}.npz")))
                inputs = [arrays[key] for key in arrays.files if key[0] == "i"]
                small = [i for i, x in enumerate(inputs) if x.dtype.name in INTEGERS and x.size <= 64]
                choices = [[place] for place in small] + ([small] if len(small) > 1 else [])
                found += [(archive, name, places) for places in choices if len(places) < len(inputs)]
    return found


@pytest.mark.parametrize(("archive", "name", "places"), cases_of_constants())
def test_small_constants_of_the_file_meet_tensors_of_the_device(archive, name, places, device):
    data, inputs, _ = read(archive, name)
    wanted = run(torch.onnx.load(data), inputs, device)
    data, rest = with_constants(data, inputs, places)
    found = run(torch.onnx.load(data), rest, device)
    assert all(got.device.type == torch.device(device).type for got in found)
    assert len(found) == len(wanted)
    for got, want in zip(found, wanted, strict=True):
        assert got.dtype is want.dtype and np.array_equal(got.cpu().numpy(), want.cpu().numpy())
