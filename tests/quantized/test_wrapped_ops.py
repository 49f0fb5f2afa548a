"""`torch.ops._quantized`: packed weights that are plain tensors, beside the layers of `torch.ops.quantized`."""

from __future__ import annotations

import pytest

import torchlite as torch
from torchlite.nn import functional as F

ops = torch.ops._quantized


def operands():
    torch.manual_seed(1)
    return torch.randn(3, 5), torch.randn(4, 5), torch.randn(4)


def test_half_precision_weights_saturate():
    x, w, bias = operands()
    packed = ops.wrapped_fbgemm_pack_gemm_matrix_fp16(w)
    expected = F.linear(x, w.to(torch.float16).to(torch.float32), bias)
    assert torch.equal(ops.wrapped_fbgemm_linear_fp16_weight(x, packed, bias, 4), expected)
    large = ops.wrapped_fbgemm_pack_gemm_matrix_fp16(torch.tensor([[1e6, -1e6]]))
    out = ops.wrapped_fbgemm_linear_fp16_weight(torch.tensor([[1.0, 0.0], [0.0, 1.0]]), large, torch.zeros(1), 1)
    assert out.tolist() == [[65504.0], [-65504.0]]


def test_levels_scale_zero_point_and_bias_are_in_one_tensor():
    x, w, bias = operands()
    given = torch.tensor(0.05), torch.tensor(70)
    result = torch.tensor(0.1), torch.tensor(60)
    qx = torch.quantize_per_tensor(x, *given, torch.quint8)
    weight = torch.quantize_per_tensor(w, 0.1, -3, torch.qint8)
    expected = torch.ops.quantized.linear(qx, torch.ops.quantized.linear_prepack(weight, bias), 0.1, 60).dequantize()
    scale, zero_point = torch.tensor(0.1), torch.tensor(-3)
    packed = ops._wrapped_linear_prepack(w, scale, zero_point, bias)
    assert torch.equal(ops._wrapped_quantized_linear_prepacked(x, *given, packed, *result, 4), expected)
    assert torch.equal(ops.wrapped_quantized_linear(x, *given, w, scale, zero_point, bias, *result, 4), expected)
    with pytest.raises(RuntimeError, match="expected a packed weight of 5 x 5"):
        ops._wrapped_quantized_linear_prepacked(x, *given, packed, *result, 5)


def test_compiled_functions_call_them():
    def function(x, w, bias):
        packed = torch.ops._quantized.wrapped_fbgemm_pack_gemm_matrix_fp16(w)
        return torch.ops._quantized.wrapped_fbgemm_linear_fp16_weight(x, packed, bias, w.size(0))

    given = operands()
    compiled = torch.compile(function)
    for _ in range(3):
        assert torch.equal(compiled(*given), function(*given))


def test_some_are_ops_of_quantized_layers():
    x, w, bias = operands()
    qx, weight = torch.quantize_per_tensor(x, 0.05, 70, torch.quint8), torch.quantize_per_tensor(w, 0.1, 0, torch.qint8)
    packed = ops.linear_prepack(weight, bias)
    assert torch.equal(ops.linear(qx, packed, 0.1, 60), torch.ops.quantized.linear(qx, packed, 0.1, 60))
    assert torch.equal(ops.linear_dynamic(x, packed), torch.ops.quantized.linear_dynamic(x, packed))
    filters = torch.quantize_per_tensor(torch.ones(2, 1, 2, 2), 0.5, 0, torch.qint8)
    packed = ops.conv2d_prepack(filters, None, [1, 1], [0, 0], [1, 1], 1)
    image = torch.quantize_per_tensor(torch.ones(1, 1, 3, 3), 0.5, 0, torch.quint8)
    assert ops.conv2d_relu(image, packed, 1.0, 0).dequantize().unique().tolist() == [4.0]
