"""Products of dequantized arrays in programs of loaded modules: where they use levels, and their values."""

from __future__ import annotations

import pytest

import torchlite as torch
from tests.dynamo.test_inference_function import function_of, steps_of, through_file

nn = torch.nn


def quantize(x, scale, zero, dtype=torch.uint8):
    limits = torch.iinfo(dtype)
    return (torch.round(x / scale) + zero).clamp(limits.min, limits.max).to(dtype)


def dequantize(levels, scale, zero):
    wide = levels.to(torch.float32)
    return (wide if zero is None else wide - zero) * scale


class Layer(nn.Module):
    """A product of quantized arrays. options: what differs from the usual case."""

    def __init__(self, **options):
        super().__init__()
        self.options = options
        generator = torch.Generator().manual_seed(0)
        dtype = options.get("dtype", torch.int8)
        limits = torch.iinfo(dtype)
        self.register_buffer("weight", torch.randint(limits.min, limits.max, (40, 30), generator=generator).to(dtype))
        self.register_buffer(
            "weight_scale", options.get("weight_scale", 0.01 + torch.rand(30, generator=generator) / 50)
        )
        self.register_buffer("weight_zero", options.get("weight_zero"))
        self.register_buffer("scale", options.get("scale", torch.tensor(0.02)))
        self.register_buffer("zero", options.get("zero", torch.tensor(117.0)))
        self.register_buffer("out_scale", torch.tensor(0.11))
        self.register_buffer("out_zero", torch.tensor(90.0))

    def forward(self, x):
        left = dequantize(quantize(x, self.scale, self.zero), self.scale, self.zero)
        out = left @ dequantize(self.weight, self.weight_scale, self.weight_zero)
        if self.options.get("plain"):
            return out
        levels = quantize(out, self.out_scale, self.out_zero)
        if self.options.get("narrow"):
            levels = quantize(out, self.out_scale, self.out_zero).clamp(3, 200)
        return (levels, out) if self.options.get("shown") else levels


def replayed(module, *inputs):
    """The results of an optimized call, and the names of its steps."""
    found = through_file("pt2", module.eval(), inputs)
    with torch.no_grad():
        for _ in range(5):
            got = found(*inputs)
    assert function_of(found).replays > 0, function_of(found).reasons
    return got, steps_of(found)


def product(layer, x):
    """The product in float64 of the levels, times the scale in float32."""
    left = quantize(x, layer.scale, layer.zero).to(torch.float64) - layer.zero
    right = layer.weight.to(torch.float64)
    right = right if layer.weight_zero is None else right - layer.weight_zero
    return (left @ right).to(torch.float32), layer.scale * layer.weight_scale


