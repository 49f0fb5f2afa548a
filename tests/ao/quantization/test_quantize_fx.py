"""Traced and quantized networks have PyTorch's graphs and layers, and its numbers to one step of the last scale."""

from __future__ import annotations

import copy
import io
import json

import pytest

import torchlite as torch
from tests.ao.quantization import graph_cases
from torchlite.ao.quantization import quantize_fx

RECORDED = json.loads(graph_cases.ANSWERS.read_text())


def test_all_networks_are_recorded():
    assert list(RECORDED) == list(graph_cases.NETWORKS)


@pytest.mark.parametrize("name", graph_cases.NETWORKS)
def test_networks_answer_as_in_pytorch(name):
    found, wanted = graph_cases.answer(torch, name), dict(RECORDED[name])
    step = wanted.pop("step")
    assert {key: found[key] for key in wanted if "numbers" not in key} == {
        key: value for key, value in wanted.items() if "numbers" not in key
    }
    for key in (key for key in wanted if "numbers" in key):
        assert found[key] == pytest.approx(wanted[key], abs=step + 1e-5, rel=0)


class TestErrors:
    def test_convert_needs_a_graph(self):
        with pytest.raises(ValueError, match="input model must be a GraphModule"):
            quantize_fx.convert_fx(torch.nn.Linear(1, 1))

    def test_layers_that_are_fused_have_one_configuration(self):
        model = torch.nn.Sequential(torch.nn.Conv2d(1, 1, 1), torch.nn.ReLU()).eval()
        mapping = torch.ao.quantization.QConfigMapping()
        mapping.set_object_type(torch.nn.Conv2d, torch.ao.quantization.default_qconfig)
        with pytest.raises(LookupError, match="the same qconfigs"):
            quantize_fx.prepare_fx(model, mapping, (torch.ones(1, 1, 1, 1),))


@pytest.mark.filterwarnings("ignore:Please use quant_min")
def test_state_of_packed_weights_is_loaded():
    class Network(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.randn(3, 2))

        def forward(self, x):
            return torch.nn.functional.linear(x, self.weight)

    def made(x):
        mapping = torch.ao.quantization.get_default_qconfig_mapping("fbgemm")
        prepared = quantize_fx.prepare_fx(Network().eval(), mapping, (x,))
        prepared(x)
        return quantize_fx.convert_fx(prepared)

    x = torch.randn(4, 2)
    first, second = made(x), made(2 * x)
    assert not torch.equal(first(x), second(x))
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    assert torch.equal(first(x), second(x))


@pytest.mark.filterwarnings("ignore:Please use quant_min")
def test_a_pooled_tensor_stays_quantized():
    mapping = torch.ao.quantization.get_default_qconfig_mapping("fbgemm")
    x = torch.rand(2, 3, 4, 4)
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 3, 1), torch.nn.MaxPool2d(2)).eval()

    class Pooled(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = model[0]

        def forward(self, x):
            return torch.nn.functional.max_pool2d(self.conv(x), 2)

    outputs = []
    for net in (model, Pooled().eval()):
        prepared = quantize_fx.prepare_fx(net, mapping, (x,))
        prepared(x)
        converted = quantize_fx.convert_fx(prepared)
        assert [node.target for node in converted.graph.nodes][-2] == "dequantize"
        outputs.append(converted(x))
    assert torch.equal(*outputs)


@pytest.mark.parametrize("dynamic", [False, True])
def test_converted_graphs_are_scripted_and_saved(dynamic):
    torch.manual_seed(0)
    net, x = (
        torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU(), torch.nn.Linear(3, 2)).eval(),
        torch.randn(5, 4),
    )
    qconfig = torch.ao.quantization.default_dynamic_qconfig if dynamic else torch.ao.quantization.default_qconfig
    mapping = torch.ao.quantization.QConfigMapping().set_global(qconfig)
    prepared = torch.ao.quantization.quantize_fx.prepare_fx(net.eval(), mapping, (x,))
    prepared(x)
    made, stream = torch.ao.quantization.quantize_fx.convert_fx(prepared), io.BytesIO()
    torch.jit.save(torch.jit.script(made), stream)
    stream.seek(0)
    assert torch.equal(torch.jit.load(stream)(x), made(x))
