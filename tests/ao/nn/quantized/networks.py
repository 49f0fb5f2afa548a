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


# Arguments and options of recurrent layers and cells.
LAYERS: dict[str, tuple[str, dict[str, Any]]] = {
    "lstm": ("LSTM", {"num_layers": 2, "bidirectional": True, "batch_first": True}),
    "gru": ("GRU", {}),
    "gru both ways": ("GRU", {"num_layers": 2, "bidirectional": True}),
}
CELLS: dict[str, tuple[str, dict[str, Any]]] = {
    "lstm cell": ("LSTMCell", {}), "gru cell": ("GRUCell", {}), "rnn cell": ("RNNCell", {}),
    "relu cell": ("RNNCell", {"nonlinearity": "relu"}),
}  # fmt: skip


def run_recurrent(torch: Any, name: str, made: Any, x: Any, h: Any) -> list[Any]:
    """The results of a layer or a cell: without states, with them, and of a packed sequence."""
    states = (h, h) if name.startswith("lstm") else h
    found = [made(x), made(x, states)]
    if name in LAYERS:
        lengths, first = torch.tensor([3, 5]), LAYERS[name][1].get("batch_first", False)
        packed = torch.nn.utils.rnn.pack_padded_sequence(x, lengths, first, enforce_sorted=False)
        output, last = made(packed, states)
        found.append([output.data, last])
    return found


def _record_recurrent(torch: Any, name: str) -> dict[str, Any]:
    kind, options = (LAYERS | CELLS)[name]
    plain = getattr(torch.nn, kind)(3, 4, **options)
    made = torch.ao.quantization.quantize_dynamic(torch.nn.Sequential(plain))[0]
    first = options.get("batch_first", False)
    x = torch.randn(2, 3) if name in CELLS else torch.randn(2, 5, 3) if first else torch.randn(5, 2, 3)
    count = options.get("num_layers", 1) * (1 + options.get("bidirectional", False))
    h = torch.randn(2, 4) if name in CELLS else torch.randn(count, 2, 4)
    weights = {**made.get_weight(), **made.get_bias()}
    results = run_recurrent(torch, name, made, x, h)
    return {"weights": weights, "x": x, "h": h, "results": results, "text": repr(made)}


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
    found["recurrent"] = {name: _record_recurrent(torch, name) for name in (*LAYERS, *CELLS)}
    made = quantization.quantize_dynamic(layers)
    found["dynamic"] = {"state": made.state_dict(), "x": rows, "y": made(rows), "text": repr(made)}
    return found
