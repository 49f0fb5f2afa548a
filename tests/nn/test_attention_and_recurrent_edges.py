"""Padding, half precision and empty sequences in attention and recurrent layers."""

import pytest

import torchlite as torch
from torchlite import nn

pytestmark = pytest.mark.usefixtures("on_device")
PAD = [[False, False, True], [False, True, True]]


def encoder(**options):
    torch.manual_seed(0)
    layer_options = {"batch_first": True, **options.pop("layer", {})}
    layer = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.1, **layer_options)
    return nn.TransformerEncoder(layer, 2, **options).eval()


def run(model, pad=PAD, mask=None):
    pad = torch.tensor(pad) if isinstance(pad, list) else pad
    torch.manual_seed(1)
    return model(torch.randn(2, 3, 4), mask=mask, src_key_padding_mask=pad).cpu()


@pytest.mark.parametrize("form", ["no_grad", "inference_mode", "frozen", "float mask", "with a norm"])
def test_padding_becomes_zeros(form):
    model = encoder(norm=nn.LayerNorm(4) if form == "with a norm" else None)
    plain = run(model).detach()
    if form == "frozen":
        found = run(model.requires_grad_(False))
    else:
        pad = torch.tensor(PAD)
        if form == "float mask":
            pad = torch.zeros(2, 3).masked_fill(pad, float("-inf"))
        with torch.inference_mode() if form == "inference_mode" else torch.no_grad():
            found = run(model, pad)
    pad = torch.tensor(PAD, device="cpu")
    assert not found[pad].any() and plain[pad].all()
    torch.testing.assert_close(found[~pad], plain[~pad])


@pytest.mark.parametrize(
    ("options", "pad", "mask"),
    [
        ({}, [[True, False, False], [False, False, True]], None),
        ({"enable_nested_tensor": False}, PAD, None),
        ({"layer": {"batch_first": False}}, [[False, True]] * 3, None),
        ({"layer": {"norm_first": True}}, PAD, None),
        ({}, PAD, [[False] * 3] * 3),
        ({}, [[False] * 3] * 2, None),
    ],
)
@pytest.mark.filterwarnings("ignore:enable_nested_tensor is True:UserWarning")
def test_what_pytorch_computes_without_nested_tensors(options, pad, mask):
    model = encoder(**options)
    with torch.no_grad():
        found = run(model, pad, None if mask is None else torch.tensor(mask))
    assert found.all()


def test_gradients_keep_the_padding():
    model = encoder()
    assert run(model).all()
    model.train()
    with torch.no_grad():
        assert run(model).any(-1).all()


def test_mask_check_false_takes_the_mask_as_it_is():
    model = encoder(mask_check=False)
    pad = [[True, False, False], [False, False, True]]
    with torch.no_grad():
        assert not run(model, pad)[torch.tensor(pad, device="cpu")].any()


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("training", [True, False])
def test_an_input_bias_in_half_precision(batch_first, training):
    torch.manual_seed(0)
    attention = nn.MultiheadAttention(4, 2, batch_first=batch_first).train(training)
    x = torch.randn(2, 3, 4)
    wanted = attention(x, x, x)[0]
    attention.in_proj_bias = nn.Parameter(attention.in_proj_bias.detach().half())
    if not batch_first:
        with pytest.raises(RuntimeError, match="self and mat2 must have the same dtype, but got Half and Float"):
            attention(x, x, x)
        return
    found = attention(x, x, x)[0]
    torch.testing.assert_close(found, wanted)
    found.sum().backward()
    assert attention.in_proj_bias.grad.dtype is torch.float16 and attention.in_proj_bias.grad.any()


@pytest.mark.parametrize("cls", [nn.RNN, nn.LSTM, nn.GRU])
@pytest.mark.parametrize(
    "options", [{}, {"batch_first": True}, {"bidirectional": True}, {"num_layers": 2}, {"bias": False}]
)
@pytest.mark.parametrize("batch", [None, 1, 0])
@pytest.mark.parametrize("grad", [True, False])
def test_recurrent_layers_refuse_a_sequence_without_elements(cls, options, batch, grad):
    layer = cls(2, 3, **options)
    shape = (0, 2) if batch is None else (batch, 0, 2) if "batch_first" in options else (0, batch, 2)
    with (
        torch.set_grad_enabled(grad),
        pytest.raises(RuntimeError, match="Expected sequence length to be larger than 0 in RNN"),
    ):
        layer(torch.zeros(shape))
    with torch.set_grad_enabled(grad):
        assert layer(torch.zeros(2, 1, 2))[0].shape[:2] == (2, 1)


def native_calls(monkeypatch):
    """The mask types of the calls of the native op, in a list that grows."""
    seen, run = [], torch._native_multi_head_attention
    monkeypatch.setattr(torch, "_native_multi_head_attention", lambda *args: (seen.append(args[-1]), run(*args))[1])
    return seen


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("masks", ["", "attn_mask", "key_padding_mask", "attn_mask key_padding_mask"])
def test_self_attention_without_gradients_is_one_op(device, monkeypatch, need_weights, masks):
    torch.manual_seed(0)
    layer = nn.MultiheadAttention(8, 2, batch_first=True, device=device).eval()
    x = torch.randn(2, 3, 8, device=device)
    given = {
        "attn_mask": torch.ones(3, 3, device=device).triu(1).bool(),
        "key_padding_mask": torch.tensor([[False, False, True], [False, False, False]], device=device),
    }
    given = {name: given[name] for name in masks.split()}
    seen = native_calls(monkeypatch)
    want = layer(x, x, x, need_weights=need_weights, **given)
    assert not seen
    with torch.no_grad():
        found = layer(x, x, x, need_weights=need_weights, **given)
    assert seen == [2 if "attn" in masks else 1 if masks else None]
    torch.testing.assert_close(found, want, rtol=1e-4, atol=1e-5)


def test_where_self_attention_is_no_single_op(monkeypatch):
    x = torch.randn(2, 3, 8)
    layer = nn.MultiheadAttention(8, 2, batch_first=True).eval()
    mask, seen = torch.zeros(3, 3), native_calls(monkeypatch)
    with torch.no_grad():
        layer(x, x + 0, x)
        layer(x[0], x[0], x[0])
        layer(x, x, x, attn_mask=mask)
        for options in ({"bias": False}, {"add_bias_kv": True}, {"add_zero_attn": True}, {"batch_first": False}):
            nn.MultiheadAttention(8, 2, **{"batch_first": True} | options).eval()(x, x, x)
        nn.MultiheadAttention(8, 1, batch_first=True).eval()(x, x, x)
        nn.MultiheadAttention(8, 2, batch_first=True)(x, x, x)
        torch.backends.mha.set_fastpath_enabled(False)
        try:
            layer(x, x, x)
        finally:
            torch.backends.mha.set_fastpath_enabled(True)
    assert not seen
    layer.requires_grad_(False)(x, x, x)
    assert seen == [None]


def test_positions_that_see_nothing_are_nan_without_gradients():
    layer, x = nn.MultiheadAttention(8, 2, batch_first=True).eval(), torch.randn(1, 2, 8)
    mask = torch.tensor([[True, True], [False, False]])
    with torch.no_grad():
        out, _ = layer(x, x, x, attn_mask=mask, need_weights=False)
    assert out.isnan().all(-1).tolist() == [[True, False]]
