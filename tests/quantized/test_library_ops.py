"""`torch.ops.quantized` answers what PyTorch answered (`tools/record_quantized_tensors.py`)."""

import copy
import json
import pickle

import pytest

import torchlite as torch
from tests.quantized import library_cases

RECORDED = json.loads(library_cases.ANSWERS.read_text())


def _flatten(value):
    if isinstance(value, list):
        return [part for item in value for part in _flatten(item)]
    return [value]


@pytest.mark.parametrize("name", library_cases.CALLS)
def test_ops_answer_as_in_pytorch(name):
    """Integers may differ by one, where PyTorch rounds a product before it is scaled."""
    found, expected = _flatten(json.loads(json.dumps(library_cases.answer(torch, name)))), _flatten(RECORDED[name])
    if RECORDED[name][0] in ("torch.quint8", "torch.qint8", "float32"):
        assert found[0] == expected[0] and len(found) == len(expected)
        near = 1 if "q" in found[0] else 2e-6
        torch.testing.assert_close(torch.tensor(found[1:]), torch.tensor(expected[1:]), rtol=2e-6, atol=near)
    else:
        assert found == expected


def test_all_calls_are_recorded():
    assert list(RECORDED) == list(library_cases.CALLS)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_integer_convolutions_are_those_of_the_numbers(rank):
    i = library_cases.Inputs(torch)
    image = torch.quantize_per_tensor(i.floats(2, 4, *(7, 6, 5)[:rank]), 0.05, 64, torch.quint8)
    packed = i.conv(rank)
    ops = torch.ops.quantized
    found = getattr(ops, f"conv{rank}d")(image, packed, 0.1, 90)
    weight, bias = getattr(ops, f"conv{rank}d_unpack")(packed)
    numbers = getattr(torch.nn.functional, f"conv{rank}d")(
        image.dequantize(), weight.dequantize(), bias, [2] + [1] * (rank - 1), 1, 1, 2
    )
    expected = torch.quantize_per_tensor(numbers, 0.1, 90, torch.quint8)
    assert (found.int_repr().int() - expected.int_repr().int()).abs().max() <= 1


def test_dynamic_convolutions_are_near_those_of_the_numbers():
    """PyTorch's sums overflow."""
    i = library_cases.Inputs(torch)
    packed = i.conv(2, 1)
    weight, bias = torch.ops.quantized.conv2d_unpack(packed)
    expected = torch.nn.functional.conv2d(i.image, weight.dequantize(), bias, (2, 1), 1)
    found = torch.ops.quantized.conv2d_dynamic(i.image, packed, False)
    step = torch.quantize_per_tensor_dynamic(i.image, torch.quint8, False).q_scale()
    limit = 0.51 * step * weight.dequantize().abs().sum((1, 2, 3))
    assert ((found - expected).abs() <= limit.view(-1, 1, 1)).all()


def test_relu_does_not_stay_with_the_weights():
    """In PyTorch, packed weights of a convolution keep the activation of their first call."""
    i = library_cases.Inputs(torch)
    packed, ops = i.conv(2), torch.ops.quantized
    assert ops.conv2d_relu(i.qimage, packed, 0.1, 90).int_repr().min() == 90
    assert ops.conv2d(i.qimage, packed, 0.1, 90).int_repr().min() < 90


def test_another_class_of_parameters_is_refused():
    i = library_cases.Inputs(torch)
    with pytest.raises((RuntimeError, TypeError)):
        torch.ops.quantized.linear(i.qx, i.conv(2), 0.1, 1)


@pytest.mark.parametrize("which", ["weight", "shifted", "rows"])
@pytest.mark.parametrize("dynamic", [False, True])
def test_weights_come_back_after_products(which, dynamic):
    """A kernel's form of the levels replaces them."""
    i, ops = library_cases.Inputs(torch), torch.ops.quantized
    weight = getattr(i, which)
    packed = ops.linear_prepack(weight, i.bias)
    ops.linear_dynamic(i.x, packed) if dynamic else ops.linear(i.qx, packed, 0.1, 60)
    assert packed._matrix._levels is None
    found, bias = ops.linear_unpack(packed)
    assert torch.equal(found.int_repr(), weight.int_repr()) and torch.equal(found.dequantize(), weight.dequantize())
    assert torch.equal(bias, i.bias)
    found._values.zero_()
    assert torch.equal(ops.linear_unpack(packed)[0].int_repr(), weight.int_repr())


def test_dynamic_layers_of_nothing_give_the_bias():
    i = library_cases.Inputs(torch)
    packed = torch.ops.quantized.linear_prepack(i.weight, i.bias)
    assert torch.ops.quantized.linear_dynamic(i.x[:0], packed).shape == (0, 6)


def test_packed_parameters_are_copied_and_pickled():
    i, ops = library_cases.Inputs(torch), torch.ops.quantized
    packed = ops.linear_prepack(i.rows, i.bias)
    expected = ops.linear_dynamic(i.x, packed)
    for copied in (copy.deepcopy(packed), pickle.loads(pickle.dumps(packed))):
        assert torch.equal(ops.linear_dynamic(i.x, copied), expected)


@pytest.mark.parametrize("name", ["cat", "cat_relu"])
def test_concatenation_refuses_mixed_dtypes_and_channels(name):
    function = getattr(torch.ops.quantized, name)
    x = torch.ones(2, 2)
    signed, unsigned = (torch.quantize_per_tensor(x, 1.0, 0, dtype) for dtype in (torch.qint8, torch.quint8))
    rows = torch.quantize_per_channel(x, torch.ones(2), torch.zeros(2), 0, torch.qint8)
    with pytest.raises(RuntimeError, match="All dtypes must be the same"):
        function([signed, unsigned], 0, 1.0, 0)
    for parts in ([rows, signed], [signed, rows]):
        with pytest.raises(RuntimeError, match="Only per-tensor quantization is supported in 'cat'!"):
            function(parts, 0, 1.0, 0)
    assert function([signed, signed], -1, 1.0, 0).shape == (2, 4)


@pytest.mark.parametrize("dtype", [torch.qint8, torch.quint8, torch.qint32])
@pytest.mark.parametrize("largest", [True, False])
def test_topk_takes_the_same_of_equal_elements_as_of_the_numbers(dtype, largest):
    torch.manual_seed(0)
    x = torch.quantize_per_tensor(torch.randn(5, 5, 5), 1.0, 0, dtype)
    for dim in range(3):
        found, expected = torch.topk(x, 2, dim, largest), torch.topk(x.dequantize(), 2, dim, largest)
        assert torch.equal(found.indices, expected.indices)
        assert torch.equal(found.values.dequantize(), expected.values)
