"""Products with weights of eight and four bits on devices: few and many rows, all dtypes, blocks and what is left."""

from __future__ import annotations

import pytest

import torchlite as torch

DTYPES = [torch.float32, torch.float16, torch.bfloat16]
STEPS = {torch.float32: 1e-5, torch.float16: 2**-10, torch.bfloat16: 2**-7}


def compare(found, want, dtype):
    """Compare with numbers in float64, by the size of the largest one."""
    assert found.dtype is dtype and tuple(found.shape) == tuple(want.shape)
    error = (found.cpu().double() - want).abs().max() / want.abs().max()
    assert error < STEPS[dtype]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("rows", [1, 3, 16, 17, 40])
@pytest.mark.parametrize("sizes", [(1, 1), (5, 7), (64, 130), (515, 33), (300, 64)])
def test_int8(sizes, rows, dtype, device):
    depth, columns = sizes
    x, scales = torch.randn(rows, depth, dtype=dtype), torch.rand(columns, dtype=dtype) + 0.5
    weight = torch.randint(-128, 128, (columns, depth), dtype=torch.int8)
    want = (x.double() @ weight.double().t()) * scales.double()
    compare(torch._weight_int8pack_mm(*(t.to(device) for t in (x, weight, scales))), want, dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("rows", [1, 6, 64, 65])
@pytest.mark.parametrize("group", [32, 64, 128])
@pytest.mark.parametrize("columns", [16, 64, 128, 176])
def test_int4(columns, group, rows, dtype, device):
    depth = 384
    x, numbers = torch.randn(rows, depth, dtype=dtype), torch.randint(0, 16, (columns, depth), dtype=torch.int32)
    factors = torch.rand(depth // group, columns, 2, dtype=dtype) + 0.1
    packed = torch._convert_weight_to_int4pack_for_cpu(numbers, 2)
    scale, zero = (factors[..., i].double().t().repeat_interleave(group, 1) for i in (0, 1))
    want = x.double() @ ((numbers.double() - 8) * scale + zero).t()
    found = torch._weight_int4pack_mm_for_cpu(x.to(device), packed.to(device), group, factors.to(device))
    compare(found, want, dtype)


def test_blocks_of_many_rows(monkeypatch, device):
    """Weights of more than one block are converted block by block."""
    linalg = pytest.importorskip("torchlite_backends.device_runtime.linalg.packed_weights")
    monkeypatch.setattr(linalg, "_BLOCK", 1 << 13)
    test_int8((200, 130), 20, torch.float32, device)
    test_int4(176, 64, 70, torch.float32, device)


@pytest.mark.parametrize("offset", [1, 3])
def test_parts_of_arrays(offset, device):
    """Arrays that do not begin where their memory does."""
    x, scales = torch.randn(3 + offset, 40), torch.rand(9 + offset)
    weight = torch.randint(-128, 128, (9 + offset, 40), dtype=torch.int8)
    want = (x[offset:].double() @ weight[offset:].double().t()) * scales[offset:].double()
    parts = [t.to(device)[offset:] for t in (x, weight, scales)]
    compare(torch._weight_int8pack_mm(*parts), want, torch.float32)


@pytest.mark.parametrize("rows", [1, 5, 9])
def test_half_precision(rows, device):
    """Weights of `linear_prepack_fp16`, whose products have float32's sums."""
    x, weight, bias = torch.randn(2, rows, 70), torch.randn(33, 70) / 8, torch.randn(33)
    want = x.double() @ weight.half().double().t() + bias
    packed = torch.ops.quantized.linear_prepack_fp16(weight.to(device), bias.to(device))
    compare(torch.ops.quantized.linear_dynamic_fp16(x.to(device), packed), want, torch.float32)
    compare(torch.ops.quantized.linear_relu_dynamic_fp16(x.to(device), packed), want.clamp(min=0), torch.float32)


@pytest.mark.parametrize("rows", [1, 9])
def test_as_on_a_gpu(rows, any_form):
    """The kernels that a GPU would be given, on OpenCL's device."""
    test_int8((515, 33), rows, torch.float32, any_form)
    test_int4(176, 32, rows, torch.bfloat16, any_form)
