"""Causal masks that say what they are."""

import math

import pytest

import torchlite as torch
from torchlite.nn.attention.bias import CausalBias, CausalVariant, causal_lower_right, causal_upper_left

attention = torch.nn.functional.scaled_dot_product_attention


@pytest.mark.parametrize("make", [causal_upper_left, causal_lower_right])
@pytest.mark.parametrize("length, keys", [(2, 4), (3, 3), (1, 5)])
def test_attention_by_a_causal_mask(device, make, length, keys):
    torch.manual_seed(0)
    q, k, v = torch.rand(2, 1, length, 8), torch.rand(2, 1, keys, 8), torch.rand(2, 1, keys, 8)
    q, k, v = q.to(device), k.to(device), v.to(device)
    bias = make(length, keys)
    torch.testing.assert_close(attention(q, k, v, bias), attention(q, k, v, attn_mask=bias._materialize(device)))
    torch.testing.assert_close(
        attention(q, k, v, attn_mask=bias, scale=2.0), attention(q, k, v, bias._materialize(device), scale=2.0)
    )


def test_causal_bias():
    bias = causal_lower_right(2, 3)
    assert repr(bias) == "tensor([[ True,  True, False],\n        [ True,  True,  True]])"
    assert (bias.variant, bias.seq_len_q, bias.seq_len_kv) == (CausalVariant.LOWER_RIGHT, 2, 3)
    with pytest.raises(AssertionError, match="variant must be a CausalVariant, got int"):
        CausalBias(1, 2, 2)
    with pytest.raises(NotImplementedError, match="only supports scaled_dot_product_attention"):
        bias + 1
    q = torch.ones(1, 1, 2, 4)
    with pytest.raises(ValueError, match="should not be used with causal=True"):
        attention(q, q, q, causal_upper_left(2, 2), is_causal=True)
    with pytest.warns(UserWarning, match="Lower right causal bias will produce NaNs"):
        causal_lower_right(4, 2)


@pytest.mark.parametrize("length", [4, 16, 300])
@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), float("-inf")])
def test_a_causal_query_does_not_see_later_keys_that_are_no_numbers(device, length, wrong):
    torch.manual_seed(0)
    query, key, value = (torch.randn(1, 2, length, 8, device=device) for _ in range(3))
    wanted = torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
    key[:, :, 2] = wrong
    found = torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
    torch.testing.assert_close(found[:, :, :2], wanted[:, :, :2])
    if math.isnan(wrong):
        assert found[:, :, 2:].isnan().all()
