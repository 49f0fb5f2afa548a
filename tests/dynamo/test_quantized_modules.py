"""Quantized modules under `torch.compile`: a graph reads packed parameters as constants."""

import copy

import pytest

import torchlite as torch
from torchlite.ao import quantization


class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.enter, self.leave = quantization.QuantStub(), quantization.DeQuantStub()
        self.conv, self.relu = torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU()
        self.linear = torch.nn.Linear(8 * 6 * 6, 5)

    def forward(self, x):
        x = self.relu(self.conv(self.enter(x)))
        return self.leave(self.linear(torch.flatten(x, 1)))


def make_static():
    network = Network().eval()
    network.qconfig = quantization.QConfig(
        quantization.MinMaxObserver.with_args(quant_min=0, quant_max=127), quantization.default_weight_observer
    )
    prepared = quantization.prepare(network)
    prepared(torch.randn(4, 3, 8, 8))
    return quantization.convert(prepared), (2, 3, 8, 8)


def make_dynamic():
    layers = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 8))
    return quantization.quantize_dynamic(layers, {torch.nn.Linear}, torch.qint8), (4, 64)


@pytest.mark.parametrize("make", [make_static, make_dynamic])
def test_a_graph_gives_the_results_of_the_module(make):
    torch.manual_seed(0)
    network, shape = make()
    compiled = torch.compile(network, fullgraph=True)
    for _ in range(4):
        x = torch.randn(shape)
        assert torch.equal(compiled(x), network(x))


def test_functions_of_quantized_tensors_may_be_loaded_in_a_capture():
    network, shape = make_static()
    compiled = torch.compile(network, fullgraph=True)
    for _ in range(4):
        torch._resolve_quantized_module.cache_clear()  # as where nothing has used them
        compiled(torch.randn(shape))


def test_a_graph_of_a_module_that_ran_before():
    """Arguments that eager calls keep are no constants of a graph."""
    network, shape = make_static()
    x = torch.randn(shape)
    expected = [network(x) for _ in range(2)][1]
    compiled = torch.compile(network, fullgraph=True)
    assert all(torch.equal(compiled(x), expected) for _ in range(3))


class Int8(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Buffer(torch.randint(-99, 99, (64, 32), dtype=torch.int8))
        self.scales = torch.nn.Buffer(torch.rand(64))

    def forward(self, x):
        return torch._weight_int8pack_mm(x, self.weight, self.scales)


class Int4(torch.nn.Module):
    def __init__(self):
        super().__init__()
        numbers = torch.randint(0, 16, (80, 32), dtype=torch.int32)
        self.weight = torch.nn.Buffer(torch._convert_weight_to_int4pack_for_cpu(numbers, 2))
        self.factors = torch.nn.Buffer(torch.rand(1, 80, 2))

    def forward(self, x):
        return torch._weight_int4pack_mm_for_cpu(x, self.weight, 32, self.factors)


class Levels(Int8):
    def forward(self, x):
        return torch._int_mm((x * 9).to(torch.int8), self.weight.t()) * self.scales


@pytest.mark.parametrize("make", [Int8, Int4, Levels])
def test_programs_have_products_with_packed_weights(make, tmp_path):
    """Compiled functions and loaded modules call the kernels of these products."""
    torch.manual_seed(0)
    network, x = make(), torch.randn(3, 32)
    expected = network(x)
    compiled = torch.compile(network, fullgraph=True)
    torch.jit.save(torch.jit.trace(network, x), tmp_path / "network.pt")
    loaded = torch.jit.load(tmp_path / "network.pt")
    exported = torch.export.export(network, (x,)).module()
    for function in (compiled, loaded, exported):
        for _ in range(3):
            assert torch.equal(function(x), expected)
        other = torch.randn(3, 32)
        assert torch.equal(function(other), network(other))


def test_other_weights_are_seen():
    network, shape = make_dynamic()
    other = copy.deepcopy(network)
    compiled = torch.compile(network, fullgraph=True)
    x = torch.randn(shape)
    for _ in range(3):
        compiled(x)
    weight = torch.quantize_per_tensor(torch.randn(32, 64), 0.02, 0, torch.qint8)
    for module in (network, other):
        module[0].set_weight_bias(weight, torch.ones(32))
    assert torch.equal(compiled(x), other(x))


@pytest.mark.parametrize("make", [make_static, make_dynamic])
def test_autocast_leaves_quantized_layers_as_they_are(make):
    network, shape = make()
    x = torch.randn(shape)
    with torch.autocast("cpu"):
        found = network(x)
    assert found.dtype is torch.float32 and torch.equal(found, network(x))
