"""Recurrent layers on devices: all steps in one launch, or two launches for each."""

from __future__ import annotations

import pytest

import torchlite as torch
from torchlite._dispatch import F
from torchlite._ops.recurrent_steps import steps_of_layer
from torchlite_backends.device_runtime.nn import recurrent_steps, rnn


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


_FUNCTIONS = {"rnn": ("tanh",), "gru": ("sigmoid", "tanh"), "lstm": ("sigmoid", "tanh", "tanh")}


@pytest.mark.parametrize("shared", [None, (1, 1), (3, 1), (1, 3), (2, 2)])
@pytest.mark.parametrize(
    ("cell", "ways", "batch", "hidden", "option", "levels", "dtype"),
    [
        ("rnn", 2, 5, 17, False, None, torch.float32),
        ("gru", 1, 1, 112, True, None, torch.float32),
        ("gru", 2, 6, 37, False, None, torch.float32),
        ("gru", 2, 6, 150, True, None, torch.float64),
        ("lstm", 2, 9, 83, False, None, torch.float32),
        ("lstm", 1, 3, 5, False, None, torch.float64),
        ("lstm", 1, 6, 300, False, torch.int8, torch.float32),
        ("lstm", 2, 1, 85, False, torch.uint8, torch.float32),
    ],
)
@pytest.mark.parametrize("lengths", [False, True])
def test_steps_of_files(device, monkeypatch, cell, ways, batch, hidden, option, levels, dtype, lengths, shared):
    """Results are those of single ops, also where items share a direction's rows or units."""
    if shared is not None:
        parts, blocks = shared
        is_ordered = cell == "gru" and not option
        monkeypatch.setattr(recurrent_steps, "_share", lambda *_: (1 if levels else parts, 1 if is_ordered else blocks))
    torch.manual_seed(0)
    steps, gates = 3, {"rnn": 1, "gru": 3, "lstm": 4}[cell]
    size = gates * hidden

    def numbers(*shape, most=1.0):
        return ((torch.rand(*shape, dtype=dtype) - 0.5) * most).to(device)

    weight, scale, zero = numbers(ways, hidden, size, most=hidden**-0.5), None, None
    if levels is not None:
        low, high = (0, 256) if levels is torch.uint8 else (-128, 128)
        weight = torch.randint(low, high, (ways, hidden, size)).to(levels).to(device)
        scale = torch.rand(ways, size).mul(1e-3).to(device)
        zero = torch.randint(low, high, (ways,)).to(levels).to(device)
    given = (
        numbers(steps, batch, ways * size),
        weight,
        numbers(ways, batch, hidden),
        numbers(ways, batch, hidden) if cell == "lstm" else None,
        numbers(ways, size) if cell == "gru" else None,
        numbers(ways, 3 * hidden) if cell == "lstm" and batch != 9 else None,
        torch.arange(batch).remainder(steps + 1).to(torch.int32).to(device) if lengths else None,
        scale,
        zero,
        cell,
        # Sequences of several lengths with levels run forwards.
        (False, not (lengths and levels))[:ways] if ways > 1 else (not (lengths and levels),),
        tuple((name, None, None) for name in _FUNCTIONS[cell] * ways),
        None,
        option,
    )
    with torch.no_grad():
        found, wanted = F._recurrent_steps(*given), steps_of_layer(F, *given)
    # A level is the last bit of a logistic function away from its neighbour.
    tolerance = 1e-12 if dtype is torch.float64 else 2e-6 if levels is None else 2e-3
    for mine, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(mine, other, rtol=tolerance, atol=tolerance)
