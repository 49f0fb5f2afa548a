"""Recurrent layers on devices: all steps in one launch, or two launches for each."""

from __future__ import annotations

import pytest

import torchlite as torch
from torchlite_backends.device_runtime.nn import rnn


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
@pytest.mark.parametrize(("batch", "hidden"), [(1, 32), (3, 17), (8, 64), (2, 5)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
@pytest.mark.parametrize("bias", [True, False])
def test_layers_in_one_launch(device, monkeypatch, kind, batch, hidden, dtype, bias):
    """Results and gradients are those of separate launches."""
    torch.manual_seed(0)
    layer = getattr(torch.nn, kind)(7, hidden, 2, bidirectional=True, bias=bias).to(device, dtype)
    x = torch.randn(5, batch, 7).to(device, dtype)
    found = []
    for weights in (rnn._FEW_WEIGHTS, -1):
        monkeypatch.setattr(rnn, "_FEW_WEIGHTS", weights)
        layer.zero_grad()
        out, last = layer(x)
        (out * out).sum().backward()
        states = last if isinstance(last, tuple) else (last,)
        found.append([out, *states, *(p.grad for p in layer.parameters())])
    tolerance = {torch.float32: 1e-5, torch.float64: 1e-12, torch.float16: 2e-2}[dtype]
    for mine, other in zip(*found, strict=True):
        torch.testing.assert_close(mine, other, rtol=tolerance, atol=tolerance)
