"""Multi-head attention of inputs whose batch lies first in memory, against the same inputs in the other order."""

import pytest

import torchlite as torch
from torchlite import nn

B, L, S, E, H = 3, 5, 7, 8, 2


def masks(kind):
    if kind == "padding":
        return {"key_padding_mask": torch.arange(S).expand(B, S) > torch.tensor([[6], [3], [4]])}
    if kind == "mask":
        return {"attn_mask": torch.ones(L, S, dtype=torch.bool).triu(2)}
    if kind == "masks of heads":
        return {"attn_mask": torch.randn(B * H, L, S)}
    return {}


@pytest.mark.parametrize("kind", ["none", "padding", "mask", "masks of heads"])
@pytest.mark.parametrize("inputs", ["one", "two", "three", "other sizes"])
def test_batch_first(inputs, kind, device):
    torch.manual_seed(0)
    sizes = {"kdim": 6, "vdim": 4} if inputs == "other sizes" else {}
    first = nn.MultiheadAttention(E, H, batch_first=True, **sizes).to(device)
    second = nn.MultiheadAttention(E, H, **sizes).to(device)
    second.load_state_dict(first.state_dict())
    length = S if inputs == "one" else L
    q = torch.randn(B, length, E, device=device)
    k = q if inputs == "one" else torch.randn(B, S, sizes.get("kdim", E), device=device)
    v = k if inputs in ("one", "two") else torch.randn(B, S, sizes.get("vdim", E), device=device)
    options = {name: m.to(device) for name, m in masks(kind).items()}
    if inputs == "one" and "attn_mask" in options:
        options["attn_mask"] = torch.zeros(S, S, device=device).fill_diagonal_(-1.0)
    leaves = {id(x): x.requires_grad_() for x in (q, k, v)}
    found, weights = first(q, k, v, need_weights=False, **options)
    assert weights is None and found.shape == (B, length, E)
    weight = torch.randn(B, length, E, device=device)
    grads = torch.autograd.grad((found * weight).sum(), [*leaves.values(), *first.parameters()])
    turned = {key: x.detach().transpose(0, 1).contiguous().requires_grad_() for key, x in leaves.items()}
    wanted, _ = second(*(turned[id(x)] for x in (q, k, v)), need_weights=False, **options)
    torch.testing.assert_close(found, wanted.transpose(0, 1))
    others = torch.autograd.grad((wanted.transpose(0, 1) * weight).sum(), [*turned.values(), *second.parameters()])
    for n, (mine, theirs) in enumerate(zip(grads, others, strict=True)):
        torch.testing.assert_close(mine, theirs.transpose(0, 1) if n < len(leaves) else theirs)
    with_weights, _ = first(q, k, v, **options)
    torch.testing.assert_close(with_weights, found)


def test_results_have_pytorchs_strides():
    """The dropout behind the layer draws in the order of memory."""
    attention = nn.MultiheadAttention(E, H, batch_first=True)
    with torch.no_grad():
        found, _ = attention(*[torch.randn(B, L, E)] * 3, need_weights=False)
    assert found.stride() == (E, B * E, 1)
