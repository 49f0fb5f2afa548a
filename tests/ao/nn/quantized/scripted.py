"""Networks of quantized modules whose TorchScript files PyTorch wrote (`tools/record_quantized_tensors.py`)."""

from __future__ import annotations

import io
import pathlib
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.jit.record import leaves, saved

WRITTEN = pathlib.Path(__file__).with_name("scripted.zip")


def _static(torch: Any, prepare: str = "prepare") -> tuple[Any, Any]:
    torch.manual_seed(0)

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.quant, self.dequant = torch.ao.quantization.QuantStub(), torch.ao.quantization.DeQuantStub()
            self.conv, self.relu, self.line = (
                torch.nn.Conv2d(2, 3, 3, padding=1),
                torch.nn.ReLU(),
                torch.nn.Conv1d(3, 3, 1),
            )
            self.back, self.sum = torch.nn.ConvTranspose2d(3, 3, 1), torch.ao.nn.quantized.FloatFunctional()
            self.last, self.act, self.norm = torch.nn.Linear(12, 4), torch.nn.Hardswish(), torch.nn.LayerNorm(4)
            self.back.qconfig = torch.ao.quantization.default_qconfig

        def forward(self, x):  # type: ignore[no-untyped-def]
            x = self.back(self.relu(self.conv(self.quant(x))))
            x = self.last(self.line(x.flatten(2)).flatten(1))
            return self.dequant(self.norm(self.act(self.sum.add(x, x))))

    net, quantization = Net(), torch.ao.quantization
    if prepare == "prepare":
        net.eval()
        net.qconfig = quantization.get_default_qconfig("x86")
        made = quantization.prepare(net)
    else:
        del net.back
        net.back = torch.nn.Identity()
        net.qconfig = quantization.get_default_qat_qconfig("x86")
        made = quantization.prepare_qat(net.train())
    made(torch.linspace(-2, 2, 32).reshape(4, 2, 2, 2))
    return quantization.convert(made.eval()), torch.linspace(-1, 1, 8).reshape(1, 2, 2, 2)


def _dynamic(torch: Any, dtype: str) -> tuple[Any, Any]:
    torch.manual_seed(0)

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm = torch.nn.LSTM(4, 3, 2, bidirectional=True)
            self.gru = torch.nn.GRU(6, 3, batch_first=True)
            self.cells = torch.nn.ModuleList(
                [torch.nn.LSTMCell(4, 3), torch.nn.GRUCell(4, 3), torch.nn.RNNCell(4, 3, nonlinearity="relu")]
            )
            self.last = torch.nn.Linear(3, 2)

        def forward(self, x):  # type: ignore[no-untyped-def]
            y, h = self.lstm(x)
            z, k = self.gru(y)
            return self.last(z), h, k, self.cells[0](x[0]), self.cells[1](x[0]), self.cells[2](x[0])

    kinds = {getattr(torch.nn, name) for name in ("LSTM", "GRU", "LSTMCell", "GRUCell", "RNNCell", "Linear")}
    made = torch.ao.quantization.quantize_dynamic(Net(), kinds, dtype=getattr(torch, dtype))
    return made, torch.linspace(-1, 1, 40).reshape(5, 2, 4)


def _embeddings(torch: Any) -> tuple[Any, Any]:
    torch.manual_seed(0)
    net = torch.nn.ModuleDict({"eight": torch.nn.Embedding(9, 12), "four": torch.nn.EmbeddingBag(9, 12, mode="sum")})
    quantization = torch.ao.quantization
    net["eight"].qconfig = quantization.float_qparams_weight_only_qconfig
    net["four"].qconfig = quantization.float_qparams_weight_only_qconfig_4bit
    net = quantization.convert(quantization.prepare(net))

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.eight, self.four = net["eight"], net["four"]

        def forward(self, x):  # type: ignore[no-untyped-def]
            return self.eight(x), self.four(x)

    return Net(), torch.tensor([[1, 8, 0], [2, 2, 7]])


NETWORKS: dict[str, Callable[[Any], tuple[Any, Any]]] = {
    "static": _static,
    "trained": lambda torch: _static(torch, "prepare_qat"),
    "dynamic": lambda torch: _dynamic(torch, "qint8"),
    "half": lambda torch: _dynamic(torch, "float16"),
    "embeddings": _embeddings,
}
FORMS = ("scripted", "traced")


def program_of(torch: Any, form: str, net: Any, x: Any) -> Any:
    """A network as a TorchScript program."""
    return torch.jit.script(net) if form == "scripted" else torch.jit.trace(net, x)


def record(torch: Any) -> None:
    """Write the archives, the states of the networks and their answers."""
    with zipfile.ZipFile(WRITTEN, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, make in NETWORKS.items():
            net, x = make(torch)
            answers, state = io.BytesIO(), io.BytesIO()
            np.savez(answers, *[leaf.detach().numpy() for leaf in leaves(net(x))])
            archive.writestr(f"{name}.npz", answers.getvalue())
            torch.save(net.state_dict(), state)
            archive.writestr(f"{name}.state.pt", state.getvalue())
            for form in FORMS:
                archive.writestr(f"{name}.{form}.pt", saved(torch, program_of(torch, form, net, x)))