OPTIONS = [
    {},
    {"dtype": torch.uint8, "weight_zero": torch.tensor(120.0)},
    {"weight_zero": torch.arange(30.0) - 15},
    {"weight_scale": torch.tensor(0.03)},
    {"weight_scale": torch.tensor([0.03])},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("size", [(7, 40), (2, 3, 40)])
def test_levels(options, size):
    layer, x = Layer(**options), torch.randn(*size)
    got, text = replayed(layer, x)
    assert "_quantized_matmul" in text and "= matmul" not in text and "round" not in text.partition("_quantized")[2]
    total, scale = product(layer, x)
    assert torch.equal(got, quantize(total * (scale / layer.out_scale), torch.tensor(1.0), layer.out_zero))


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_float_result(options):
    layer, x = Layer(plain=True, **options), torch.randn(5, 40)
    got, text = replayed(layer, x)
    total, scale = product(layer, x)
    assert "_quantized_matmul" in text and torch.equal(got, total * scale)


@pytest.mark.parametrize("option", ["shown", "narrow"])
def test_result_that_is_not_only_quantized(option):
    """A product that is read elsewhere too, or whose levels end before those of their dtype."""
    layer, x = Layer(**{option: True}), torch.randn(6, 40)
    got, text = replayed(layer, x)
    total, scale = product(layer, x)
    out = total * scale
    levels = quantize(out, layer.out_scale, layer.out_zero)
    assert "_quantized_matmul" in text
    if option == "shown":
        assert torch.equal(got[0], levels) and torch.equal(got[1], out)
    else:
        # One step quantizes with one multiplication, which may round other ties otherwise.
        difference = got.to(torch.int32) - levels.clamp(3, 200).to(torch.int32)
        assert difference.abs().max() <= 1 and (difference != 0).sum() <= 2


@pytest.mark.parametrize(
    "options",
    [
        {"scale": torch.linspace(0.01, 0.03, 40)},  # a scale for each element of the sums
        {"zero": torch.tensor(100.5)},
        {"zero": torch.tensor(300.0)},
        {"weight_zero": torch.tensor(0.25)},
        {"weight_scale": torch.rand(40, 1) / 50},
    ],
    ids=str,
)
def test_products_that_stay_in_floats(options):
    layer, x = Layer(plain=True, **options), torch.randn(6, 40)
    got, text = replayed(layer, x)
    assert "_quantized" not in text
    torch.testing.assert_close(got, layer(x), rtol=1e-4, atol=1e-4)


class Linear(nn.Module):
    """A linear layer, or a convolution, with a bias that is a whole number of steps or another one."""

    def __init__(self, steps, size=0):
        super().__init__()
        self.size = size
        shape = (6, 8, *(3,) * size)
        self.register_buffer("weight", torch.randint(-128, 128, shape).to(torch.int8))
        self.register_buffer("scales", (0.01 + torch.rand(6) / 50).reshape(-1, *(1,) * (1 + size)))
        self.register_buffer("scale", torch.tensor(0.02))
        whole = torch.randint(-5000, 5000, (6,)).to(torch.int32)
        bias = whole.to(torch.float32) * (self.scale * self.scales.reshape(-1))
        self.register_buffer("whole", whole)
        self.register_buffer("bias", bias if steps else bias + 0.001)

    def forward(self, x):
        x = dequantize(quantize(x, self.scale, 99.0), self.scale, 99.0)
        weight = dequantize(self.weight, self.scales, None)
        if self.size:
            return getattr(nn.functional, f"conv{self.size}d")(x, weight, self.bias, stride=2, padding=1)
        return nn.functional.linear(x, weight, self.bias)


def levels_of(x):
    return quantize(x, torch.tensor(0.02), 99.0).to(torch.float64) - 99


def test_linear_layer():
    layer, x = Linear(True), torch.randn(5, 8)
    got, text = replayed(layer, x)
    assert "_quantized_matmul" in text
    total = levels_of(x) @ layer.weight.to(torch.float64).t() + layer.whole
    assert torch.equal(got, total.to(torch.float32) * (layer.scale * layer.scales.reshape(-1)))
    layer = Linear(False)
    got, text = replayed(layer, x)
    assert "_quantized_matmul" in text
    total = levels_of(x) @ layer.weight.to(torch.float64).t()
    want = total.to(torch.float32) * (layer.scale * layer.scales.reshape(-1)) + layer.bias
    torch.testing.assert_close(got, want, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_convolution(size):
    layer, x = Linear(True, size), torch.randn(2, 8, *(7,) * size)
    got, text = replayed(layer, x)
    assert "_quantized_convolution" in text
    function = getattr(nn.functional, f"conv{size}d")
    bias = layer.whole.to(torch.float64)
    total = function(levels_of(x), layer.weight.to(torch.float64), bias, stride=2, padding=1).round()
    assert torch.equal(got, total.to(torch.float32) * (layer.scale * layer.scales.reshape(1, -1, *(1,) * size)))
    got, text = replayed(Linear(False, size), x)
    assert "_quantized" not in text


@pytest.mark.parametrize("numbers", [False, True])
def test_two_varying_operands(numbers):
    class Scores(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("scale", torch.tensor(0.02))
            self.register_buffer("zero", torch.tensor(99.0))
            self.register_buffer("kept", torch.tensor(1.5))

        def forward(self, x, y):
            scale, zero = (0.02, 99.0) if numbers else (self.scale, self.zero)
            x, y = (dequantize(quantize(v, scale, zero), scale, zero) for v in (x, y))
            return x @ y + self.kept

    layer, x, y = Scores(), torch.randn(2, 3, 9, 16), torch.randn(3, 16, 20)
    got, text = replayed(layer, x, y)
    assert "_quantized_matmul" in text
    want = (levels_of(x) @ levels_of(y)).to(torch.float32) * (layer.scale * layer.scale) + layer.kept
    assert torch.equal(got, want)
