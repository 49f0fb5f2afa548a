"""Networks of quantized modules, for torchlite and for PyTorch (`tools/record_quantized_tensors.py`)."""

from __future__ import annotations

import pathlib
from typing import Any

WRITTEN = pathlib.Path(__file__).with_name("networks.pt")


def make_float_network(torch: Any) -> Any:
    """A network for static quantization, with stubs."""

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.quant, self.dequant = torch.ao.quantization.QuantStub(), torch.ao.quantization.DeQuantStub()
            self.conv, self.act = torch.nn.Conv2d(1, 4, 3, padding=1), torch.nn.Hardswish()
            self.sum = torch.ao.nn.quantized.FloatFunctional()
            self.norm, self.last = torch.nn.LayerNorm([6]), torch.nn.Linear(4 * 36, 5)

        def forward(self, x: Any) -> Any:
            x = self.conv(self.quant(x))
            x = self.norm(self.sum.add(x, self.act(x)))
            return self.dequant(self.last(x.flatten(1)))

    return Net().eval()


def make_quantized_network(torch: Any) -> Any:
    """The network that PyTorch makes of it, with untrained parameters."""
    q, parameter = torch.ao.nn.quantized, torch.nn.Parameter
    net = make_float_network(torch)
    net.quant, net.dequant, net.sum = q.Quantize(1.0, 0, torch.quint8), q.DeQuantize(), q.QFunctional()
    net.conv, net.act = q.Conv2d(1, 4, 3, padding=1), q.Hardswish(1.0, 0)
    net.norm = q.LayerNorm([6], parameter(torch.ones(6)), parameter(torch.ones(6)), 1.0, 0)
    net.last = q.Linear(4 * 36, 5)
    return net


def make_float_layers(torch: Any) -> Any:
    """Linear layers for dynamic quantization."""
    return torch.nn.Sequential(torch.nn.Linear(6, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))


def make_dynamic_layers(torch: Any) -> Any:
    """The layers that PyTorch makes of them."""
    dynamic = torch.ao.nn.quantized.dynamic
    return torch.nn.Sequential(dynamic.Linear(6, 4), torch.nn.ReLU(), dynamic.Linear(4, 2))


def record(torch: Any) -> dict[str, Any]:
    """What PyTorch makes of the networks: states, texts, inputs and results."""
    quantization = torch.ao.quantization
    torch.manual_seed(0)
    net, x = make_float_network(torch), torch.randn(8, 1, 6, 6)
    net.qconfig = quantization.get_default_qconfig("x86")
    found: dict[str, Any] = {"float static": net.state_dict()}
    prepared = quantization.prepare(net)
    prepared(x)
    made = quantization.convert(prepared)
    found["static"] = {"state": made.state_dict(), "x": x, "y": made(x), "text": repr(made)}
    layers, rows = make_float_layers(torch), torch.randn(5, 6)
    found["float dynamic"] = layers.state_dict()
    made = quantization.quantize_dynamic(layers)
    found["dynamic"] = {"state": made.state_dict(), "x": rows, "y": made(rows), "text": repr(made)}
    return found
