"""Gradients of queries, keys and values that are written where they are joined."""

from __future__ import annotations

import pytest

import torchlite as torch
from torchlite import nn
from torchlite._dispatch.kernel_recorder import table_of
from torchlite._dynamo.compiled_function import CompiledFunction
from torchlite.nn import functional as F

NUMPY = table_of(torch.device("cpu")).backend.engine() == "numpy"


def unbound(parts, heads):
    batch, length, width = parts.shape
    return parts.view(batch, length, 3, heads, width // 3 // heads).permute(2, 0, 3, 1, 4).unbind(0)


def split(parts, heads):
    batch, length, width = parts.shape
    each = parts.split(width // 3, dim=2)
    return [x.view(batch, length, heads, width // 3 // heads).transpose(1, 2) for x in each]


def chunked_by_heads(parts, heads):
    batch, length, width = parts.shape
    return parts.view(batch, length, heads, width // heads).transpose(1, 2).chunk(3, dim=-1)


def stepped(cut, dtype=torch.float32, shown=False):
    torch.manual_seed(0)
    model = nn.Linear(24, 72).to(dtype)

    def step(x):
        q, k, v = cut(model(x.to(dtype)), 3)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return torch.autograd.grad(y.square().sum(), (*model.parameters(), *([k] if shown else [])))

    frame = CompiledFunction(step, "attended", fullgraph=True)
    for seed in range(3):
        torch.manual_seed(seed)
        x = torch.randn(5, 40, 24)
        want, found = step(x.clone()), frame(x.clone())
    assert frame.replays == 1
    for a, b in zip(found, want, strict=True):
        assert a.stride() == b.stride()
        torch.testing.assert_close(a, b, rtol=0 if NUMPY else 1e-6, atol=0 if NUMPY else 1e-6)
    return next(iter(frame.variants.values()))[0].replay.forward.text


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("cut", [unbound, split, chunked_by_heads])
def test_gradients_are_written_where_they_are_joined(cut, dtype):
    text = stepped(cut, dtype)
    joins = text.count("= stack(") + text.count("= cat(")
    assert joins == (not NUMPY or dtype is torch.bfloat16)  # in half precision they are other arrays


@pytest.mark.parametrize("cut", [unbound, split])
def test_gradients_with_other_readers_are_stored(cut):
    text = stepped(cut, shown=True)
    assert text.count("= stack(") + text.count("= cat(") == 1
