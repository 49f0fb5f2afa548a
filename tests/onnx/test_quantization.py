"""Integer products against onnxruntime's recorded results, level by level."""

from __future__ import annotations

import io
import pathlib
import zipfile

import numpy as np
import pytest

import torchlite as torch
from torchlite._dynamo.compiled_function import COMPILED_FUNCTIONS

ARCHIVE = pathlib.Path(__file__).parent / "files" / "quantized.zip"
with zipfile.ZipFile(ARCHIVE) as _archive:
    CASES = sorted(name[:-5] for name in _archive.namelist() if name.endswith(".onnx"))
OPS = [case for case in CASES if not case.startswith("graph_")]
GRAPHS = [case for case in CASES if case.startswith("graph_")]


def read(case):
    """The model's bytes, its inputs and its results."""
    with zipfile.ZipFile(ARCHIVE) as archive:
        arrays = np.load(io.BytesIO(archive.read(f"{case}.npz")))
        return (
            archive.read(f"{case}.onnx"),
            [arrays[name] for name in arrays if name[0] == "i"],
            [arrays[name] for name in arrays if name[0] == "o"],
        )


def run(module, inputs):
    found = module(*inputs)
    return [x.cpu().numpy() for x in (found if isinstance(found, tuple) else (found,))]


@pytest.mark.parametrize("case", OPS)
def test_op(case, device):
    model, given, wanted = read(case)
    module = torch.onnx.load(model).to(device)
    inputs = [torch.from_numpy(value).to(device) for value in given]
    with torch.no_grad():
        for _ in range(5):  # the later ones are optimized
            for got, want in zip(run(module, inputs), wanted, strict=True):
                assert got.dtype == want.dtype and np.array_equal(got, want)


@pytest.mark.parametrize("case", GRAPHS)
def test_graph(case, device):
    """Eager calls compute in floats, optimized ones on levels."""
    model, given, wanted = read(case)
    module = torch.onnx.load(model).to(device)
    inputs = [torch.from_numpy(value).to(device) for value in given]
    with torch.no_grad():
        for number in range(5):
            (got,), (want,) = run(module, inputs), wanted
            assert got.dtype == want.dtype
            if number == 4 and device == "cpu":
                assert np.array_equal(got, want)
            elif want.dtype.kind == "f":
                np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
            else:
                assert np.abs(got.astype(int) - want.astype(int)).max() <= 1
    if device == "cpu":
        (function,) = [found for found in COMPILED_FUNCTIONS if found.module() is module]
        (variant,) = [v for found in function.variants.values() for v in found if v.replay is not None]
        text = variant.replay.forward.text
        assert "_quantized_" in text
        assert not any(f"= {name}(" in text for name in ("matmul", "linear", "convolution"))
        if "dynamic" in case:  # the product adds the bias, and multiplies by the scale
            assert not any(f"= {name}(" in text for name in ("to", "add"))
