"""Quantized tensors in checkpoints."""

import io

import pytest

import torchlite as torch
from tests.quantized import cases
from torchlite._quantized import rebuild


def test_files_of_pytorch_are_read():
    found = torch.load(cases.WRITTEN, weights_only=True)
    x = cases.numbers(torch)
    assert torch.equal(found["tensor"], torch.quantize_per_tensor(x, 0.05, 7, torch.quint8))
    assert torch.equal(found["channels"], cases.per_channel(torch, None, x))
    found["view"][0, 0, 0] = 9.0
    assert found["tensor"][1, 0, 0, 0].item() == pytest.approx(9.0)


@pytest.mark.parametrize("weights_only", [True, False])
@pytest.mark.parametrize("zipped", [True, False])
def test_tensors_are_saved_and_loaded(zipped, weights_only, device):
    x = cases.numbers(torch).to(device)
    q = torch.quantize_per_tensor(x, 0.05, -3, torch.qint8)
    saved = {"q": q, "part": q[1], "net": torch.nn.Linear(2, 2).state_dict()}
    stream = io.BytesIO()
    torch.save(saved, stream, _use_new_zipfile_serialization=zipped)
    stream.seek(0)
    found = torch.load(stream, weights_only=weights_only)
    assert torch.equal(found["q"], q) and torch.equal(found["part"], q[1]) and found["q"].device == q.device
    assert torch.equal(found["net"]["weight"], saved["net"]["weight"])


@pytest.mark.parametrize(
    "quantizer",
    [
        None,
        (torch.per_tensor_affine, 0.1),
        (torch.per_tensor_affine, "0.1", 1),
        (torch.per_tensor_symmetric, 0.1, 1),
        ("per_tensor_affine", 0.1, 1),
        (torch.per_channel_affine, torch.ones(3), torch.zeros(3, dtype=torch.int64), 0),
        (torch.per_channel_affine, torch.ones(2), torch.zeros(2, dtype=torch.int64), 7),
        (torch.per_channel_affine_float_qparams, torch.ones(2), torch.zeros(2, dtype=torch.int64), 0),
        (torch.per_channel_affine, torch.ones(2, 1), torch.zeros(2, dtype=torch.int64), 0),
    ],
)
def test_damaged_quantizers_are_refused(quantizer):
    with pytest.raises(RuntimeError):
        rebuild(torch.zeros(2, 3, dtype=torch.uint8), quantizer)


def test_integers_of_other_dtypes_are_refused():
    with pytest.raises(RuntimeError, match="a quantized tensor has integers"):
        rebuild(torch.zeros(2), (torch.per_tensor_affine, 0.1, 0))
