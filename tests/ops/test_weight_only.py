"""Products with packed weights and scaled products answer what PyTorch answered
(`tools/record_quantized_tensors.py`).
"""

import json

import pytest

import torchlite as torch
from tests.ops import weight_only_cases

RECORDED = json.loads(weight_only_cases.ANSWERS.read_text())
# Sums in another order may be rounded to the next number of the dtype.
STEPS = {"torch.bfloat16": 2**-7, "torch.float16": 2**-9}


@pytest.mark.parametrize("call", weight_only_cases.CALLS)
def test_calls_answer_as_in_pytorch(call):
    check(call, "cpu")


@pytest.mark.parametrize("call", [c for c in weight_only_cases.CALLS if '"meta"' not in c and "scaled" not in c])
def test_calls_answer_as_in_pytorch_on_a_device(call, device):
    check(call, device)


def check(call, device):
    found, expected = json.loads(json.dumps(weight_only_cases.answer(torch, call, device))), RECORDED[call]
    if expected[0] in STEPS or expected[0] in ("torch.float32", "torch.float64"):
        assert found[:2] == expected[:2]
        step = STEPS.get(expected[0], 2e-5)
        torch.testing.assert_close(torch.tensor(found[2]), torch.tensor(expected[2]), rtol=step, atol=step)
    elif expected[0] == "NotImplementedError":
        assert found[0] == expected[0] and found[1].partition("'CPU'")[0] in found[1]
    else:
        assert found == expected


def test_all_calls_are_recorded():
    assert list(RECORDED) == weight_only_cases.CALLS


def test_wrong_shapes_are_refused():
    """PyTorch reads memory that is not the tensor's."""
    i = weight_only_cases.inputs(torch)
    with pytest.raises(RuntimeError, match="expect qScaleAndZeros of 2 groups, got 1"):
        torch._weight_int4pack_mm_for_cpu(i["x"], i["p"], 32, i["f"][:1])
    for x in (i["x"][:, :32], i["x"][0], i["x"][None]):
        with pytest.raises(RuntimeError, match=r"expect input of the shape \[:, 64\]"):
            torch._dyn_quant_matmul_4bit(x, i["q"], 32, 64, 8)
    with pytest.raises(RuntimeError, match="Group size"):
        torch._dyn_quant_pack_4bit_weight(i["u"], i["d"], None, 0, 64, 8)


def test_scales_of_any_strides_are_read():
    """PyTorch reads them as if they were contiguous."""
    i = weight_only_cases.inputs(torch)
    strided = i["f"].transpose(0, 1).contiguous().transpose(0, 1)
    found = torch._weight_int4pack_mm_for_cpu(i["x"], i["p"], 32, strided)
    assert torch.equal(found, torch._weight_int4pack_mm_for_cpu(i["x"], i["p"], 32, i["f"]))


@pytest.mark.parametrize("rows", [16, 48, 64, 80, 128])
def test_packed_numbers_are_those_of_their_rows(rows):
    """Products with rows of a unit matrix give the weights back."""
    weight = torch.randint(0, 16, (rows, 64), dtype=torch.int32)
    packed = torch._convert_weight_to_int4pack_for_cpu(weight, 2)
    factors = torch.stack([torch.ones(2, rows), torch.full((2, rows), 8.0)], -1)
    assert torch.equal(torch._weight_int4pack_mm_for_cpu(torch.eye(64), packed, 32, factors).t(), weight.float())
