"""RNN, GRU, LSTM and DynamicQuantizeLSTM against onnxruntime's recorded results."""

from __future__ import annotations

import io
import pathlib
import zipfile

import numpy as np
import pytest

import torchlite as torch
from tests.hostile.onnx_files import info, model, node
from torchlite._dynamo.compiled_function import COMPILED_FUNCTIONS
from torchlite.onnx._export.graph_builder import make_tensor

ARCHIVE = pathlib.Path(__file__).parent / "files" / "recurrent.zip"
with zipfile.ZipFile(ARCHIVE) as _archive:
    CASES = sorted(name[:-5] for name in _archive.namelist() if name.endswith(".onnx"))


def read(case):
    """The model's bytes, its inputs and its results."""
    with zipfile.ZipFile(ARCHIVE) as archive:
        arrays = np.load(io.BytesIO(archive.read(f"{case}.npz")))
        return (
            archive.read(f"{case}.onnx"),
            [arrays[name] for name in arrays if name[0] == "i"],
            [arrays[name] for name in arrays if name[0] == "o"],
        )


def function_of(module):
    return next(f for f in COMPILED_FUNCTIONS if getattr(f, "module", lambda: None)() is module)


@pytest.mark.parametrize("case", CASES)
def test_layer(case, device):
    data, given, wanted = read(case)
    module = torch.onnx.load(data).to(device)
    inputs = [torch.from_numpy(value).to(device) for value in given]
    with torch.no_grad():
        for call in range(5):  # the later ones are optimized
            found = module(*inputs)
            for got, want in zip(found, wanted, strict=True):
                got = got.cpu().numpy()
                assert got.dtype == want.dtype and got.shape == want.shape
                np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5, err_msg=str(call))
    assert function_of(module).replays and not function_of(module).reasons
    if not case.startswith("DynamicQuantize"):  # gradients come from the same steps, as single ops
        inputs[0].requires_grad_()
        for got, want in zip(module(*inputs), wanted, strict=True):
            np.testing.assert_allclose(got.detach().cpu().numpy(), want, rtol=2e-5, atol=2e-5)
        (grad,) = torch.autograd.grad(module(*inputs)[0].sum(), inputs[0])
        assert grad.shape == inputs[0].shape and grad.isfinite().all()


@pytest.mark.parametrize("case", [c for c in CASES if c.endswith(("_lengths", "_all", "i1_True"))])
def test_steps_are_one_kernel(case, device):
    data, given, _ = read(case)
    module = torch.onnx.load(data).to(device)
    with torch.no_grad():
        for _ in range(3):
            module(*[torch.from_numpy(value).to(device) for value in given])
    (variant,) = (v for found in function_of(module).variants.values() for v in found if v.replay is not None)
    text = variant.replay.forward.text
    assert text.count("_recurrent_steps(") == 1 and "tanh(" not in text


@pytest.mark.parametrize("case", [c for c in CASES if c.endswith(("_lengths", "_one")) and "Dynamic" not in c])
def test_other_sizes(case, device):
    """Another number of steps, of sequences, and other lengths, against gradients' path."""
    data, given, _ = read(case)
    module = torch.onnx.load(data).to(device)
    x, *rest = [torch.from_numpy(value).to(device) for value in given]
    if rest:
        lengths, *states = rest
    for steps in (2, 7, 1):
        inputs = [torch.cat([x] * 2)[:steps]]
        if rest:
            inputs += [lengths.clamp(max=steps), *states]
        for _ in range(4):
            with torch.no_grad():
                found = module(*inputs)
        for got, want in zip(found, module(*inputs), strict=True):
            torch.testing.assert_close(got, want.detach(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("op", ["RNN", "GRU", "LSTM"])
@pytest.mark.parametrize("clip", [None, 0.5])
def test_layout(op, clip, device):
    """Batches come first with `layout=1`, which onnxruntime's CPU kernels refuse."""
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[op]
    random = np.random.default_rng(0)
    weights = [random.standard_normal(shape).astype("f4") for shape in ((2, gates * 4, 3), (2, gates * 4, 4))]
    outputs = ["y", "h"] + ["c"] * (op == "LSTM")
    options = {"hidden_size": 4, "direction": "bidirectional", **({} if clip is None else {"clip": clip})}
    found = []
    x = torch.from_numpy(random.standard_normal((5, 2, 3)).astype("f4")).to(device)
    for layout in (0, 1):
        one = node(op, ["x", "w", "r"], outputs, layout=layout, **options)
        values = [make_tensor(name, value, "float32") for name, value in zip("wr", weights, strict=True)]
        module = torch.onnx.load(model([one], [info("x", 2, 5, 3) if layout else info("x", 5, 2, 3)], outputs, values))
        with torch.no_grad():
            found.append(module.to(device)(x.transpose(0, 1) if layout else x))
    y, *last = found[1]
    torch.testing.assert_close(y.permute(1, 2, 0, 3), found[0][0])
    for got, want in zip(last, found[0][1:], strict=True):
        torch.testing.assert_close(got.transpose(0, 1), want)


def test_levels_that_are_not_numbers(device):
    """A state of NaN gives NaN, in every kernel."""
    data, given, wanted = read("DynamicQuantizeLSTM_forward_peepholes")
    module = torch.onnx.load(data).to(device)
    inputs = [torch.from_numpy(value).to(device) for value in given]
    inputs[1][0, 0, 0] = torch.nan
    with torch.no_grad():
        for _ in range(4):
            found = module(*inputs)
            assert found[0].shape == wanted[0].shape and found[0].isnan().any()


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"activations": ["Tanh", "Cube"]}, "there is no activation 'Cube'"),
        ({"activations": ["Sigmoid"]}, "1 activations for 1 directions of 2 each"),
        ({"direction": "sideways"}, "there is no direction 'sideways'"),
    ],
)
def test_refusals(attributes, message):
    from torchlite.onnx._import.recurrent import gru

    with pytest.raises(ValueError, match=message):
        gru(torch.ones(2, 1, 3), torch.ones(1, 12, 3), torch.ones(1, 12, 4), **attributes)
    with pytest.raises(ValueError, match="2 lengths for a batch of 1"):
        gru(torch.ones(2, 1, 3), torch.ones(1, 12, 3), torch.ones(1, 12, 4), None, torch.tensor([1, 2]))
