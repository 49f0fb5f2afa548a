"""Casts and products of half precision, with NumPy and with an engine's kernels."""

import functools

import ml_dtypes
import numpy as np
import pytest

import torchlite as torch
from torchlite_backends.cc import cxx_compiler, native_half
from torchlite_backends.cc.device import Device
from torchlite_backends.numpy import half_casts

F = torch.nn.functional
SINGLE = np.dtype("f4")
HALVES = [np.dtype("f2"), np.dtype(ml_dtypes.bfloat16)]


_device = functools.cache(Device)


@pytest.fixture(params=["numpy", "cc"])
def engine(request, monkeypatch):
    cast = gemv = None
    if request.param == "cc":
        if cxx_compiler.why_not():
            pytest.skip(cxx_compiler.why_not())
        cast, gemv = (functools.partial(call, _device()) for call in (native_half.cast, native_half.half_gemv))
    monkeypatch.setattr(half_casts.native_halves, "cast", cast)
    monkeypatch.setattr(half_casts.native_halves, "gemv", gemv)
    return request.param


@pytest.mark.parametrize("half", HALVES, ids=str)
def test_all_halves_are_widened(engine, half):
    values = np.arange(1 << 16, dtype=np.uint16).view(half)
    for part in (values, values[3:], values[: (1 << 16) - 5], values[::2], values.reshape(256, 256).T):
        assert np.array_equal(half_casts.cast_half(part, SINGLE), part.astype(SINGLE), equal_nan=True)


def test_a_gradient_that_is_one_number_is_rounded(engine):
    x = torch.ones(2, dtype=torch.float16, requires_grad=True)
    (x.sum() * torch.tensor(3.0)).backward()
    assert x.grad.dtype is torch.float16 and x.grad.tolist() == [3.0, 3.0]


@pytest.mark.parametrize("half", HALVES, ids=str)
def test_floats_are_rounded_to_even(engine, half):
    wide = np.arange(1 << 16, dtype=np.uint16).view(half).astype(SINGLE)
    wide = wide[np.isfinite(wide)]
    between = (wide[1:] / 2 + wide[:-1] / 2).astype(SINGLE)
    near = np.concatenate([between, np.nextafter(between, SINGLE.type(np.inf)), np.nextafter(between, SINGLE.type(0))])
    special = np.array([np.inf, -np.inf, np.nan, 3.4e38, -3.4e38, 65504, 65519, 65520, 1e-45, -0.0], SINGLE)
    with np.errstate(over="ignore"):
        for x in (near, np.tile(special, 1001), np.tile(-special, 1003)[:-3]):
            found, expected = half_casts.cast_half(x, half), x.astype(half)
            nan = np.isnan(x)
            assert np.array_equal(found.view(np.uint16)[~nan], expected.view(np.uint16)[~nan])
            assert np.isnan(found.astype(SINGLE)[nan]).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("shape", [(100, 100), (1000, 37), (7, 4099), (129, 64), (3, 5)], ids=str)
def test_products(engine, dtype, shape):
    torch.manual_seed(0)
    m, k = shape
    matrix, row, column, bias = (torch.randn(s).to(dtype) for s in ((m, k), (k,), (m,), (m,)))
    close = {"rtol": 2e-2 if dtype is torch.bfloat16 else 2e-3, "atol": 1e-2}
    wide = matrix.double()
    expected = wide @ row.double()
    for out in (
        matrix @ row,
        torch.mv(matrix, row),
        row @ matrix.T,
        (row[None] @ matrix.T)[0],
        (matrix @ row[:, None])[:, 0],
        F.linear(row, matrix),
        F.linear(row[None], matrix)[0],
        torch.cat([matrix, matrix], 1)[:, :k] @ row,
    ):
        assert out.dtype == dtype and torch.allclose(out.double(), expected, **close)
    out = F.linear(row[None, None], matrix, bias)
    assert out.shape == (1, 1, m) and torch.allclose(out[0, 0].double(), expected + bias.double(), **close)
    assert torch.allclose((column @ matrix).double(), column.double() @ wide, **close)
    assert torch.allclose((matrix @ matrix.T).double(), wide @ wide.T, rtol=2e-2, atol=0.1)
    assert torch.allclose(torch.addmv(bias, matrix, row).double(), expected + bias.double(), **close)


