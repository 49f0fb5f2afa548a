"""One case of each of ONNX's ops, from its own tests, with the answers."""

import io
import pathlib
import zipfile

import numpy as np
import pytest

import torchlite as torch

ARCHIVE = pathlib.Path(__file__).parent / "files" / "nodes.zip"


def names() -> list[str]:
    with zipfile.ZipFile(ARCHIVE) as archive:
        return sorted(name.removesuffix(".onnx") for name in archive.namelist() if name.endswith(".onnx"))


@pytest.mark.parametrize("name", names())
def test_an_op(name):
    with zipfile.ZipFile(ARCHIVE) as archive:
        module = torch.onnx.load(archive.read(f"{name}.onnx"))
        given = np.load(io.BytesIO(archive.read(f"{name}.npz")))
    inputs = [torch.from_numpy(given[f"input_{i}"]) for i in range(sum(n.startswith("input") for n in given.files))]
    found = module(*inputs)
    found = found if isinstance(found, tuple) and not hasattr(found, "_fields") else (found,)
    wanted = [given[f"output_{i}"] for i in range(sum(n.startswith("output") for n in given.files))]
    assert len(found) == len(wanted)
    for got, want in zip(found, wanted, strict=True):
        assert str(got.dtype).rpartition(".")[2] == want.dtype.name and tuple(got.shape) == want.shape
        np.testing.assert_allclose(got.detach().numpy(), want, rtol=1e-3, atol=1e-6)
