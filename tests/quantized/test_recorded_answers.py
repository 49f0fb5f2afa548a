"""Programs with quantized tensors answer what PyTorch answered (`tools/record_quantized_tensors.py`)."""

import json

import pytest

import torchlite as torch
from tests.quantized import cases

RECORDED = json.loads(cases.ANSWERS.read_text())
# Sums in another order, or float32 numbers that a qint32 step is smaller than.
NEAR = {
    "bilinear": 1, "avg_pool2d": 1, "adaptive_avg_pool2d": 1, "mean": 1, "mean keepdim": 1, "std": 1, "gelu": 1,
    "sigmoid": 512, "tanh": 512, "hardsigmoid": 512,
}  # fmt: skip


def test_all_programs_are_recorded():
    assert all(list(RECORDED[dtype]) == list(cases.PROGRAMS) for dtype in cases.ZERO_POINTS)


@pytest.mark.parametrize("dtype", cases.ZERO_POINTS)
@pytest.mark.parametrize("name", cases.PROGRAMS)
def test_programs_answer_as_in_pytorch(name, dtype):
    found, expected = json.loads(json.dumps(cases.answer(torch, name, dtype))), RECORDED[dtype][name]
    if name in NEAR:
        torch.testing.assert_close(
            torch.tensor(found[-1]), torch.tensor(expected[-1]), rtol=0, atol=NEAR[name] if dtype == "qint32" else 1
        )
        found, expected = found[:-1], expected[:-1]
    assert found == expected