def test_a_product_is_summed_in_single_precision(engine):
    """Sums in half precision would stop at 2048, or at 256."""
    for dtype in (torch.float16, torch.bfloat16):
        ones = torch.ones(70, 4096, dtype=dtype)
        assert (ones @ ones[0]).tolist() == [4096.0] * 70
        assert F.linear(ones[:1], ones, 0 * ones[0, :70]).tolist() == [[4096.0] * 70]


def test_gradients(engine):
    x = torch.randn(1, 128, dtype=torch.float16, requires_grad=True)
    weight = torch.randn(96, 128, dtype=torch.float16, requires_grad=True)
    F.linear(x, weight).sum().backward()
    assert torch.allclose(x.grad.float(), weight.detach().float().sum(0)[None], rtol=2e-3, atol=1e-2)
    assert torch.equal(weight.grad, x.detach().expand(96, 128))


def test_casts_of_large_tensors(engine):
    x = torch.linspace(-100, 100, 300 * 300).reshape(300, 300)
    for dtype in (torch.float16, torch.bfloat16):
        half = x.to(dtype)
        expected = x.numpy().astype(half._tl_array.dtype)
        assert np.array_equal(half._tl_array.view(np.uint16), expected.view(np.uint16))
        assert np.array_equal(half.float().numpy(), expected.astype(SINGLE))
        assert np.array_equal(half.T.float().numpy(), expected.astype(SINGLE).T)
        assert torch.equal(half.to(torch.int32).float(), half.float().trunc())
        assert x.to(torch.int16).dtype == torch.int16


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("half", [torch.float16, torch.bfloat16], ids=str)
def test_convolutions_and_sigmoids_round_once(half):
    """Their operands are widened by these casts, and their results rounded by them."""
    torch.manual_seed(0)
    x, weight, bias = torch.randn(2, 24, 20, 20), torch.randn(32, 24, 3, 3) / 8, torch.randn(32)
    x, weight, bias = (tensor.to(half) for tensor in (x, weight, bias))
    for options in ({"padding": 1}, {"stride": 2}):
        found = F.conv2d(x, weight, bias, **options)
        want = F.conv2d(x.float(), weight.float(), bias.float(), **options)
        assert found.dtype == half and torch.equal(found, want.to(half))
    for tensor in (x, x[:, :, ::2], x[0, 0, 0, 0]):
        assert torch.equal(tensor.sigmoid(), tensor.float().sigmoid().to(half))


@pytest.mark.parametrize("half", HALVES, ids=str)
def test_copies_into_another_precision(engine, half):
    rng = np.random.default_rng(0)
    for source_dtype, target_dtype in ((SINGLE, half), (half, SINGLE)):
        source = (rng.standard_normal((300, 257)) * 1e-4).astype(source_dtype)
        source[3, ::5], source[4, ::7], source[5] = np.nan, -np.inf, -0.0
        expected = source.astype(target_dtype)
        target = np.ones(source.shape, target_dtype)
        assert half_casts.copy_half(target, source)
        nan = np.isnan(source)
        assert np.array_equal(np.isnan(target), nan)
        assert (target.view(f"u{target.itemsize}") == expected.view(f"u{target.itemsize}"))[~nan].all()
        assert not half_casts.copy_half(target[:, ::2], source[:, ::2])
        assert not half_casts.copy_half(target, source[0])  # which broadcasts
        assert not half_casts.copy_half(target[:1, :5], source[:1, :5])
        assert not half_casts.copy_half(source.copy(), source)
    memory = np.ones(1 << 16, SINGLE)
    assert not half_casts.copy_half(memory.view(half)[: 1 << 15], memory[: 1 << 15])  # the same memory


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_copy_of_tensors(dtype):
    wide = torch.linspace(-1e-4, 1e-4, 40_000).reshape(200, 200)
    for source, target in ((wide, torch.ones(200, 200).to(dtype)), (wide.to(dtype), torch.ones(200, 200))):
        expected = source.to(target.dtype)
        assert torch.equal(target.copy_(source), expected)
        assert torch.equal(target.zero_().t().copy_(source), expected) and torch.equal(target, expected.t())
        assert torch.equal(target.copy_(source[0]), expected[:1].expand(200, 200))
